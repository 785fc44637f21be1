"""All benches in one command: which run, what is reported, and what a failure does not stop."""

import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the globals of the command; its benches fail if their name begins with a p."""
    names = runpy.run_path(str(BENCH / "__main__.py"))
    started = names["main"].__globals__["started"] = list[list[str]]()

    def run(line: list[Any], *, check: bool) -> Any:
        assert not check
        started.append([Path(line[1]).stem, *line[2:]])
        return SimpleNamespace(returncode=int(started[-1][0].startswith("p")))

    monkeypatch.setattr(names["subprocess"], "run", run)
    return names


def test_all_benches_run_but_those_that_take_an_hour(
    main: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench"])
    assert main["main"]() == 1
    started = [name for name, *_ in main["main"].__globals__["started"]]
    expected = [name.partition("-")[0] for name in main["BENCHES"] if name != "long"]
    assert started == [*expected, "plots"]
    *lines, total = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in lines] == [
        *(name for name in main["BENCHES"] if name != "long"),
        "plots",
    ]
    failed = [line.split()[0] for line in lines if line.endswith("failed")]
    assert failed == [line.split()[0] for line in lines if line.startswith("p")]
    assert total == f"{len(lines)} benches in 0 min, {len(failed)} failed"


@pytest.mark.parametrize("name", ["long", "interval-tiny"])
def test_a_named_bench_gets_the_options(
    main: dict[str, Any], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", name, "--quick", "--rounds", "1"])
    assert main["main"]() == 0
    file, *workload = name.split("-")
    options = ["--workload", *workload] if workload else []
    started = main["main"].__globals__["started"]
    assert started == [[file, *options, "--quick", "--rounds", "1"]]
