"""Matching by postings, against a scan of all records of the same segment."""

import numpy as np
import pytest
from tests.index.access.workload import events, subscriptions

from tidings.index.access.encoding import encode
from tidings.index.access.kernels.match import (
    append_by_event,
    match_events,
    scan_events,
    top_events,
)
from tidings.index.access.query import Query, ScratchBuffers
from tidings.index.access.segment import Segment
from tidings.index.access.snapshot import Snapshot
from tidings.index.access.vocabulary import Vocabulary

COUNT, EVENTS = 600, 8


def opened(seed: int) -> tuple[Segment, Query]:
    """Return a segment with some tombstones, and a query of it."""
    vocabulary = Vocabulary()
    segment = Segment(encode(subscriptions(COUNT, seed), range(COUNT), vocabulary), vocabulary)
    segment.bury(np.arange(0, COUNT, 7), 1)
    snapshot = Snapshot.empty(1)._replace(vocabulary=vocabulary, segments=(segment,))
    snapshot.table.add(subscriptions(COUNT, seed))
    return segment, Query(snapshot, events(EVENTS, seed), ScratchBuffers())


def scanned(segment: Segment, query: Query) -> list[list[int]]:
    """Return for each event the ranks that a test of every record finds."""
    starts, out = np.zeros(EVENTS + 1, np.int64), np.empty(EVENTS * COUNT, np.int32)
    scratch = query.scratch(0)._replace(ranks=np.empty(COUNT, np.int32))
    assert scan_events(segment.view(1), query.batch, scratch, 0, starts, out) == EVENTS
    return [sorted(part.tolist()) for part in np.split(out[: starts[-1]], starts[1:-1])]


@pytest.mark.parametrize("seed", range(3))
def test_postings_lead_to_every_match_once(seed: int) -> None:
    segment, query = opened(seed)
    starts, out = np.zeros(EVENTS + 1, np.int64), np.empty(EVENTS * COUNT, np.int32)
    assert match_events(segment.view(1), query.batch, query.scratch(0), 0, starts, out) == EVENTS
    found = [sorted(part.tolist()) for part in np.split(out[: starts[-1]], starts[1:-1])]
    expected = [sorted(segment.numbers[ranks].tolist()) for ranks in scanned(segment, query)]
    assert found == expected
    assert any(expected)


@pytest.mark.parametrize("k", [1, 3, 1000])
def test_the_top_is_the_lowest_ranks_below_the_limit(k: int) -> None:
    segment, query = opened(5)
    limits = np.array([COUNT, 0, 50, 100, COUNT, 1, COUNT, 300], np.int32)
    out = np.empty((EVENTS, k + 1), np.int64)
    top_events(segment.view(1), query.batch, query.scratch(k), limits, out.ravel())
    for row, ranks, limit in zip(out.tolist(), scanned(segment, query), limits, strict=True):
        assert row[1 : 1 + row[0]] == [rank for rank in ranks if rank < limit][:k]


def test_an_event_that_does_not_fit_is_returned_and_resumed() -> None:
    segment, query = opened(2)
    starts, out = np.zeros(EVENTS + 1, np.int64), np.empty(1, np.int32)
    done, calls, whole = 0, 0, scanned(segment, query)
    while done < EVENTS:
        done = match_events(segment.view(1), query.batch, query.scratch(0), done, starts, out)
        out, calls = np.resize(out, 2 * len(out)), calls + 1
    assert calls > 1
    assert np.diff(starts).tolist() == [len(ranks) for ranks in whole]


def test_numbers_are_appended_event_by_event() -> None:
    ends, out = np.array([0, 3]), np.zeros(5, np.int32)
    append_by_event(np.array([1, 2, 3], np.int32), np.array([0, 2, 3]), ends, out)
    append_by_event(np.array([4, 5], np.int32), np.array([0, 1, 2]), ends, out)
    assert out.tolist() == [1, 2, 4, 3, 5]
