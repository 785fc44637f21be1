"""Relaxed ranks of many owners, against the relaxed scorer of each."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rank.bulk.plain import expected_rows, owner, read_back, request, rows

from tidings import Event, Subscription
from tidings.rank.bulk.methods import AttributeNumbers, RelaxedMethod
from tidings.rank.bulk.protocol import Owner
from tidings.score.exact import Exact
from tidings.score.relaxed import Relaxed

WANTED = [
    {"where": "a = 1"},
    {"where": "a = 1 and b >= 1"},
    {"where": "a = 1 and b >= 1 or c = 1"},
    {"any": [["a = 1", 0.1], ["b >= 1", 0.2], ["c = 1", 0.3]]},
    {"any": [["a = 1", 0.0], ["c = 0", 0.5, "inactive"]]},
    {"any": [["c = 1", 0.7], ["c >= 1", 0.7]]},
]
EVENTS = [
    Event(f"e{a}{b}{c}", {"a": a, "b": b, "c": c}, 0)
    for a in (1, 2)
    for b in (0, 1)
    for c in (0, 1)
]
UNSURE = [
    Event("unsure", {"a": 1, "b": 1, "c": 1, "z": 1}, 0, probabilities={"a": 0.25, "z": 0.1}),
    Event("sure", {"a": 1, "c": 1}, 0),
    Event("doubtful", {"b": 1, "c": 1}, 0, probabilities={"b": 0.0, "c": 0.5}),
]
sets = st.lists(st.sampled_from(range(len(WANTED))), max_size=4)


def subscription(number: int, kind: int) -> Subscription:
    return Subscription(f"s{number}", "u", **WANTED[kind])  # type: ignore[arg-type]


def owners_of(drawn: Sequence[Sequence[int]]) -> list[Owner]:
    """Return owners 0, 3, 6, ... with numbers of subscriptions that have gaps."""
    return [
        owner(
            3 * place,
            "relaxed",
            {
                10 * place + 2 * n: subscription(10 * place + 2 * n, kind)
                for n, kind in enumerate(kinds)
            },
        )
        for place, kinds in enumerate(drawn)
    ]


def check(method: RelaxedMethod, owners: Sequence[Owner], events: Sequence[Event]) -> None:
    numbered = {
        number: subscription
        for owner in owners
        for number, subscription in owner.subscriptions.items()
    }
    matches = method.rank(request(events, numbered, partial=True))
    for place, event in enumerate(events):
        assert rows(matches, place) == expected_rows(owners, event)


@given(st.lists(sets, min_size=1, max_size=3))
def test_ranks_are_those_of_the_scorer(drawn: list[list[int]]) -> None:
    owners, method = owners_of(drawn), RelaxedMethod()
    method.update(owners)
    check(method, owners, EVENTS)
    check(method, owners, UNSURE)


@given(st.lists(sets, min_size=1, max_size=3))
def test_a_method_that_was_written_and_read_ranks_alike(drawn: list[list[int]]) -> None:
    owners, method = owners_of(drawn), RelaxedMethod()
    method.update(owners)
    check(read_back(method, owners), owners, UNSURE)


@given(st.lists(sets, min_size=2, max_size=2), st.lists(sets, min_size=2, max_size=2))
def test_an_update_replaces_all_that_was_written(
    before: list[list[int]], after: list[list[int]]
) -> None:
    method, old, new = RelaxedMethod(), owners_of(before), owners_of(after)
    method.update(old)
    method.remove([number for each in old for number in each.subscriptions])
    method.update(new)
    method.update(new[1:])
    check(method, new, UNSURE)


def test_the_best_disjunct_counts_and_each_weight_as_its_attribute_is_likely() -> None:
    wanted = {5: Subscription("s", "u", "a = 1 and b >= 1 or c = 1")}
    method = RelaxedMethod()
    method.update([owner(2, "relaxed", wanted)])
    matches = method.rank(request([*EVENTS[-1:], *UNSURE], wanted, partial=True))
    assert [rows(matches, place) for place in range(4)] == [
        [(2, 1.0, [5])],
        [(2, 1.25, [5])],
        [(2, 1.0, [5])],
        [(2, 0.5, [5])],
    ]


def test_removed_subscriptions_and_unknown_numbers_get_no_rank() -> None:
    wanted = {number: subscription(number, 0) for number in (0, 1, 700)}
    method = RelaxedMethod()
    method.update([owner(0, "relaxed", {0: wanted[0]}), owner(1, "relaxed", {1: wanted[1]})])
    method.remove([1, 9000])
    matches = method.rank(request(EVENTS[4:5] + EVENTS[:1], wanted, partial=True))
    assert [rows(matches, place) for place in range(2)] == [[], [(0, 1.0, [0])]]


def test_no_events_have_no_matches() -> None:
    matches = RelaxedMethod().rank(request([], {}, partial=True))
    assert (matches.starts.tolist(), len(matches.ranks)) == ([0], 0)


def test_only_the_sum_of_the_relaxed_scorer_is_supported() -> None:
    method = RelaxedMethod()
    assert method.supports(Relaxed())
    assert not any(method.supports(one) for one in (Relaxed("max"), Relaxed(sum)))
    assert not method.supports(Exact())


@pytest.mark.parametrize("order", ["abcab", "aabbc"])
def test_equal_names_have_one_number_until_their_last_use_is_released(order: str) -> None:
    names = AttributeNumbers()
    numbers = [names.take(name) for name in order]
    assert len(set(numbers)) == 3
    assert names.names() == ["a", "b", "c"]
    names.release([names.find("b")])
    assert names.find("b") == 1
    names.release([1])
    assert names.find("b") == -1
    assert names.names() == ["a", "", "c"]
    assert (names.take("d"), names.take("e")) == (1, 3)


def test_names_without_a_use_are_free() -> None:
    names = AttributeNumbers.of(["x", "unused", "z"], [2, 0, 1])
    assert [names.find(name) for name in ("x", "unused", "z")] == [0, -1, 2]
    assert names.take("new") == 1
    assert names.names() == ["x", "new", "z"]
