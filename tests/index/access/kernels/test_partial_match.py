"""Partial matching: by postings as by a scan, and scores as the definition adds them up."""

from math import fsum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.access.workload import events, subscriptions

from tidings.index.access.encoding import encode
from tidings.index.access.kernels.match import SegmentView
from tidings.index.access.kernels.partial_match import Hits, insert, relaxed_tops, touch_events
from tidings.index.access.postings import NO_POSTINGS
from tidings.index.access.query import Query, ScratchBuffers
from tidings.index.access.segment import Segment
from tidings.index.access.snapshot import Snapshot
from tidings.index.access.vocabulary import Vocabulary
from tidings.model.records import Event, Subscription
from tidings.model.values import rounded

COUNT = 300


def opened(wanted: list[Subscription], asked: list[Event]) -> tuple[Segment, Query, ScratchBuffers]:
    vocabulary, buffers = Vocabulary(), ScratchBuffers()
    segment = Segment(encode(wanted, range(len(wanted)), vocabulary), vocabulary)
    snapshot = Snapshot.empty()._replace(vocabulary=vocabulary, segments=(segment,))
    snapshot.table.add(wanted)
    return segment, Query(snapshot, asked, buffers), buffers


def touched(view: SegmentView, query: Query, buffers: ScratchBuffers, count: int) -> list[object]:
    size = 8 * COUNT * count
    out = Hits(
        np.zeros(count + 1, np.int64),
        np.empty(size, np.int32),
        np.zeros(size, np.int64),
        np.empty(size, np.int32),
    )
    touch = buffers.touch(len(view.records.offsets), len(view.weights.part))
    assert touch_events(view, query.batch, query.scratch(0), touch, 0, out) == count
    parts = [sorted(part.tolist()) for part in np.split(out.parts, out.part_starts[1:])]
    return [
        sorted((int(out.numbers[n]), parts[n]) for n in range(out.starts[e], out.starts[e + 1]))
        for e in range(count)
    ]


@pytest.mark.parametrize("seed", range(3))
def test_postings_lead_to_every_check_that_holds_once(seed: int) -> None:
    wanted, asked = subscriptions(COUNT, seed), events(4, seed)
    segment, query, buffers = opened(wanted, asked)
    view = segment.partial_view(0)
    by_scan = touched(view._replace(postings=NO_POSTINGS), query, buffers, 4)
    assert touched(view, query, buffers, 4) == by_scan
    assert any(by_scan)


def relaxed_score(subscription: Subscription, event: Event) -> float:
    """Return the score as RPS defines it."""
    return max(
        rounded(
            fsum(
                part.weight * event.probabilities.get(part.predicate.attribute, 1.0)
                for part in group
                if part.state == "active" and part.predicate.holds(event.tokens)
            )
        )
        for group in subscription.groups
    )


@pytest.mark.parametrize("chance", [{}, {"g0": 0.25, "n1": 0.5, "m": 0.0}])
def test_the_best_have_the_scores_of_the_definition(chance: dict[str, float]) -> None:
    wanted = subscriptions(COUNT, 4)
    drawn = events(3, 9)
    asked = [Event(one.id, one.attributes, 0, probabilities=chance) for one in drawn]
    segment, query, buffers = opened(wanted, asked)
    view, k = segment.partial_view(0), 10
    scores, out = np.empty((3, k)), np.empty((3, k + 1), np.int64)
    touch = buffers.touch(len(view.records.offsets), len(view.weights.part))
    relaxed_tops(view, query.batch, query.scratch(k), touch, scores, out.ravel())
    for event, row, best in zip(asked, out.tolist(), scores.tolist(), strict=True):
        ids = [wanted[segment.numbers[rank]].id for rank in row[1 : 1 + row[0]]]
        scored = [(one.id, relaxed_score(one, event)) for one in wanted if one.touches(event)]
        expected = sorted(scored, key=lambda pair: (-pair[1], pair[0]))[:k]
        assert list(zip(ids, best, strict=False)) == expected


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), max_size=12), st.integers(1, 5))
def test_the_best_stay_in_order_of_score_then_id(drawn: list[float], k: int) -> None:
    order = np.arange(len(drawn), dtype=np.int32)[::-1].copy()  # later ranks have smaller ids
    scores, ranks, size = np.zeros(k), np.zeros(k, np.int64), 0
    for rank, score in enumerate(drawn):
        size = insert(scores, ranks, size, order, (score, rank))
    expected = sorted(range(len(drawn)), key=lambda rank: (-drawn[rank], order[rank]))[:k]
    assert ranks[:size].tolist() == expected
    assert scores[:size].tolist() == [drawn[rank] for rank in expected]
