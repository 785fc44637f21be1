"""Records: what is written is read back, and holds when its predicates do."""

from random import Random

import numpy as np
import pytest
from tests.index.access.workload import event, subscriptions

from tidings.index.access.encoding import encode
from tidings.index.access.kernels.records import (
    HEAD,
    read_bound,
    record_holds,
    stamp_event,
    write_bound,
)
from tidings.index.access.query import Query, ScratchBuffers
from tidings.index.access.segment import Segment
from tidings.index.access.snapshot import Snapshot
from tidings.index.access.vocabulary import Vocabulary, ordered
from tidings.model.records import Event, Subscription
from tidings.model.values import Range


@pytest.mark.parametrize(
    "value", [0, 1, -1, 1 << 31, -(1 << 31), 1 << 62, -(1 << 62), (1 << 63) - 1]
)
def test_a_bound_is_two_words(value: int) -> None:
    words = np.zeros(3, np.int32)
    write_bound(words, 1, value)
    assert read_bound(words, 1) == value


def test_records_are_read_back_as_they_were_encoded() -> None:
    wanted, vocabulary = subscriptions(200, 3), Vocabulary()
    encoded = encode(wanted, range(200), vocabulary)
    segment = Segment(encoded, vocabulary, sort=False)
    read = segment.picked(np.argsort(segment.numbers))
    for column in ("numbers", "scores", "by_id", "owner", "size", "term", "part", "members"):
        assert np.array_equal(getattr(read, column), getattr(encoded, column)), column
    compared = encoded.term < 0
    for column in ("slot", "low", "high", "kind"):
        assert np.array_equal(getattr(read, column)[compared], getattr(encoded, column)[compared])


def held_conjunctions(subscription: Subscription, of: Event) -> list[bool]:
    groups = [[part for part in group if part.state == "active"] for group in subscription.groups]
    return [all(part.predicate.holds(of.tokens) for part in group) for group in groups if group]


def record_results(wanted: list[Subscription], of: Event) -> list[bool]:
    """Return of each record whether it holds, in the order of the subscriptions."""
    vocabulary = Vocabulary()
    segment = Segment(encode(wanted, range(len(wanted)), vocabulary), vocabulary)
    snapshot = Snapshot.empty()._replace(vocabulary=vocabulary, segments=(segment,))
    query = Query(snapshot, [of], ScratchBuffers())
    scratch, batch = query.scratch(0), query.batch
    stamp_event(scratch.stamps, batch.events, batch.cached, batch.counts, 0)
    results: list[list[bool]] = [[] for _ in wanted]
    words, record = segment.records.words, 0
    while record < len(words):
        number = int(segment.numbers[words[record] >> 1])
        tested = record_holds(words, record, scratch.stamps)
        assert 0 < abs(tested) <= words[record + 1] - record - HEAD
        results[number].append(tested > 0)
        record = int(words[record + 1])
    return [result for own in results for result in own]


@pytest.mark.parametrize("seed", range(5))
def test_a_record_holds_if_all_its_predicates_do(seed: int) -> None:
    wanted, of = subscriptions(150, seed), event(0, Random(seed))
    expected = [result for one in wanted for result in held_conjunctions(one, of)]
    assert record_results(wanted, of) == expected


@pytest.mark.parametrize("mode", ["overlaps", "contained"])
@pytest.mark.parametrize(("low", "high"), [(2, 4), (3, 3), (5, 9), (0, 20)])
def test_a_range_is_compared_by_its_ends(mode: str, low: int, high: int) -> None:
    of = Event("e", {"x": Range(low, high, mode)}, 0)
    conditions = ["x between 3 and 6", "x <> 3", "x = 3", "x >= 5", "x <= 4", "x in (3, 9)"]
    conditions += ["x not in (3, 9)", "x not in (30, 90)", "x not between 3 and 6", "x is not null"]
    wanted = [Subscription(f"s{n}", "u", where) for n, where in enumerate(conditions)]
    assert record_results(wanted, of) == [one.matches(of) for one in wanted]


def test_ordered_bounds_compare_like_floats() -> None:
    values = np.array([-np.inf, -2.5, -0.0, 0.0, 1e-300, 3.0, np.inf])
    assert (np.diff(ordered(values)) >= 0).all()
    assert ordered(-0.0) == ordered(0.0)
