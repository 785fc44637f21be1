"""The pages and files of results, and the timing, that all benchmarks share."""

import json
import subprocess
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Load = Callable[[str], Any]


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("as_json", [False, True])
def test_a_result_is_printed_and_written_unless_quick(
    module: Load, tmp_path: Path, capsys: pytest.CaptureFixture[str], quick: bool, as_json: bool
) -> None:
    result = {"machine": {"cpu": "abacus"}, "found": 3}
    options = Namespace(quick=quick, json=as_json)
    module("pages").publish("beads", result, lambda content: f"# {content['found']}\n", options)
    printed = capsys.readouterr().out
    assert json.loads(printed) == result if as_json else printed == "# 3\n\n"
    assert result["machine"].keys() == {"cpu", "load_after", "others_during"}  # type: ignore[attr-defined]
    if quick:
        assert list(tmp_path.iterdir()) == []
    else:
        assert (tmp_path / "beads.md").read_text() == "# 3\n"
        assert json.loads((tmp_path / "beads.json").read_text()) == result


def test_what_a_bench_uses_itself_is_not_that_of_others(module: Load) -> None:
    used = module("pages").Used
    before, after = used(100.0, 40.0, 5.0), used(110.0, 59.0, 15.0)
    assert after.others_since(before) == 0.9
    assert after._replace(own_s=25.0).others_since(before) == 0.0
    assert (now := used.now()) is None or now.own_s <= now.busy_s


def test_the_machine_includes_the_commit(module: Load) -> None:
    machine = module("pages").machine()
    assert list(machine) == ["cpu", "cores", "load", "others", "python", "commit"]
    assert machine["commit"]
    assert machine["load"] >= 0


@pytest.mark.parametrize(
    "error", [FileNotFoundError("git"), subprocess.CalledProcessError(128, "git")]
)
def test_without_git_the_commit_is_unknown(
    module: Load, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(subprocess, "run", fail)
    assert module("pages").commit() == "unknown"


def test_tables_and_figures(module: Load) -> None:
    pages = module("pages")
    row = {"us": 1234.5, "bytes": None, "none": 0}
    cells = [pages.figure(row, key) for key in ("us", "bytes", "gone", "none")]
    assert cells == ["1,234.50", "-", "-", "0.00"]
    assert pages.table(("a", "b"), [("1", "2")]) == ["| a | b |", "|---|---|", "| 1 | 2 |"]
    assert [pages.ratio(value) for value in (0.034, 9.99, 12345.6)] == ["0.034", "10", "12,346"]
    opening = pages.opening("Beads", {"machine": {"cpu": "abacus", "cores": 2}}, "On wires.")
    assert opening == ["# Beads", "", "cpu abacus, cores 2", "", "On wires.", ""]


def test_the_least_of_several_rounds_ends_in_time(module: Load) -> None:
    timing = module("timing")
    calls: list[int] = []
    timing.least(lambda: calls.append(1), rounds=7, seconds=60)
    assert len(calls) == 7
    timing.least(lambda: calls.append(1), rounds=7, seconds=0)
    assert len(calls) == 8
    assert timing.timed(lambda: 3)[0] == 3
    assert timing.per([1, 2], 1e-6) == 0.5


def test_any_clock_can_be_used(module: Load) -> None:
    """The clock of a thread does not count sleep."""
    timing = module("timing")
    ticks = iter([0.0, 3.0, 3.0, 5.0, 5.0, 9.0])
    assert timing.least(lambda: None, 3, 60, clock=lambda: next(ticks)) == 2
    assert timing.timed(lambda: time.sleep(0.02), timing.OWN)[1] < 0.02
