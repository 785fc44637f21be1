"""Snapshots: a reader sees the version it holds, whatever is written later."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.access.workload import subscriptions

from tidings.errors import InvalidSubscription
from tidings.index.access import Access
from tidings.index.access.encoding import encode
from tidings.index.access.segment import Segment
from tidings.index.access.snapshot import (
    RECORDS,
    IdTable,
    Memtable,
    Snapshot,
    StoredConjunction,
    SubscriptionTable,
    _halves,
    checked_scores,
    conjunctions_of,
    stored_conjunctions,
)
from tidings.index.access.vocabulary import Vocabulary, ordered
from tidings.index.protocol import own_score
from tidings.model.records import Event, Subscription

EVENT = Event("e", {"x": 1}, 0)


def wanted(name: str) -> Subscription:
    return Subscription(name, "u", "x = 1")


def test_an_empty_snapshot_has_no_parts() -> None:
    snapshot = Snapshot.empty(5)
    assert (snapshot.version, snapshot.size, snapshot.segments) == (5, 0, ())
    assert (len(snapshot.table.subscriptions), snapshot.vocabulary.terms) == (0, 0)
    assert Snapshot.empty().version == 0


def test_empty_snapshots_share_nothing() -> None:
    one, other = Snapshot.empty(), Snapshot.empty()
    assert one.memtable is not other.memtable
    assert one.vocabulary is not other.vocabulary
    assert one.table is not other.table


def test_a_later_version_has_the_same_parts_and_all_of_the_memtable() -> None:
    access = Access([wanted("a")])
    before = access.snapshot
    access.add(wanted("b"))
    after = access.snapshot
    assert after.memtable is before.memtable
    assert after.size > before.size
    later = before.at(9)
    assert (later.version, later.size) == (9, after.size)
    assert later[:4] == before[:4]


def test_a_snapshot_keeps_its_size_and_version() -> None:
    access = Access([wanted("a")])
    held = access.snapshot
    size, version = held.size, held.version
    access.add(wanted("b"))
    access.remove("a")
    assert (held.size, held.version) == (size, version)
    assert access.snapshot.version > version
    assert [one.id for one in access.matching(EVENT)] == ["b"]


@given(st.lists(st.tuples(st.integers(0, 12), st.booleans()), max_size=300), st.integers(0, 200))
def test_ids_are_found_as_in_a_dict(steps: list[tuple[int, bool]], more: int) -> None:
    table, numbers, ids = IdTable(), dict[str, int](), list[str]()
    for which, stays in steps:
        name = f"n{which}"
        if name in numbers:
            table.remove(name, ids)
            del numbers[name]
        if stays:
            ids.append(name)
            numbers[name] = len(ids) - 1
            table.add([name], [numbers[name]], ids)
        assert table.find(name, ids) == numbers.get(name, -1)
    new = {f"n{which}": len(ids) + which for which in range(20, 20 + more)}
    ids += [""] * 20 + [*new]
    table.add([*new], [*new.values()], ids)
    numbers |= new
    assert len(table) == len(numbers)
    assert table.numbers().tolist() == sorted(numbers.values())
    assert all(table.find(name, ids) == number for name, number in numbers.items())
    assert table.find("unknown", ids) == -1


def test_an_id_that_comes_and_goes_reuses_its_tombstone() -> None:
    table, ids = IdTable(), ["a"]
    before = table.nbytes
    for _ in range(1000):
        table.add(["a"], [0], ids)
        table.remove("a", ids)
    assert table.nbytes == before
    assert table.find("a", ids) == -1


def subscription(name: str, score: float | None = None) -> Subscription:
    return Subscription(name, "u", "x = 1", score=score)


def test_a_later_table_reuses_the_numbers_of_removed_subscriptions() -> None:
    table = SubscriptionTable()
    assert table.add([subscription(name) for name in "abcd"]) == [0, 1, 2, 3]
    assert table.add_rescored([3], [7.0]) == [4]
    later = table.kept(np.array([True, False, False, True, True]))
    assert (later.ids, later.free) == (["a", "", "", "d", "d"], [2, 1])
    assert later.subscriptions[4].score == 7.0
    assert later.add([subscription(name) for name in "efg"]) == [1, 2, 5]
    assert later.ids == ["a", "e", "f", "d", "d", "g"]


def test_a_rescored_subscription_is_built_when_it_is_read() -> None:
    table = SubscriptionTable()
    table.add([subscription("a", 1.0)])
    table.add_rescored([0], [2.0])
    assert table.subscriptions.scores == {1: 2.0}
    assert table.subscriptions[1].score == 2.0
    assert table.subscriptions[1] is table.subscriptions[1]
    assert table.subscriptions.scores == {}


def test_scores_are_checked_by_the_model_where_they_may_be_invalid() -> None:
    held = [subscription("a"), None]
    assert checked_scores(held, [3, 2.5]).tolist() == [3.0, 2.5]
    with pytest.raises(InvalidSubscription):
        checked_scores(held, [-1.0, 2.5])


COUNT = 60


@given(st.floats(allow_nan=False))
def test_two_words_have_the_order_of_the_float(value: float) -> None:
    high, low = _halves(value)
    assert (high << 32) | (low & 0xFFFFFFFF) == int(ordered(value)[0])


def filled(seed: int) -> tuple[Memtable, list[str], Vocabulary]:
    memtable, vocabulary = Memtable(), Vocabulary()
    wanted = subscriptions(COUNT, seed)
    for number, one in enumerate(wanted):
        conjunctions = conjunctions_of(one, vocabulary)
        assert memtable.fits(conjunctions)
        assert memtable.append(number, own_score(one), conjunctions) == number
    return memtable, [one.id for one in wanted], vocabulary


@pytest.mark.parametrize("seed", range(3))
def test_appended_subscriptions_are_those_that_were_encoded(seed: int) -> None:
    memtable, ids, vocabulary = filled(seed)
    expected = encode(subscriptions(COUNT, seed), range(COUNT), vocabulary)
    encoded = memtable.encoded(0, ids)
    for name in ("numbers", "scores", "by_id", "owner", "size", "term", "part", "members"):
        assert np.array_equal(getattr(encoded, name), getattr(expected, name)), name


def test_tombstones_hide_and_a_view_ends_at_its_size() -> None:
    memtable, ids, _ = filled(1)
    size = memtable.size
    memtable.bury(np.array([0, 2]), 3)
    assert memtable.dead == 2
    assert len(memtable.encoded(2, ids)) == COUNT
    assert memtable.encoded(3, ids).numbers.tolist() == [1, *range(3, COUNT)]
    assert memtable.view(size, 3, ids).size == size


def test_stored_conjunctions_can_be_appended_again() -> None:
    memtable, ids, vocabulary = filled(2)
    encoded = encode(subscriptions(COUNT, 2), range(COUNT), vocabulary)
    segment = Segment(encoded, vocabulary, sort=False)
    copy = Memtable()
    for number in range(COUNT):
        rank = int(np.flatnonzero(segment.numbers == number)[0])
        copy.append(number, float(segment.scores[rank]), stored_conjunctions(segment, rank))
        stored = stored_conjunctions(memtable, number)
        assert [list(one.words) for one in stored] == [
            list(one.words) for one in stored_conjunctions(copy, number)
        ]
    assert np.array_equal(copy.encoded(0, ids).part, memtable.encoded(0, ids).part)


def test_a_full_memtable_takes_no_more() -> None:
    memtable, one = Memtable(), StoredConjunction([1], [0], [1.0])
    for number in range(RECORDS):
        assert memtable.fits([one])
        memtable.append(number, 1.0, [one])
    assert not memtable.fits([one])
    assert not Memtable().fits([StoredConjunction([1], [1 << 16], [1.0])])
