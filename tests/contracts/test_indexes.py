"""One suite for every index: it must answer as the definitions do."""

import operator
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.access.in_blocks import InBlocks

from tidings.errors import InvalidCondition
from tidings.index import INDEXES, Index
from tidings.index.access import Access
from tidings.model.conditions.predicate import PRESENCE, Condition, Predicate, predicate
from tidings.model.records import STATES, Event, Subscription, Weighted
from tidings.model.values import Range

DAYS = [datetime(2004, 2, day, tzinfo=UTC) for day in (12, 13, 14)]
NUMBERS = [-1, 0, -0.0, 1, 2.5, 3, 10**17]
TEXTS = ["", "a", "ab", "b", "Ba", "aba", "ABA", "1", "abcabc", "ß", "SS", "\U0010ffff"]
VALUES: list[list[Any]] = [NUMBERS, TEXTS, DAYS, [True, False]]
TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "between": lambda value, operand: operand[0] <= value <= operand[1],
    "prefix": str.startswith,
    "suffix": str.endswith,
    "substring": operator.contains,
    "in": lambda value, operand: value in operand,
    "iequal": lambda value, operand: value.casefold() == operand,
    "iprefix": lambda value, operand: value.casefold().startswith(operand),
    "isuffix": lambda value, operand: value.casefold().endswith(operand),
    "isubstring": lambda value, operand: operand in value.casefold(),
}
TEXTUAL = ["prefix", "suffix", "substring", "iequal", "iprefix", "isuffix", "isubstring"]
NEGATED = [f"not {name}" for name in ["in", "between", *TEXTUAL]]
MAKERS: dict[str, Callable[[], Index]] = {
    **INDEXES,
    "access, in segments": lambda: Access(memtable_size=4),
    "access, in segments of one": lambda: Access(memtable_size=0),
    "access, in blocks": lambda: InBlocks(memtable_size=2),
}
NAMES = [*MAKERS]


def family(value: Any) -> type:
    return float if type(value) is int else type(value)


def key_family(key: Any, named: str) -> type:
    return {"number": float, "string": str, "boolean": bool, "time": datetime}[named]


def true(part: Predicate, event: dict[str, Any]) -> bool:
    """Return by definition whether some value of the right family satisfies the predicate."""
    value = event.get(part.attribute, [])
    values = value if isinstance(value, list) else [value]
    if part.family == "any":
        return part.operator == "true" or bool(values) == (part.operator == "is not null")
    wanted = key_family(part.operand, part.family)
    keys = [
        value.timestamp() if isinstance(value, datetime) else value
        for value in values
        if family(value) is wanted
    ]
    name = part.operator.removeprefix("not ")
    return any(TESTS[name](key, part.operand) != (name != part.operator) for key in keys)


def active(group: tuple[Weighted, ...], event: dict[str, Any]) -> list[bool]:
    return [true(part.predicate, event) for part in group if part.state == "active"]


def covers(subscription: Subscription, event: dict[str, Any]) -> bool:
    held = [active(group, event) for group in subscription.groups]
    return any(group and all(group) for group in held)


def touches(subscription: Subscription, event: dict[str, Any]) -> bool:
    return any(any(active(group, event)) for group in subscription.groups)


def total(subscription: Subscription, event: dict[str, Any]) -> float | None:
    """Return the sum of the weights that hold in the best group."""
    sums = [
        sum(part.weight for part in group if part.state == "active" and true(part.predicate, event))
        for group in subscription.groups
        if any(active(group, event))
    ]
    return max(sums, default=None)


@st.composite
def predicates(draw: st.DrawFn) -> Predicate:
    name = draw(st.sampled_from("abc"))
    values = draw(st.sampled_from([*VALUES, TEXTS, []]))
    if not values:
        return predicate(name, draw(st.sampled_from(PRESENCE)))
    one = st.sampled_from(values)
    operators = [*TESTS, *NEGATED]
    if values is not TEXTS:
        operators = [
            operator for operator in operators if operator.removeprefix("not ") not in TEXTUAL
        ]
    if type(values[0]) is bool:
        operators = ["=", "!=", "in"]
    chosen = draw(st.sampled_from(operators))
    operand: Any = draw(one if chosen in TESTS else one.filter(lambda value: value != ""))
    if chosen.endswith("between"):
        operand = sorted([operand, draw(one)])
    if chosen in ("in", "not in"):
        operand = [operand, *draw(st.lists(one, max_size=2))]
    return predicate(name, chosen, operand)


@st.composite
def subscriptions(draw: st.DrawFn, name: str) -> Subscription:
    score = draw(st.sampled_from([None, 0, 1, 2, 2.5]))
    if draw(st.booleans()):
        weighted = st.builds(
            Weighted, predicates(), st.sampled_from([0, 0.5, 1]), st.sampled_from(STATES)
        )
        parts = draw(st.lists(weighted, min_size=1, max_size=4))
        return Subscription(name, "u", any=parts, score=score)
    conjunctions = st.lists(predicates(), min_size=1, max_size=4).map(tuple)
    drawn = draw(st.lists(conjunctions, min_size=1, max_size=3))
    try:
        return Subscription(name, "u", Condition(tuple(drawn)), score=score)
    except InvalidCondition:  # bounds that exclude everything
        return Subscription(name, "u", Condition((drawn[0][:1],)), score=score)


ONE = st.sampled_from([value for values in VALUES for value in values])
EVENTS = st.dictionaries(st.sampled_from("abcd"), ONE | st.lists(ONE, max_size=3))


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, Any]]:
    """Draw steps: add a subscription, remove one, or query with an event."""
    steps: list[tuple[str, Any]] = []
    present: list[str] = []
    for number in range(draw(st.integers(1, 16))):
        step = draw(st.sampled_from(["add", "add", "remove", "query"]))
        if step == "add":
            present.append(f"s{draw(st.integers(0, 9))}-{number}")
            steps.append((step, draw(subscriptions(present[-1]))))
        elif step == "remove" and present:
            steps.append((step, present.pop(draw(st.integers(0, len(present) - 1)))))
        else:
            steps.append(("query", draw(EVENTS)))
    return [*steps, ("query", draw(EVENTS))]


def expected(present: dict[str, Subscription], event: dict[str, Any], k: int) -> dict[str, Any]:
    names = sorted(present)
    matching = [name for name in names if covers(present[name], event)]
    own = [(name, 1.0 if present[name].score is None else present[name].score) for name in matching]
    sums = [(name, total(present[name], event)) for name in names]
    relaxed = [(name, value) for name, value in sums if value is not None]
    return {
        "matching": matching,
        "touching": [name for name in names if touches(present[name], event)],
        "exact": sorted(own, key=lambda pair: (-(pair[1] or 0), pair[0]))[:k],
        "relaxed": sorted(relaxed, key=lambda pair: (-pair[1], pair[0]))[:k],
        "weights": sorted(relaxed, key=lambda pair: (-pair[1], pair[0]))[:k],
    }


def answers(index: Any, attributes: dict[str, Any], k: int) -> dict[str, Any]:
    event = Event("e", attributes, 0)
    return {
        "matching": [subscription.id for subscription in index.matching(event)],
        "touching": [subscription.id for subscription in index.touching(event)],
        "exact": index.top(event, k),
        "relaxed": index.top(event, k, lambda _, one: total(one, attributes)),
        "weights": index.top_relaxed(event, k),
    }


@pytest.mark.parametrize("name", NAMES)
@given(histories(), st.integers(1, 4))
def test_an_index_answers_as_defined(name: str, steps: list[tuple[str, Any]], k: int) -> None:
    index, present = MAKERS[name](), dict[str, Subscription]()
    for step, thing in steps:
        if step == "add":
            present[thing.id] = thing
            index.add(thing)
        elif step == "remove":
            del present[thing]
            index.remove(thing)
        else:
            assert answers(index, thing, k) == expected(present, thing, k)


@pytest.mark.parametrize("name", NAMES)
@given(st.integers(0, 200), st.data())
def test_many_subscriptions_come_and_go(name: str, size: int, data: st.DataObject) -> None:
    """Larger sets, removals of everything, and equal scores."""
    kinds = data.draw(st.lists(subscriptions("s"), min_size=1, max_size=6))
    present = {
        f"s{number:03d}": Subscription(
            f"s{number:03d}",
            "u",
            where=kinds[number % len(kinds)].where,
            any=kinds[number % len(kinds)].any,
            score=data.draw(st.sampled_from([None, 1, 2])) if number < 5 else number % 3,
        )
        for number in range(size)
    }
    index: Any = MAKERS[name]()
    for one in present.values():
        index.add(one)
    event = data.draw(EVENTS)
    assert answers(index, event, 3) == expected(present, event, 3)
    for number in range(size):
        if number % 3 or number % 2 == 0:
            index.remove(f"s{number:03d}")
            del present[f"s{number:03d}"]
        if number % 50 == 0:
            assert answers(index, event, 3) == expected(present, event, 3)
    assert answers(index, event, 3) == expected(present, event, 3)


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_index_finds_nothing(name: str) -> None:
    empty = answers(MAKERS[name](), {"a": 1}, 2)
    assert empty == {"matching": [], "touching": [], "exact": [], "relaxed": [], "weights": []}


@pytest.mark.parametrize("name", NAMES)
def test_an_index_counts_what_it_tests(name: str) -> None:
    index = MAKERS[name]()
    assert dict(index.counters()) == {"predicates": 0, "subscriptions": 0}
    index.add(Subscription("s", "u", "a = 1 and b = 'x'"))
    list(index.matching(Event("e", {"a": 1, "b": "x"}, 0)))
    assert index.counters()["predicates"] >= 1
    assert index.counters()["subscriptions"] >= 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [0, 1, 63, 64, 65])
def test_sizes_around_a_machine_word_and_removals_of_everything(name: str, size: int) -> None:
    """All scores are equal, so that ids decide; then all are removed and added again."""
    index: Any = MAKERS[name]()
    present = {
        f"s{number:02d}": Subscription(f"s{number:02d}", "u", f"a >= {number % 7} and b = 'x'")
        for number in range(size)
    }
    for one in present.values():
        index.add(one)
    event = {"a": 3, "b": ["x", "y"]}
    assert answers(index, event, 5) == expected(present, event, 5)
    for removed in present:
        index.remove(removed)
    assert answers(index, event, 5) == expected({}, event, 5)
    for one in present.values():
        index.add(one)
    assert answers(index, event, 100) == expected(present, event, 100)


RANGES = st.builds(
    lambda low, high, mode: Range(min(low, high), max(low, high), mode=mode),
    st.sampled_from(NUMBERS),
    st.sampled_from(NUMBERS),
    st.sampled_from(["overlaps", "contained"]),
)


@pytest.mark.parametrize("name", NAMES[1:])
@given(st.data())
def test_ranges_and_probabilities_get_the_answers_of_the_scan(
    name: str, data: st.DataObject
) -> None:
    """Overlapping and contained, several values of an attribute, and uncertain values."""
    index, scan = MAKERS[name](), INDEXES["scan"]()
    for number in range(data.draw(st.integers(1, 12))):
        new = data.draw(subscriptions(f"s{number:02d}"))
        index.add(new)
        scan.add(new)
    attributes = st.dictionaries(
        st.sampled_from("abc"), RANGES | ONE | st.lists(RANGES | ONE, max_size=3), min_size=1
    )
    drawn = data.draw(attributes)
    chances = {name: data.draw(st.sampled_from([0, 0.1, 0.3, 1])) for name in drawn}
    certain = data.draw(st.booleans())
    event = Event("e", drawn, 0, probabilities={} if certain else chances)
    assert list(index.matching(event)) == list(scan.matching(event))
    assert list(index.touching(event)) == list(scan.touching(event))
    assert index.top(event, 3) == scan.top(event, 3)
    assert index.top_relaxed(event, 3) == scan.top_relaxed(event, 3)
