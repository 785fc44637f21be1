"""Strict covers of each owner as arrays are those that the scan finds."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.papers.cover_graph.drawn import conditions, subscriptions

from tidings.compiled.arrays import Ragged
from tidings.model.conditions import cover_bulk
from tidings.model.conditions.cover_bulk import strictly_covered
from tidings.model.conditions.implication import strictly_covers
from tidings.model.conditions.parser import parse
from tidings.model.conditions.predicate import Condition
from tidings.model.records import Subscription
from tidings.score.preference import covers_among, strict_covers
from tidings.testing import workload

OWNED = st.lists(st.tuples(conditions(), st.sampled_from([3, 1, 2])), max_size=12)


def listed(found: Ragged, count: int) -> list[list[int]]:
    return [found.run(number).tolist() for number in range(count)]


def by_scan(owned: list[tuple[Any, Any]]) -> list[list[int]]:
    return [
        [
            place
            for place, (narrow, other) in enumerate(owned)
            if other == owner and strictly_covers(wide, narrow)
        ]
        for wide, owner in owned
    ]


@given(OWNED)
def test_the_arrays_hold_what_the_scan_finds_for_each_owner(
    owned: list[tuple[Condition, int]],
) -> None:
    pairs = [(condition.conjunctions, owner) for condition, owner in owned]
    found = strictly_covered([each for each, _ in pairs], [owner for _, owner in pairs])
    assert listed(found, len(pairs)) == by_scan(pairs)
    assert found.values.dtype == np.int32
    assert len(found.starts) == len(pairs) + 1
    assert found.starts[0] == 0
    assert found.starts[-1] == len(found.values)


@given(st.lists(st.integers(0, 99), unique=True, max_size=8), st.data())
def test_the_scorer_prepares_the_covers_that_the_scan_finds(
    numbers: list[int], data: st.DataObject
) -> None:
    """Also of subscriptions without an active predicate, which nothing matches."""
    mine = [data.draw(subscriptions(f"s{number}")) for number in numbers]
    assert covers_among(mine) == strict_covers(mine)


def test_many_subscribers_at_once_have_the_covers_that_each_has_alone() -> None:
    work = workload(seed=5, subscribers=200)
    owners = [subscription.subscriber for subscription in work.subscriptions]
    found = strictly_covered(
        [subscription.conjunctions for subscription in work.subscriptions], owners
    )
    owned: dict[str, list[Subscription]] = {}
    for subscription in work.subscriptions:
        owned.setdefault(subscription.subscriber, []).append(subscription)
    expected = {
        name: below for mine in owned.values() for name, below in strict_covers(mine).items()
    }
    assert any(expected.values())
    for number, each in enumerate(work.subscriptions):
        names = {work.subscriptions[place].id for place in found.run(number).tolist()}
        assert names == expected[each.id]


def test_owners_need_not_stand_together() -> None:
    texts = ["x > 1", "x > 2", "x > 3", "x > 4", "x > 5"]
    found = strictly_covered([parse(text).conjunctions for text in texts], list("abaab"))
    assert listed(found, 5) == [[2, 3], [4], [3], [], []]


def test_nobody_owns_nothing() -> None:
    found = strictly_covered([], [])
    assert found.starts.tolist() == [0]
    assert found.values.tolist() == []


def test_one_condition_covers_no_other() -> None:
    assert strictly_covered([parse("x = 1").conjunctions], ["a"]).starts.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("a = ''", "a < ''"),
        ("a = ''", "a <= '' and x = 1"),
        ("a = 'b'", "a between 'b' and 'b' and x = 1"),
        ("a in ('b')", "a = 'b' and x = 1"),
        ("x = 1", "x in (1) and y = 1"),
        ("b", "b != false and x = 1"),
        ("x = 0", "x = -0.0 and y = 1"),
        ("x = 1 or y = 2", "x = 1 and y = 1"),
    ],
)
def test_a_single_value_is_known_in_every_writing(wide: str, narrow: str) -> None:
    texts = [parse(each).conjunctions for each in (wide, narrow)]
    assert listed(strictly_covered(texts, [0, 0]), 2) == [[1], []]


def test_few_pairs_are_compared_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the pairs that one owner has, only those with the same attributes and values."""
    judged: list[tuple[Any, Any]] = []

    def judge(wide: Any, narrow: Any, _work: Any) -> bool:
        judged.append((wide, narrow))
        return strictly_covers(wide, narrow)

    monkeypatch.setattr(cover_bulk, "strictly_covers", judge)
    texts = [f"topic in ('t{number}') and size > {number % 3}" for number in range(30)]
    texts += [f"topic in ('t{number}')" for number in range(30)]
    found = strictly_covered([parse(text).conjunctions for text in texts], [0] * 60)
    assert len(found.values) == 30
    assert 30 <= len(judged) < 60 * 59 / 10


def test_intervals_texts_and_booleans_are_not_compared_exactly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def judge(*_: Any) -> bool:
        raise AssertionError

    monkeypatch.setattr(cover_bulk, "strictly_covers", judge)
    texts = ["a = 'x' and b = true and c > 3", "a = 'x' and b = true", "a = 'y'", "b and a = 'x'"]
    texts += ["b = false", "c = 3", "c between 3 and 4 and a = 'y'", "c > 2", "a = '3'"]
    found = strictly_covered([parse(text).conjunctions for text in texts], [0] * len(texts))
    assert listed(found, len(texts)) == [[], [0], [6], [0], [], [], [], [0, 5, 6], []]


def test_two_texts_of_one_attribute_are_compared_exactly() -> None:
    """An event with a list can have both."""
    texts = ["a = 'x' and a = 'y'", "a = 'y'", "a = 'x'", "a = 'y' and a = 'x' and b = 1"]
    found = strictly_covered([parse(text).conjunctions for text in texts], [0] * 4)
    assert listed(found, 4) == [[3], [0, 3], [0, 3], []]


def test_the_columns_of_many_conditions_are_those_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    work = workload(seed=5, subscribers=100)
    owners = [subscription.subscriber for subscription in work.subscriptions]
    conditions = [subscription.conjunctions for subscription in work.subscriptions]
    expected = strictly_covered(conditions, owners)
    monkeypatch.setattr(cover_bulk, "TOGETHER", 7)
    found = strictly_covered(conditions, owners)
    assert found.starts.tolist() == expected.starts.tolist()
    assert found.values.tolist() == expected.values.tolist()
