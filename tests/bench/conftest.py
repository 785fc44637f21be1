"""Benchmarks as modules, run in this process at tiny sizes; their results go to scratch folders."""

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
    """Return a function that imports a module of bench/ by name; results go to `tmp_path`."""
    monkeypatch.syspath_prepend(BENCH)

    def load(name: str) -> Any:
        loaded = import_module(name)
        for target in (loaded, import_module("pages")):
            monkeypatch.setattr(target, "RESULTS", tmp_path, raising=False)
        return loaded

    return load


@pytest.fixture
def bench(
    module: Callable[[str], Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Bench:
    """Return a function that runs a benchmark with options and returns its output."""

    def run(name: str, *options: object) -> str:
        loaded = module(name)
        monkeypatch.setattr(sys, "argv", [f"{name}.py", *map(str, options)])
        loaded.main()
        return capsys.readouterr().out

    return run
