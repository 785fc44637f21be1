"""The benches as modules, run in this process at tiny sizes; what they write goes elsewhere."""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).parents[2] / "bench"
Bench = Callable[..., str]


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], Any]:
    """Import a module of bench/ by its name; its results go to the scratch directory."""
    monkeypatch.syspath_prepend(BENCH)

    def load(name: str) -> Any:
        found = import_module(name)
        for each in (found, import_module("pages")):
            monkeypatch.setattr(each, "RESULTS", tmp_path, raising=False)
        return found

    return load


@pytest.fixture
def bench(
    module: Callable[[str], Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Bench:
    """Run a bench with its options; give what it prints."""

    def run(name: str, *options: object) -> str:
        found = module(name)
        monkeypatch.setattr(sys, "argv", [f"{name}.py", *map(str, options)])
        found.main()
        return capsys.readouterr().out

    return run
