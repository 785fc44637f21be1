"""Charts are drawn from results alone, and the same results give the same bytes."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Load = Callable[[str], Any]
ROWS = {
    size: [
        {"name": "numpy", "batch_us": size / 200, "build_s": 1e-6},
        {"name": "sopt-r-64", "batch_us": 0.1, "build_s": size / 1e6},
    ]
    for size in (10_000, 100_000)
}
INTERVAL = {"k": 20, "workload": "rps", "sizes": ROWS}
OVER = {"numpy": {"1": 60.0, "4": 90.0}, "blocks": {"1": 3.0, "4": 16.0}, "scan": {}}
GROWTH = {"size": 5000, "over_k": OVER, "relaxed_over_d": OVER, "exact_over_d": OVER}
SEEN = {"index": 3200, "kept": 3300, "nbytes": None, "name": "scan"}
MEMORY = [{"kind": "interval", "size": 10, **SEEN}, {"kind": "interval", "size": 100, **SEEN}]


def draw(load: Load, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    monkeypatch.setattr(sys, "argv", ["plots.py", "--out", str(folder)])
    load("plots").main()
    return {path.name: path.read_text() for path in folder.glob("*.svg")}


def test_charts_are_drawn_from_existing_results(
    module: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    assert draw(module, tmp_path / "nothing", monkeypatch) == {}
    for name, result in {
        "interval": INTERVAL,
        "growth": GROWTH,
        "memory": {"rows": MEMORY},
    }.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(result))
    first = draw(module, tmp_path / "first", monkeypatch)
    assert first.keys() == {
        *("interval.svg", "build.svg", "memory.svg", "growth-k.svg"),
        *("growth-d-relaxed.svg", "growth-d-exact.svg"),
    }
    for text in ("sopt-r-64", "Top 20 of n intervals, workload rps", "100,000"):
        assert text in first["interval.svg"]
    assert "scan (interval, 100)" in first["memory.svg"]
    assert "scan (interval, 10)" not in first["memory.svg"]
    assert not any("<dc:date>" in text for text in first.values())
    assert draw(module, tmp_path / "second", monkeypatch) == first


def test_without_matplotlib_charts_are_left_out_with_a_note(
    module: Load,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert draw(module, tmp_path, monkeypatch) == {}
    assert capsys.readouterr().err.startswith("No charts: import of matplotlib")


def test_peers_are_dashed_and_ours_are_thick(module: Load) -> None:
    style = module("plots").style
    assert style("numpy", 0)["linestyle"] == "--"
    assert style("sopt-r-64", 1)["linewidth"] > style("sopt-r", 1)["linewidth"]
