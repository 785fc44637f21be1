"""Queries: answers of several parts are joined, and the k best of all are kept."""

import numpy as np
import pytest
from tests.index.access.workload import events, subscriptions

from tidings.index.access import Access
from tidings.index.access.query import LAST_EPOCH, Query, ScratchBuffers, best_first, merged, named
from tidings.index.scan import Scan


@pytest.mark.parametrize("memtable_size", [0, 8, None])
def test_answers_do_not_depend_on_the_parts_of_the_index(memtable_size: int | None) -> None:
    wanted, asked = subscriptions(200, 12), events(5, 12)
    access = Access(wanted[:120], memtable_size=memtable_size)
    for one in wanted[120:]:
        access.add(one)
    scan, answer = Scan(wanted), access.matching_many(asked)
    for position, event in enumerate(asked):
        found = sorted(answer.subscriptions(position), key=lambda one: one.id)
        assert found == scan.matching(event)
    assert access.top_many(asked, 7) == [scan.top(event, 7) for event in asked]
    assert access.top_relaxed_many(asked, 7) == [scan.top_relaxed(event, 7) for event in asked]


def test_ranks_are_named_up_to_their_count() -> None:
    ranks = np.array([5, 0, 6, 0, 7, 0], np.int32)  # numbers and tombstones
    out = np.array([[2, 0, 2], [0, 9, 9], [1, 1, 9]])
    scores = np.array([[3.0, 2.0], [0.0, 0.0], [1.0, 0.0]])
    ids = {5: "a", 6: "b", 7: "c"}
    expected = [[("a", 3.0), ("c", 2.0)], [], [("b", 1.0)]]
    assert named(ranks, out, scores, ids) == expected  # type: ignore[arg-type]


def test_merging_raises_the_bound_of_the_kth() -> None:
    least = np.array([-np.inf, -np.inf])
    tops = merged([[("b", 3.0)], []], [[("a", 3.0), ("c", 1.0)], [("d", 2.0)]], 2, least)
    assert tops == [[("a", 3.0), ("b", 3.0)], [("d", 2.0)]]
    assert least.tolist() == [3.0, -np.inf]


def test_ties_go_to_the_smaller_id() -> None:
    assert sorted([("b", 1.0), ("a", 1.0), ("c", 2.0)], key=best_first) == [
        ("c", 2.0),
        ("a", 1.0),
        ("b", 1.0),
    ]


def test_buffers_are_reused_and_grow() -> None:
    buffers = ScratchBuffers()
    small, again = buffers.touch(10, 10), buffers.touch(40, 20)
    assert again.ranks is small.ranks
    larger = buffers.touch(1000, 20)
    assert larger.ranks is not small.ranks
    assert len(larger.ranks) >= 1000
    assert larger.held is small.held


def test_stamps_of_slots_follow_those_of_terms() -> None:
    access = Access(subscriptions(50, 1))
    query = Query(access.snapshot, events(2, 1), ScratchBuffers())
    stamps = query.scratch(0).stamps
    assert stamps.always == access.snapshot.vocabulary.terms
    stamps.slot_stamp[0] = 7
    assert stamps.stamp[stamps.always + 1] == 7


def test_buffers_are_exhausted_before_epochs_overflow() -> None:
    buffers = ScratchBuffers()
    assert not buffers.exhausted
    buffers._epoch[0] = LAST_EPOCH + 1
    assert buffers.exhausted
