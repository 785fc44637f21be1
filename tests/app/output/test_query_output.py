"""The output of `check`, `match` and `explain`, line by line."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from tidings.app.check import CheckedFile, Problem
from tidings.app.check.review import Review
from tidings.app.output.query_output import (
    print_explanation,
    print_matches,
    print_problems,
    print_review,
)
from tidings.engine.explain import Placement, Reason


def printed(write, *arguments, width=60):
    """Return the lines that a function prints, without empty ones and rules."""
    page = io.StringIO()
    write(Console(file=page, width=width), *arguments)
    lines = [line.rstrip() for line in page.getvalue().splitlines()]
    return [line for line in lines if line.strip(" ─")]


def cells(line):
    return line.split()


def test_a_problem_is_printed_unwrapped_under_its_location():
    long = f"title like '{'x' * 80}_%'"
    reason = f"`like` takes % at the ends only\n  {long}\n  {'^' * len(long)}\npossible: [bold]"
    lines = printed(print_problems, [Problem(Path("w.jsonl"), reason, 3, "s1")])
    assert lines == [
        "w.jsonl:3",
        "  `like` takes % at the ends only",
        f"    {long}",
        f"    {'^' * len(long)}",
        "  possible: [bold]",
    ]


def test_a_problem_without_a_line_is_located_by_its_file():
    assert printed(print_problems, [Problem(Path("w.toml"), "no source")]) == [
        "w.toml",
        "  no source",
    ]


def test_a_review_counts_the_problems_of_each_file():
    files = [
        CheckedFile(Path("run.toml"), "config", 0),
        CheckedFile(Path("e.jsonl"), "events", 1200),
        CheckedFile(Path("s.jsonl"), "subscriptions", 1),
    ]
    problems = [Problem(Path("e.jsonl"), "bad", line) for line in (1, 2)]
    lines = printed(print_review, Review(files, problems))
    assert lines[:4] == ["e.jsonl:1", "  bad", "e.jsonl:2", "  bad"]
    assert [cells(line) for line in lines[4:8]] == [
        ["File", "Holds", "Records", "Problems"],
        ["run.toml", "config", "0"],
        ["e.jsonl", "events", "1,200", "2"],
        ["s.jsonl", "subscriptions", "1", "0"],
    ]
    assert lines[8:] == ["3 files, 1,201 records: 2 problems"]


def test_a_review_without_problems_says_so():
    lines = printed(print_review, Review([CheckedFile(Path("e.jsonl"), "events", 1)], []))
    assert lines[-1] == "1 file, 1 record: no problems"


def test_an_event_is_named_once_for_all_its_subscribers():
    rows = [
        {"event": "e1", "subscriber": "ann", "score": 1 / 3, "matched": ["s1", "s2"]},
        {"event": "e1", "subscriber": "bob", "score": 1.0, "matched": ["s3"]},
        {"event": "e2", "subscriber": "ann", "score": 12345.678, "matched": ["s1"]},
    ]
    assert [cells(line) for line in printed(print_matches, "feed", rows)] == [
        ["Event", "Subscriber", "Score", "Matched", "by"],
        ["e1", "ann", "0.3333", "s1,", "s2"],
        ["bob", "1", "s3"],
        ["e2", "ann", "1.235e+04", "s1"],
        ["3", "matches"],
    ]


def test_targets_are_numbered_by_place():
    names = {"subscription": "s1", "subscriber": "ann", "score": 0.5}
    lines = printed(print_matches, "target", [{"event": "e1", "position": 1, **names}])
    assert [cells(line) for line in lines] == [
        ["Event", "Place", "Subscription", "Subscriber", "Score"],
        ["e1", "1", "s1", "ann", "0.5"],
        ["1", "match"],
    ]


@pytest.mark.parametrize("direction", ["feed", "target"])
def test_without_matches_there_is_no_table(direction):
    assert printed(print_matches, direction, []) == ["no matches"]


def test_an_explanation_is_printed_unwrapped_as_it_reads():
    reason = Reason("s1", True, 0.5, (f"title = '{'x' * 80}'",), ())
    placement = Placement("s1", "e1", 0.5, 1, 3, 0.5, 0.0, reason)
    lines = printed(print_explanation, placement)
    assert lines == str(placement).splitlines()
    assert lines[0] == "s1 for e1: position 1 of the best 3, with 0.5"


def test_problems_of_one_kind_are_printed_three_times_and_counted():
    path = Path("e.csv")
    reasons = {
        line: f"event e{line}: published_at '{line}:00' is not a time" for line in range(2, 1277)
    }
    problems = [Problem(path, reason, line, f"e{line}") for line, reason in reasons.items()]
    other = Problem(path, "event x: n must be a number", 1300, "x")
    lines = printed(print_problems, [*problems, other], width=200)
    assert [line for line in lines if "is not a time" in line] == [
        f"  {reasons[line]}" for line in (2, 3, 4)
    ]
    assert lines[6] == "e.csv: 1,272 more like these, at 5, 6, 7, 8, 9, 10, 11, 12, ..."
    assert lines[7:] == ["e.csv, record 1300", "  event x: n must be a number"]


def test_many_kinds_of_problems_are_counted():
    names = [f"{first}{second}" for first in "abcdefgh" for second in "abcdefgh"]
    problems = [Problem(Path("e.json"), f"the field {name} is unknown", 1) for name in names]
    lines = printed(print_problems, problems, width=200)
    assert len(lines) == 2 * 40 + 1
    assert lines[-1] == "and 24 problems of 24 other kinds; --json lists them all"
