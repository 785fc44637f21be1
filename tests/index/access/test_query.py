"""Queries: answers of several parts are joined, and the k best of all are kept."""

import numpy as np
import pytest
from tests.index.access.workload import events, subscriptions

from tidings.index.access import Access
from tidings.index.access.query import (
    LAST_EPOCH,
    Query,
    ScratchBuffers,
    best_first,
    encode_events,
    merged,
    named,
)
from tidings.index.access.vocabulary import Vocabulary, ordered
from tidings.index.scan import Scan
from tidings.model.conditions.predicate import predicate
from tidings.model.records import Event
from tidings.model.values import Range


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


@pytest.fixture
def vocabulary() -> Vocabulary:
    """Terms 0 (a = 'x'), 1 (a starts with 'x'), 2 (n = 3); slot 0 for numbers of n."""
    vocabulary = Vocabulary()
    for part in (
        predicate("a", "=", "x"),
        predicate("a", "prefix", "x"),
        predicate("n", "=", 3),
        predicate("n", "between", (1, 5)),
    ):
        vocabulary.check(part)
    return vocabulary


def test_texts_are_cached_and_numbers_are_terms_and_values(vocabulary: Vocabulary) -> None:
    encoded, cached, most = encode_events(vocabulary, [Event("e", {"a": "x", "n": 3}, 0)])
    text, term = encoded.items.tolist()
    assert cached.terms[cached.start[text] : cached.start[text + 1]].tolist() == [0, 1]
    assert ~term == 2
    assert (encoded.slots.tolist(), encoded.upper.tolist()) == ([0], ordered(3.0).tolist())
    assert encoded.spans.tolist() == [0, 2, 0, 1]
    assert most >= 3
    assert len(encoded.probabilities) == 0


def test_unknown_attributes_and_texts_leave_no_trace(vocabulary: Vocabulary) -> None:
    unknown = Event("e", {"z": 1, "a": "nothing", "n": "three", "b": [1, "x"]}, 0)
    encoded = encode_events(vocabulary, [unknown]).events
    assert (len(encoded.items), len(encoded.slots)) == (0, 0)


def test_several_values_follow_each_other(vocabulary: Vocabulary) -> None:
    encoded = encode_events(vocabulary, [Event("e", {"n": [3, 7]}, 0)]).events
    assert encoded.slots.tolist() == [0, 0]
    assert sorted(encoded.upper.tolist()) == ordered([3.0, 7.0]).tolist()
    assert [~item for item in encoded.items] == [2]


@pytest.mark.parametrize(("mode", "swapped"), [("overlaps", False), ("contained", True)])
def test_a_range_that_must_be_contained_swaps_its_ends(
    vocabulary: Vocabulary, mode: str, swapped: bool
) -> None:
    encoded = encode_events(vocabulary, [Event("e", {"n": Range(2, 4, mode)}, 0)]).events
    ends = [encoded.lower.tolist(), encoded.upper.tolist()]
    assert ends == [
        ordered(4.0 if swapped else 2.0).tolist(),
        ordered(2.0 if swapped else 4.0).tolist(),
    ]
    assert len(encoded.items) == (0 if swapped else 1)


def test_probabilities_belong_to_the_items_then_to_the_values(vocabulary: Vocabulary) -> None:
    event = Event("e", {"a": "x", "n": 3}, 0, probabilities={"n": 0.25})
    encoded = encode_events(vocabulary, [event, Event("f", {"a": "x"}, 0)]).events
    assert encoded.probabilities.tolist() == [1.0, 0.25, 1.0, 0.25]
