"""Implication is set inclusion, judged by enumeration; cover is as PREF Def. 4 has it."""

import math
import operator
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import combinations_with_replacement, pairwise, product
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import InvalidCondition
from tidings.model.conditions.implication import covers, implies, strictly_covers
from tidings.model.conditions.parser import parse, parse_predicate
from tidings.model.conditions.predicate import OPERATORS, TRUE, Condition, Predicate, predicate
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
    "iequal": lambda value, operand: value.casefold() == operand.casefold(),
    "iprefix": lambda value, operand: value.casefold().startswith(operand.casefold()),
    "isuffix": lambda value, operand: value.casefold().endswith(operand.casefold()),
    "isubstring": lambda value, operand: operand.casefold() in value.casefold(),
}
PATTERNS = ["prefix", "suffix", "substring"]
FOLDED = ["iequal", "iprefix", "isuffix", "isubstring"]
PRESENCE = {"is null", "is not null", "true"}
FIRST, LAST = "\0", "\U0010ffff"
LONG_S, MARK = "\N{LATIN SMALL LETTER LONG S}", "\N{MODIFIER LETTER APOSTROPHE}"
MAX = sys.float_info.max


def strings(letters: str, longest: int) -> list[str]:
    lengths = range(longest + 1)
    return ["".join(each) for length in lengths for each in product(letters, repeat=length)]


# Letters that no operand has stand for all the others: without them too much would be implied.
TEXTS = strings(f"{FIRST}\1abcA{LAST}", 4)
TEXT_OPERANDS: list[Any] = strings(f"{FIRST}ab{LAST}", 2)
TEXT_BOUNDS = ["", FIRST, "a", f"a{FIRST}", "ab", f"a{LAST}", "b", LAST]


class Letters(NamedTuple):
    """Texts of a few letters, and operands whose foldings only these letters have."""

    texts: list[str]
    operands: list[str]


CASED = {
    "cased": Letters(
        strings(f"{FIRST}1AaBbẚ{LAST}", 4),  # ẚ folds to a and another
        ["", "1", "A", "a", "b", "a1", "1a", "AB", "aB", "ab", "aa", f"a{FIRST}"],
    ),
    # ß folds to two letters, and so do the ligatures of st.
    "ligatures": Letters(
        strings(f"{FIRST}1Ssß{LONG_S}ẞﬆ{LAST}", 4),
        ["1", "s", "S", "ß", LONG_S, "ss", "1s", "s1", "Ss"],
    ),
    # ŉ folds to an apostrophe and n: even the apostrophe, which has no case, is not certain.
    "apostrophes": Letters(
        strings(f"{FIRST}1Nnpŉƻ{MARK}{LAST}", 4),
        ["1", MARK, "n", "ŉ", f"{MARK}n", f"n{MARK}", MARK * 2, f"1{MARK}", f"{MARK}1"],
    ),
}

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
    **{name: letters.texts for name, letters in CASED.items()},
    "number": neighbourhood(NUMBER_OPERANDS),
    "time": neighbourhood(seconds(TIME_OPERANDS)),
    "boolean": [False, True],
}


def written(family: str) -> Iterator[Written]:
    """Return predicates of a family, or of strings of some letters, with all its operators."""
    if family == "boolean":
        yield from product(["=", "!="], [True, False])
        for members in ([True], [False], [True, False]):
            yield from [("in", members), ("not in", members)]
        return
    if family in CASED:
        operands = CASED[family].operands
        yield from product(["=", "!=", "<", ">="], operands)
        patterns = [*PATTERNS, *FOLDED]
        yield from product([*patterns, *(f"not {name}" for name in patterns)], operands)
        yield from product(["in", "not in"], list(pairwise(sorted(operands))))
        if family == "cased":  # it has a letter between any two operands
            yield from product(["between", "not between"], pairwise(sorted(operands)))
        return
    every = {"string": TEXT_OPERANDS, "number": NUMBER_OPERANDS, "time": TIME_OPERANDS}[family]
    yield from product(["=", "!=", "<", "<=", ">", ">="], every)
    if family == "string":
        yield from product(PATTERNS, every)
    for pair in combinations_with_replacement(TEXT_BOUNDS if family == "string" else every, 2):
        yield from product(["between", "in", "not between", "not in"], [pair])


@cache
def sets(family: str) -> list[tuple[Written, Any, int]]:
    """Return each predicate with the set of values that satisfy it, one bit for each value."""
    found = []
    for name, operand in written(family):
        key = seconds(operand) if family == "time" else operand
        test, negated = TESTS[name.removeprefix("not ")], name.startswith("not ")
        bits = [test(value, key) != negated for value in DOMAINS[family]]
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
    assert {name for _, name in CASES} | PRESENCE == set(OPERATORS)


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


EVERYTHING = [
    predicate("x", "=", 1),
    predicate("x", "not in", [1, 2]),
    predicate("x", "!=", "a"),
    predicate("x", "not iprefix", "a"),
    predicate("x", "=", True),
    predicate("x", "is not null"),
]


@pytest.mark.parametrize("part", EVERYTHING)
def test_every_predicate_implies_that_its_attribute_is_there(part: Predicate) -> None:
    assert implies(part, predicate("x", "is not null"))
    assert not implies(part, predicate("y", "is not null"))
    assert not implies(part, predicate("x", "is null"))
    assert not implies(predicate("x", "is null"), part)
    assert implies(predicate("x", "is not null"), part) == (part.operator == "is not null")


@pytest.mark.parametrize("part", [*EVERYTHING, predicate("x", "is null"), TRUE])
def test_every_predicate_implies_true_and_itself(part: Predicate) -> None:
    assert implies(part, TRUE)
    assert implies(part, part)
    assert implies(TRUE, part) == (part is TRUE)


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ("x = 'Abc'", "x ilike 'abc'"),
        ("x ilike 'abc'", "x ilike 'AB%'"),
        ("x like 'Ab%'", "x ilike 'ab%'"),
        ("x ilike '%2003%'", "x like '%0%'"),
        ("x ilike 'a2003%'", "x like '%200%'"),
        ("x ilike 'a'", "x in ('a', 'A')"),
        ("x ilike 'strasse'", "x not like '%b%'"),
        ("x not ilike '%a%'", "x not like '%Alpha%'"),
        ("x between 'Ka' and 'Kb'", "x ilike 'k%'"),
        ("x not between 'a' and 'b'", "x not like 'a%'"),
    ],
)
def test_text_with_and_without_case(narrow: str, wide: str) -> None:
    assert implies(parse_predicate(narrow), parse_predicate(wide))
    assert implies(parse_predicate(wide), parse_predicate(narrow)) == (" in " in wide)


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
    return Condition(tuple(tuple(predicate(*part) for part in parts) for parts in disjuncts))


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
