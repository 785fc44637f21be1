"""Segments: subscriptions by rank, tombstones, and postings built on first use."""

import numpy as np
from tests.index.access.workload import subscriptions

from tidings.index.access.encoding import encode
from tidings.index.access.kernels.records import NEVER
from tidings.index.access.segment import Segment
from tidings.index.access.vocabulary import Vocabulary
from tidings.model.records import Subscription

COUNT = 80


def segment_of(wanted: list[Subscription]) -> Segment:
    vocabulary = Vocabulary()
    return Segment(encode(wanted, range(len(wanted)), vocabulary), vocabulary)


def test_ranks_are_by_score_then_id() -> None:
    wanted = subscriptions(COUNT, 7)
    segment = segment_of(wanted)
    order = sorted(range(COUNT), key=lambda n: (-(wanted[n].score or 0.0), wanted[n].id))
    assert segment.numbers.tolist() == order
    assert segment.scores.tolist() == [wanted[number].score for number in order]


def test_tombstones_hide_from_their_version_on() -> None:
    segment = segment_of(subscriptions(COUNT, 7))
    assert (segment.tombstones == NEVER).all()
    segment.bury(np.array([3, 5]), 2)
    segment.bury(7, 4)
    assert segment.dead == 3
    assert [len(segment.encoded(version)) for version in (1, 2, 4)] == [COUNT, COUNT - 2, COUNT - 3]
    gone = segment.numbers[[3, 5]]
    assert not np.isin(gone, segment.encoded(2).numbers).any()


def test_postings_of_every_check_are_built_once() -> None:
    segment = segment_of(subscriptions(COUNT, 7))
    before = segment.nbytes
    assert not segment.has_partial
    postings = segment.partial_view(0).postings
    assert segment.has_partial
    assert segment.partial_view(1).postings is postings
    assert segment.nbytes > before


def test_the_most_selective_check_comes_first() -> None:
    vocabulary = Vocabulary()
    wanted = [Subscription(f"s{n}", "u", f"common = 1 and rare = {n}") for n in range(50)]
    encoded = encode(wanted, range(50), vocabulary)
    ranked = Segment(encoded, vocabulary).picked(np.arange(50))
    assert ranked.part[::2].tolist() == [1] * 50
    written = Segment(encoded, vocabulary, sort=False).picked(np.arange(50))
    assert written.part[::2].tolist() == [0] * 50


def test_part_numbers_take_the_narrowest_type() -> None:
    few = segment_of([Subscription("s", "u", "a = 1")])
    many = " or ".join(f"a = {number}" for number in range(300))
    assert few.weights.part.dtype == np.uint8
    assert segment_of([Subscription("s", "u", many)]).weights.part.dtype == np.uint16


def test_a_segment_may_be_empty() -> None:
    segment = segment_of([])
    assert (len(segment), segment.size, len(segment.encoded(0))) == (0, 0, 0)
