"""MatchScratch buffers are allocated once, grow, and are replaced before epochs overflow."""

from tests.index.access.workload import events, subscriptions

from tidings.index.access import Access
from tidings.index.access.query import Query
from tidings.index.access.scratch import LAST_EPOCH, ScratchBuffers


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
