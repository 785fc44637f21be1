"""The public module of conditions takes text as well as objects."""

import pytest

from tidings import InvalidCondition
from tidings.conditions import Condition, covers, implies, parse, render
from tidings.model.conditions.predicate import predicate


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("x < 5", "x != 7", True),
        ("x != 7", "x < 5", False),
        ("name like 'abc%'", "name like '%b%'", True),
        ("x = 5", "y = 5", False),
    ],
)
def test_implication_of_texts_and_predicates(one: str, other: str, expected: bool) -> None:
    assert implies(one, other) is expected
    (first,), (second,) = parse(one).predicates, parse(other).predicates
    assert implies(first, second) is expected


def test_covers_of_texts_and_conditions() -> None:
    special = parse("genre = 'drama' and year >= 2003")
    assert isinstance(special, Condition)
    assert covers("genre = 'drama'", special)
    assert not covers(special, "genre = 'drama'")
    assert covers("a in ('x', 'y')", "a = 'x' or a = 'y'")
    assert not covers("a = 'x' or a = 'y'", "a in ('x', 'y')")


def test_what_is_printed_is_parsed_back() -> None:
    condition = parse("year >= 2003 and (genre = 'drama' or genre = 'comedy')")
    assert parse(render(condition)) == condition


def test_invalid_text_is_refused() -> None:
    with pytest.raises(InvalidCondition):
        implies("x <", predicate("x", "=", 1))


@pytest.mark.parametrize("value", ["year > 2003", None, 7, {"conjunctions": []}, ["a = 1"]])
def test_only_conditions_are_rendered(value: object) -> None:
    with pytest.raises(InvalidCondition, match="is not a condition; parse its text first"):
        render(value)  # type: ignore[arg-type]
