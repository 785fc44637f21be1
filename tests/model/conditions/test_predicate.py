"""Predicates and their folding, judged by a reading of semantics §2 over plain Python values."""

import math
import operator
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tidings.errors import InvalidCondition, TidingsError
from tidings.model.conditions.predicate import (
    OPERATORS,
    PRESENCE,
    TRUE,
    Condition,
    Predicate,
    fold,
    predicate,
)
from tidings.model.records import Event
from tidings.model.values import Range

MAX = sys.float_info.max
DAYS = [datetime(2004, 2, day, tzinfo=UTC) for day in (12, 13, 14)]
ORDERED: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "!=": operator.ne,
}
TEXTUAL: dict[str, Callable[[Any, Any], bool]] = {
    "prefix": str.startswith,
    "suffix": str.endswith,
    "substring": operator.contains,
    "iequal": lambda value, operand: value.casefold() == operand.casefold(),
    "iprefix": lambda value, operand: value.casefold().startswith(operand.casefold()),
    "isuffix": lambda value, operand: value.casefold().endswith(operand.casefold()),
    "isubstring": lambda value, operand: operand.casefold() in value.casefold(),
}
NEGATED = [f"not {name}" for name in ("in", "between", *TEXTUAL)]
OPERANDS: dict[type, list[Any]] = {
    float: [-1, 0, 1, 2.5, 3, 10**17],
    str: ["", "a", "A", "ab", "b", "ba", "1", "ß", "sS"],
    datetime: DAYS,
}


def holds(part: Predicate, **attributes: Any) -> bool:
    return part.holds(Event("e", attributes, 0).tokens)


def same_family(one: Any, other: Any) -> bool:
    kinds = [float if type(value) is int else type(value) for value in (one, other)]
    return kinds[0] is kinds[1]


def oracle(operator_: str, operand: Any, values: list[Any]) -> bool:
    """Tell by definition whether some value of the operand's family satisfies it."""
    if operator_.startswith("not "):
        kind = operand[0] if operator_ in ("not in", "not between") else operand
        mine = [value for value in values if same_family(value, kind)]
        return any(not oracle(operator_.removeprefix("not "), operand, [each]) for each in mine)
    if operator_ == "in":
        return any(oracle("=", member, values) for member in operand)
    if operator_ == "between":
        low, high = operand
        return any(oracle(">=", low, [value]) and oracle("<=", high, [value]) for value in values)
    test = (ORDERED | TEXTUAL)[operator_]
    return any(same_family(value, operand) and test(value, operand) for value in values)


@st.composite
def written(draw: st.DrawFn) -> tuple[str, Any]:
    """Draw an operator with an operand that suits it."""
    family = draw(st.sampled_from([float, str, datetime]))
    one = st.sampled_from(OPERANDS[family])
    textual = [*TEXTUAL, *(f"not {name}" for name in TEXTUAL)] if family is str else []
    lists = ["between", "in", "not between", "not in"]
    chosen = draw(st.sampled_from([*ORDERED, *lists, *textual]))
    if chosen.endswith("between"):
        return chosen, tuple(sorted([draw(one), draw(one)]))
    if chosen in lists:
        return chosen, draw(st.lists(one, min_size=1, max_size=3))
    return chosen, draw(one.filter(bool) if chosen.startswith("not ") else one)


VALUES = st.sampled_from([True, False, *OPERANDS[float], *OPERANDS[str], *OPERANDS[datetime]])


def test_the_oracle_knows_every_operator() -> None:
    assert {*ORDERED, *TEXTUAL, "between", "in", *NEGATED, *PRESENCE} == set(OPERATORS)


@given(written(), st.lists(VALUES, max_size=3))
def test_a_predicate_holds_if_some_value_satisfies_it(
    made: tuple[str, Any], values: list[Any]
) -> None:
    chosen, operand = made
    assert holds(predicate("a", chosen, operand), a=values) == oracle(chosen, operand, values)


@pytest.mark.parametrize("family", OPERANDS)
def test_every_comparison_of_every_two_values_is_as_defined(family: type) -> None:
    known = ORDERED | (TEXTUAL if family is str else {})
    wrong = [
        (value, chosen, operand)
        for chosen, operand, value in product(known, OPERANDS[family], OPERANDS[family])
        if holds(predicate("a", chosen, operand), a=value) != oracle(chosen, operand, [value])
    ]
    assert wrong == []


@pytest.mark.parametrize("chosen", ["=", "!=", "in"])
def test_booleans_are_compared_with_booleans_only(chosen: str) -> None:
    part = predicate("a", chosen, [True] if chosen == "in" else True)
    assert holds(part, a=True) == (chosen != "!=")
    assert holds(part, a=False) == (chosen == "!=")
    assert not holds(part, a=1)
    assert not holds(part, a=0)


@pytest.mark.parametrize("operand", [1, "x", True, DAYS[0]])
def test_unequal_is_false_on_a_missing_attribute_or_another_family(operand: Any) -> None:
    part = predicate("a", "!=", operand)
    assert not holds(part)
    assert not holds(part, b=0)
    assert not holds(part, a=[])
    others = [value for value in (2, "y", False, DAYS[1]) if not same_family(value, operand)]
    assert not holds(part, a=others)


def test_null_is_a_missing_attribute_or_an_empty_list() -> None:
    missing, present = predicate("a", "is null"), predicate("a", "is not null")
    lacking: list[dict[str, Any]] = [{}, {"b": 1}, {"a": []}]
    for attributes in lacking:
        assert holds(missing, **attributes)
        assert not holds(present, **attributes)
    for value in (0, "", False, DAYS[0], [1, "x"], Range(1, 2)):
        assert holds(present, a=value)
        assert not holds(missing, a=value)
    assert holds(TRUE)
    assert holds(TRUE, a=1)


@pytest.mark.parametrize("mode", ["overlaps", "contained"])
@pytest.mark.parametrize(("low", "high"), [(2, 4), (3, 3), (5, 9), (0, 20)])
def test_negations_of_a_range_are_about_some_or_every_value(mode: str, low: int, high: int) -> None:
    values = [low + (high - low) * step / 20 for step in range(21)]
    some = any if mode == "overlaps" else all
    of = Range(low, high, mode)
    outside = predicate("a", "not between", (3, 6))
    assert holds(outside, a=of) == some(not 3 <= value <= 6 for value in values)
    unlisted = predicate("a", "not in", [3, 9])
    assert holds(unlisted, a=of) == some(value not in (3, 9) for value in values)


def test_unequal_holds_for_a_list_if_some_value_differs() -> None:
    assert holds(predicate("genre", "!=", "drama"), genre=["drama", "comedy"])


@pytest.mark.parametrize(
    ("chosen", "interval"),
    [
        ("=", (3, 3)),
        ("<", (-math.inf, math.nextafter(3, 0))),
        ("<=", (-math.inf, 3)),
        (">", (math.nextafter(3, 4), math.inf)),
        (">=", (3, math.inf)),
    ],
)
def test_a_bound_is_an_interval_and_a_strict_one_the_neighbouring_float(
    chosen: str, interval: tuple[float, float]
) -> None:
    part = predicate("x", chosen, 3)
    assert (part.operator, part.operand) == ("between", interval)


NUMBERS = st.sampled_from([-MAX, -1.0, 0.0, 5e-324, 1.0, math.nextafter(1, 2), 5.0, MAX])
BOUNDS = st.tuples(st.sampled_from(["=", "<", "<=", ">", ">="]), NUMBERS)


def satisfying(bounds: list[tuple[str, float]], values: list[float]) -> list[float]:
    return [value for value in values if all(ORDERED[op](value, bound) for op, bound in bounds)]


@given(st.lists(BOUNDS, min_size=1, max_size=4), st.lists(NUMBERS, max_size=3))
def test_one_value_must_satisfy_all_bounds_and_an_empty_fold_is_refused(
    bounds: list[tuple[str, float]], values: list[float]
) -> None:
    near = [math.nextafter(b, to) for _, b in bounds for to in (-math.inf, math.inf)]
    finite = [each for each in [*near, *(b for _, b in bounds), MAX, -MAX] if abs(each) <= MAX]
    if not satisfying(bounds, finite):
        with pytest.raises(InvalidCondition, match="nothing can satisfy it"):
            fold(predicate("x", *bound) for bound in bounds)
        return
    (folded,) = fold(predicate("x", *bound) for bound in bounds)
    assert holds(folded, x=values) == bool(satisfying(bounds, values))


def test_two_values_do_not_share_the_bounds_but_share_what_does_not_fold() -> None:
    folded = fold([predicate("x", ">=", 1), predicate("x", "<=", 5), predicate("x", "!=", 3)])
    assert [part.operand for part in folded] == [(1, 5), 3]
    assert [all(holds(part, x=x) for part in folded) for x in ([0, 9], [3], [3, 9], [2])] == [
        False,
        False,
        True,
        True,
    ]


def test_bounds_on_times_fold_and_on_strings_do_not() -> None:
    days = fold([predicate("day", ">", DAYS[0]), predicate("day", "<", DAYS[2])])
    names = fold([predicate("name", ">", "a"), predicate("name", "<", "c")])
    assert (len(days), len(names)) == (1, 2)
    assert not holds(days[0], day=[DAYS[0], DAYS[2]])
    assert holds(days[0], day=DAYS[1])
    assert holds(days[0], day=DAYS[0] + timedelta(microseconds=1))
    assert all(holds(part, name=["A", "b", "d"]) for part in names)


def test_bounds_of_two_families_or_attributes_stay_apart() -> None:
    parts = [predicate("x", ">", 1), predicate("x", "<", DAYS[0]), predicate("y", "<", 0)]
    assert fold(parts) == tuple(parts)


def test_a_fold_keeps_the_written_order_and_each_predicate_once() -> None:
    a, b, c = predicate("a", "=", "x"), predicate("b", ">", 1), predicate("a", "!=", "y")
    assert fold([a, b, c, a, b]) == (a, b, c)


@pytest.mark.parametrize(
    ("attribute", "chosen", "operand", "why"),
    [
        ("", "=", 1, "an attribute's name is a non-empty string, not ''"),
        (5, "=", 1, "an attribute's name is a non-empty string, not 5"),
        ("a", "~", 1, "unknown operator '~'; expected one of: =, <"),
        ("a", "=", None, "null is not a value"),
        ("a", "=", math.nan, "nan is not a finite number"),
        ("a", "=", [1], r"\[1\] is a list"),
        ("a", "prefix", 1, "a: prefix needs a string, not 1"),
        ("a", "<", True, "a: booleans have no order"),
        ("a", "between", 1, "a: between needs two bounds, not 1"),
        ("a", "between", (1, 2, 3), "between needs two bounds"),
        ("a", "between", (1, "b"), "between needs two numbers, strings or times"),
        ("a", "between", (False, True), "between needs two numbers, strings or times"),
        ("a", "between", (7, 3), "a: low 7 is above high 3"),
        ("a", "between", ("b", "a"), "a: low 'b' is above high 'a'"),
        (
            "a",
            "between",
            (DAYS[1], DAYS[0]),
            "low 2004-02-13T00:00:00Z is above high 2004",
        ),
        ("a", "in", [], r"a: in needs a list of values, not \[\]"),
        ("a", "in", "abc", "a: in needs a list of values, not 'abc'"),
        ("a", "in", [1, "x"], "of one family, not number and string"),
        ("a", ">", MAX, "a: no number is > 1.79.*nothing can satisfy it"),
        ("a", "<", {"time": "0001-01-01"}, "a: no time is < 0001-01-01T00:00:00Z"),
        ("a", ">", {"time": "9999-12-31T23:59:59.999999Z"}, "no time is > 9999-12-31T23:59:59.9"),
    ],
)
def test_a_refusal_names_the_attribute_and_the_rule(
    attribute: object, chosen: str, operand: object, why: str
) -> None:
    with pytest.raises(TidingsError, match=why):
        predicate(attribute, chosen, operand)


def test_a_fold_emptied_by_a_strict_bound_says_so() -> None:
    with pytest.raises(InvalidCondition, match=r"low 3 is above high 3 \(a bound is strict\)"):
        fold([predicate("x", ">", 3), predicate("x", "=", 3)])


def test_a_condition_holds_if_all_of_some_conjunction_hold() -> None:
    a, b, c = (predicate(name, "=", 1) for name in "abc")
    condition = Condition(((a, b), (c,), (b, a, b), (c,)))
    assert condition.conjunctions == ((a, b), (c,), (b, a))
    assert condition.predicates == (a, b, c)
    events = [{"a": 1}, {"a": 1, "b": 1}, {"c": 1}, {}]
    assert [condition.holds(Event("e", event, 0).tokens) for event in events] == [
        False,
        True,
        True,
        False,
    ]


@pytest.mark.parametrize("conjunctions", [(), ((),), ((predicate("a", "=", 1),), ())])
def test_a_condition_without_predicates_is_refused(conjunctions: Any) -> None:
    with pytest.raises(InvalidCondition, match="at least one predicate"):
        Condition(conjunctions)


@given(st.lists(BOUNDS, min_size=1, max_size=3))
def test_folding_again_changes_nothing(bounds: list[tuple[str, float]]) -> None:
    try:
        once = fold(predicate("x", *bound) for bound in bounds)
    except InvalidCondition:
        assume(False)
    assert fold(once) == once
