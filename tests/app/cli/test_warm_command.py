"""The command `warm` tells its progress and where the kernels are."""

import json
from pathlib import Path

import pytest
from tests.app.cli.commands import tidings

from tidings.app.warm import WarmCache


@pytest.fixture(autouse=True)
def small(monkeypatch):
    cache = WarmCache(Path("/cache"), 3, 2_000_000, 4.2)
    monkeypatch.setattr("tidings.app.warm.warm_up", lambda: iter(["compiling once, 1 of 1", cache]))


def test_progress_and_folder_are_printed():
    result = tidings("warm")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "compiling once, 1 of 1",
        "3 kernels, 2.0 MB, are ready in /cache after 4 s",
    ]


def test_json_has_the_folder():
    (line,) = tidings("warm", "--json").stdout.splitlines()
    assert json.loads(line) == {
        "folder": "/cache",
        "kernels": 3,
        "bytes": 2_000_000,
        "seconds": 4.2,
    }
