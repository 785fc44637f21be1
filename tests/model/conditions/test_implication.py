"""Implication is set inclusion, judged by enumeration; cover is as PREF Def. 4 has it."""

import math
import operator
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import combinations_with_replacement, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import InvalidCondition
from tidings.model.conditions.implication import covers, implies, strictly_covers
from tidings.model.conditions.parser import parse
from tidings.model.conditions.predicate import OPERATORS, Condition, predicate
from tidings.model.records import Event

Written = tuple[str, Any]
TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "between": lambda value, operand: operand[0] <= value <= operand[1],
    "in": lambda value, operand: value in operand,
    "prefix": str.startswith,
    "suffix": str.endswith,
    "substring": operator.contains,
}
FIRST, LAST = "\0", "\U0010ffff"
MAX = sys.float_info.max


def strings(letters: str, longest: int) -> list[str]:
    lengths = range(longest + 1)
    return ["".join(each) for length in lengths for each in product(letters, repeat=length)]


# Letters that no operand has stand for all the others: without them too much would be implied.
TEXTS = strings(f"{FIRST}\1abc{LAST}", 4)
TEXT_OPERANDS: list[Any] = strings(f"{FIRST}ab{LAST}", 2)
TEXT_BOUNDS = ["", FIRST, "a", f"a{FIRST}", "ab", f"a{LAST}", "b", LAST]

NUMBER_OPERANDS: list[Any] = [-MAX, -1.0, 0.0, 5e-324, 1.0, math.nextafter(1, 2), 7.0, MAX]
TIME_OPERANDS: list[Any] = [
    datetime.min.replace(tzinfo=UTC),
    datetime(2004, 2, 13, tzinfo=UTC),
    datetime(2004, 2, 13, tzinfo=UTC) + timedelta(microseconds=1),
    datetime.max.replace(tzinfo=UTC),
]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def neighbourhood(operands: list[float]) -> list[float]:
    """Return all values at which the sets of predicates with these operands begin or end."""
    near = {math.nextafter(each, to) for each in operands for to in (-math.inf, math.inf)}
    low, high = min(operands), max(operands)
    return [each for each in sorted({*operands, *near}) if low <= each <= high]


def seconds(when: Any) -> Any:
    if isinstance(when, list | tuple):
        return [seconds(each) for each in when]
    return (when - EPOCH) / timedelta(seconds=1)


DOMAINS: dict[str, list[Any]] = {
    "string": TEXTS,
    "number": neighbourhood(NUMBER_OPERANDS),
    "time": neighbourhood(seconds(TIME_OPERANDS)),
    "boolean": [False, True],
}


def written(family: str) -> Iterator[Written]:
    """Return predicates of a family with all its operators."""
    if family == "boolean":
        yield from product(["=", "!="], [True, False])
        yield from [("in", [True]), ("in", [False]), ("in", [True, False])]
        return
    every = {"string": TEXT_OPERANDS, "number": NUMBER_OPERANDS, "time": TIME_OPERANDS}[family]
    yield from product(["=", "!=", "<", "<=", ">", ">="], every)
    if family == "string":
        yield from product(["prefix", "suffix", "substring"], every)
    for pair in combinations_with_replacement(TEXT_BOUNDS if family == "string" else every, 2):
        yield from [("between", pair), ("in", pair)]


@cache
def sets(family: str) -> list[tuple[Written, Any, int]]:
    """Return each predicate with the set of values that satisfy it, one bit for each value."""
    found = []
    for name, operand in written(family):
        key = seconds(operand) if family == "time" else operand
        bits = [TESTS[name](value, key) for value in DOMAINS[family]]
        mask = sum(1 << place for place, bit in enumerate(bits) if bit)
        try:
            found.append(((name, operand), predicate("x", name, operand), mask))
        except InvalidCondition:
            assert mask == 0
    return found


CASES = [
    (family, name) for family in DOMAINS for name in dict.fromkeys(n for n, _ in written(family))
]


def test_every_operator_is_judged() -> None:
    assert {name for _, name in CASES} == set(OPERATORS) == set(TESTS)


@pytest.mark.parametrize(("family", "name"), CASES)
def test_implication_is_inclusion_of_the_sets(family: str, name: str) -> None:
    """Judge one operator on the left with every predicate on the right, and find no mistake."""
    left = [each for each in sets(family) if each[0][0] == name]
    mistakes = [
        (mine, other)
        for (mine, p, inner), (other, q, outer) in product(left, sets(family))
        if implies(p, q) != (inner & ~outer == 0)
    ]
    assert left
    assert mistakes == []


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (("<", 5), ("!=", 7)),
        (("prefix", "abc"), ("substring", "b")),
        (("=", "abc"), ("suffix", "bc")),
        (("in", ["ab", "ac"]), ("prefix", "a")),
        (("between", ("aa", "ab")), ("prefix", "a")),
        (("!=", False), ("=", True)),
    ],
)
def test_implication_has_a_direction(p: Written, q: Written) -> None:
    narrow, wide = predicate("x", *p), predicate("x", *q)
    assert implies(narrow, wide)
    assert implies(wide, narrow) == (p[0] == "!=")


@pytest.mark.parametrize("other", [("y", "=", 1), ("x", "=", "1"), ("x", "=", True)])
def test_attributes_and_families_never_imply_each_other(other: tuple[str, str, Any]) -> None:
    assert not implies(predicate("x", "=", 1), predicate(*other))
    assert not implies(predicate(*other), predicate("x", "!=", 2))


PARTS = [(name, op, v) for name in "xy" for op, v in product(["=", "!=", "<=", ">="], [1, 2, 3])]
CONDITIONS = st.lists(
    st.lists(st.sampled_from(PARTS), min_size=1, max_size=3), min_size=1, max_size=2
)
Disjuncts = list[list[tuple[str, str, int]]]


def folded(parts: list[tuple[str, str, int]]) -> list[tuple[str, frozenset[int]]]:
    """Return the sets that a conjunction stands for: bounds share one, each `!=` has its own."""
    found: list[tuple[str, frozenset[int]]] = []
    for name in "xy":
        mine = [(op, v) for each, op, v in parts if each == name]
        groups = [[each] for each in mine if each[0] == "!="]
        groups += [bounds] if (bounds := [each for each in mine if each[0] != "!="]) else []
        values = range(-1, 6)  # wider than the operands, so that nothing else seems bounded
        found += [
            (name, frozenset(x for x in values if all(TESTS[op](x, v) for op, v in group)))
            for group in groups
        ]
    return found


def by_definition(general: Disjuncts, special: Disjuncts) -> bool:
    """Each predicate of a conjunction is implied by a single one of the other (semantics §2)."""

    def over(wide: Any, narrow: Any) -> bool:
        return all(any(n == m and s <= t for n, s in folded(narrow)) for m, t in folded(wide))

    return all(any(over(wide, narrow) for wide in general) for narrow in special)


def made(disjuncts: Disjuncts) -> Any:
    return Condition(tuple(tuple(predicate(*each) for each in parts) for parts in disjuncts))


def possible(disjuncts: Disjuncts) -> bool:
    return all(values for parts in disjuncts for _, values in folded(parts))


@given(CONDITIONS.filter(possible), CONDITIONS.filter(possible))
def test_cover_is_by_single_predicates_and_conjunctions(one: Disjuncts, other: Disjuncts) -> None:
    first, second = made(one).conjunctions, made(other).conjunctions
    there, back = by_definition(one, other), by_definition(other, one)
    assert covers(first, second) == there
    assert strictly_covers(first, second) == (there and not back)


@given(
    CONDITIONS.filter(possible),
    CONDITIONS.filter(possible),
    st.fixed_dictionaries({}, optional={n: st.lists(st.integers(0, 4), max_size=3) for n in "xy"}),
)
def test_what_the_covered_one_matches_the_covering_one_matches(
    one: Disjuncts, other: Disjuncts, attributes: dict[str, Any]
) -> None:
    general, special, event = made(one), made(other), Event("e", attributes, 0)
    if covers(general.conjunctions, special.conjunctions) and special.holds(event.tokens):
        assert general.holds(event.tokens)


@pytest.mark.parametrize(
    ("general", "special"),
    [
        ("genre = 'drama'", "genre = 'drama' and director = 'T. Burton'"),
        ("year >= 2000", "year between 2003 and 2005"),
        ("genre = 'drama' or genre = 'horror'", "genre = 'drama'"),
        ("title like '%Fish%'", "title = 'Big Fish'"),
        ("x != 3", "x > 3 and y = 1"),
    ],
)
def test_the_wider_condition_strictly_covers_the_narrower(general: str, special: str) -> None:
    wide, narrow = parse(general).conjunctions, parse(special).conjunctions
    assert strictly_covers(wide, narrow)
    assert not covers(narrow, wide)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x >= 1 and x <= 5", "x between 1 and 5"),
        ("a = 'x' and b = 'y'", "b = 'y' and a = 'x'"),
        ("a in ('x')", "a = 'x'"),
        ("b", "not b = false"),
    ],
)
def test_equal_conditions_cover_each_other_and_neither_strictly(one: str, other: str) -> None:
    first, second = parse(one).conjunctions, parse(other).conjunctions
    assert covers(first, second)
    assert not strictly_covers(first, second)
    assert not strictly_covers(second, first)
