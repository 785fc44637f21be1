"""The words of the report: counts, verdicts, durations and parameters."""

from typing import Any

import pytest

from tidings.lab.papers.experiment import Claim, DataTable, Exhibit
from tidings.lab.papers.finished_run import FinishedRun
from tidings.lab.papers.report_words import (
    NO_REASON,
    SIZES,
    Tally,
    claim_text,
    duration,
    exhibits_of,
    overview_row,
    parameters_text,
    reason,
    summary,
    verdict,
)


def claim(holds: bool = True, **more: Any) -> Claim:
    return Claim("It is so.", "so", "so", holds, **more)


def exhibit(*holds: bool, number: str = "Figure 1") -> Exhibit:
    claims = tuple(claim(each) for each in holds)
    return Exhibit("RPS", number, "A title", DataTable(("n",), ((1,),)), claims)


def run(*exhibits: Exhibit, cpu_s: float = 0.0, wall_s: float = 0.0, **values: Any) -> FinishedRun:
    parameters = values.get("parameters", {})
    paper = values.get("paper", parameters)
    return FinishedRun("one", "laptop", 7, parameters, paper, "stamp", cpu_s, wall_s, exhibits)


@pytest.mark.parametrize(
    ("exhibits", "words"),
    [
        ([], "0 tables and figures, 0 claims: 0 hold, 0 do not"),
        ([exhibit(True)], "1 exhibit, 1 claims: 1 hold, 0 do not"),
        ([exhibit(True, False), exhibit()], "2 tables and figures, 2 claims: 1 hold, 1 does not"),
        ([exhibit(False, False)], "1 exhibit, 2 claims: 0 hold, 2 do not"),
    ],
)
def test_claims_are_counted(exhibits: list[Exhibit], words: str) -> None:
    tally = Tally.of(exhibits)
    assert str(tally) == words
    assert tally.exhibits == len(exhibits)


def test_the_exhibits_of_all_runs_are_in_order() -> None:
    first, second, third = (exhibit(True, number=f"Figure {n}") for n in range(3))
    assert exhibits_of([run(first, second), run(), run(third)]) == [first, second, third]


def test_a_claim_has_a_verdict_and_a_reason() -> None:
    assert verdict(claim()) == "holds"
    assert verdict(claim(False)) == "does not hold"
    assert reason(claim(False)) == NO_REASON
    assert reason(claim(False, reason="Ten is even.")) == "Ten is even."
    assert claim_text(claim()) == "It is so."
    assert claim_text(claim(timed=True)) == (
        "It is so. (measured time, which differs from run to run)"
    )


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        ([], "0.0 minutes of processor time and 0.0 minutes by the clock"),
        ([(30, 90)], "0.5 minutes of processor time and 1.5 minutes by the clock"),
        ([(30, 90), (60, 60)], "1.5 minutes of processor time and 2.5 minutes by the clock"),
    ],
)
def test_durations_are_added_up(seconds: list[tuple[float, float]], words: str) -> None:
    assert duration(run(cpu_s=cpu, wall_s=wall) for cpu, wall in seconds) == words


def test_the_summary_says_how_it_was_run() -> None:
    assert summary([run(exhibit(True), cpu_s=60)]) == (
        "1 exhibit, 1 claims: 1 hold, 0 do not. Run with the sizes for a laptop and seed 7, in "
        "1.0 minutes of processor time and 0.0 minutes by the clock."
    )
    assert summary([]).startswith("0 tables and figures, 0 claims: 0 hold, 0 do not. Nothing was")
    assert {*SIZES} == {"laptop", "full", "quick"}


def test_an_exhibit_is_a_row_of_the_overview() -> None:
    row = overview_row(exhibit(True, False, True, number="Table 2"))
    assert row == ("RPS Table 2", "A title", "2 of 3")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234567, "1,234,567"),
        (0.25, "0.25"),
        (True, "True"),
        ("ir", "ir"),
        ([1, 2000], "1, 2,000"),
        ([[1, 2], [3, 4]], "(1, 2), (3, 4)"),
        ({"a": 1, "b": None, "c": [2, 3]}, "a: 1, c: 2, 3"),
        (None, "-"),
    ],
)
def test_parameters_are_shown(value: Any, text: str) -> None:
    assert parameters_text(run(parameters={"x": value})) == f"x {text}"


def test_the_parameters_of_the_paper_are_shown_where_they_differ() -> None:
    found = parameters_text(
        run(parameters={"n": 10, "k": 5, "names": ["a"]}, paper={"n": 1000, "k": 5, "names": []})
    )
    assert found == "n 10 (paper: 1,000); k 5; names a (paper: all)"
