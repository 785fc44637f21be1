"""`tidings lab papers`: a line for each exhibit, the claims that fail, and what to do next."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.lab.papers.small import small_experiment

from tidings.app.lab_papers import (
    list_papers,
    print_run,
    progress_of,
    reproduce_papers,
    select_papers,
)
from tidings.lab.papers import run as runner
from tidings.lab.papers.run import perform


@pytest.fixture
def experiments(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    both = [small_experiment("one"), small_experiment("two", number="Figure 2")]
    monkeypatch.setattr(runner, "EXPERIMENTS", {each.name: each for each in both})
    return both


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line.rstrip() for line in capsys.readouterr().out.splitlines() if line.strip(" ─")]


def reproduce(experiments: list[Any], folder: Path, *, as_json: bool = False) -> int:
    return reproduce_papers(experiments, folder, "quick", 7, as_json=as_json)


def test_experiments_are_chosen_by_name(experiments: list[Any]) -> None:
    assert select_papers([], None, "kind", None) == experiments
    assert select_papers(["two"], None, "kind", None) == experiments[1:]


def test_experiments_are_listed_with_their_figures(
    experiments: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    list_papers(experiments)
    assert [line.split() for line in lines(capsys)] == [
        ["experiment", "tables", "and", "figures"],
        ["one", "rps-figure-1"],
        ["two", "rps-figure-2"],
    ]
    list_papers(experiments, as_json=True)
    assert [json.loads(line) for line in lines(capsys)] == [
        {"experiment": "one", "exhibits": ["rps-figure-1"]},
        {"experiment": "two", "exhibits": ["rps-figure-2"]},
    ]


def test_each_exhibit_has_a_line_and_the_claims_that_fail(
    experiments: list[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reproduce(experiments, tmp_path) == 0
    printed = lines(capsys)
    assert printed[:3] == [
        "RPS Figure 1     1 of 3 claims hold  Sizes & times",
        "  does not hold: Sizes are odd.",
        "  does not hold: It is fast.",
    ]
    assert printed[3].startswith("RPS Figure 2")
    assert printed[-2].startswith("2 tables and figures, 6 claims: 2 hold, 4 do not, in ")
    assert printed[-1] == f"The report: {tmp_path / 'report.html'}"
    assert (tmp_path / "report.html").exists()


def test_claims_as_json_are_one_object_for_each_exhibit(
    experiments: list[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reproduce(experiments, tmp_path, as_json=True) == 0
    assert [json.loads(line) for line in lines(capsys)] == [
        {
            "exhibit": f"rps-figure-{number}",
            "claims": 3,
            "hold": 1,
            "fail": ["Sizes are odd.", "It is fast."],
        }
        for number in (1, 2)
    ]


def test_an_interrupted_command_says_how_to_go_on(
    experiments: list[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    experiments[1].run.error = KeyboardInterrupt()
    assert reproduce(experiments, tmp_path) == 130
    captured = capsys.readouterr()
    assert captured.out.startswith("RPS Figure 1")
    assert "Figure 2" not in captured.out
    assert "Stopped after 1 of 2 experiments; the same command resumes." in captured.err
    experiments[1].run.error = None
    assert reproduce(experiments, tmp_path) == 0
    assert experiments[0].run.seeds == [7]


def test_hostile_titles_are_text(experiments: list[Any]) -> None:
    run = perform(experiments[0], "quick", 7, lambda done, steps, label: None)
    page = io.StringIO()
    print_run(Console(file=page, width=200), run, as_json=False)
    assert "Sizes & times" in page.getvalue()


def test_where_there_is_no_terminal_each_experiment_has_a_line() -> None:
    page = io.StringIO()
    with progress_of(Console(file=page), 2) as start:
        for name in ("one", "two"):
            start(name)(0, 5, "counting")
    assert page.getvalue() == "Running one\nRunning two\n"


def test_a_terminal_shows_bars_that_go_away() -> None:
    page = io.StringIO()
    console = Console(file=page, force_terminal=True, width=80)
    with progress_of(console, 2) as start:
        start("one")(2, 5, "counting")
        start("two")(0, 5, "sorting")
    assert "Running" not in page.getvalue()
    assert "\x1b[" in page.getvalue()
