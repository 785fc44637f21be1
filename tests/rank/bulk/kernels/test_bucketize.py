"""Matches are split by bucket as lists would be, and spans are sorted as lists are."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.rank.bulk.kernels.bucketize import (
    MATCHED,
    MATCHES,
    SUBSCRIBERS,
    SUBSCRIPTIONS,
    sort_spans,
    split_by_bucket,
)
from tidings.rank.matches import Matches

BUCKETS = 3
HOMES = np.array([0, 2, 2, 0, 2, 0], np.int32)  # the buckets of six subscribers; one is empty
MATCH = st.tuples(st.integers(0, 5), st.lists(st.integers(0, 1), min_size=1, max_size=2))
EVENTS = st.lists(st.lists(MATCH, max_size=4, unique_by=lambda match: match[0]), max_size=5)


def columns(events) -> Matches:
    """Write matches (subscriber, which of its two subscriptions) as a ranker does."""
    matches = [match for event in events for match in event]
    matched = [[2 * subscriber + which for which in some] for subscriber, some in matches]
    return Matches(
        np.cumsum([0, *map(len, events)]),
        np.array([subscriber for subscriber, _ in matches], np.int32),
        np.arange(len(matches), dtype=np.float64),
        np.cumsum([0, *map(len, matched)]),
        np.array([number for numbers in matched for number in numbers], np.int32),
    )


@given(EVENTS)
def test_every_match_is_in_its_bucket_in_the_order_of_events(events):
    matches = columns(events)
    out, firsts, lengths = split_by_bucket(matches, HOMES, BUCKETS, 12)
    rank = iter(range(len(matches.subscribers)))
    expected: dict[int, list[Any]] = {bucket: [] for bucket in range(BUCKETS)}
    for number, event in enumerate(events):
        for subscriber, some in event:
            ids = [2 * subscriber + which for which in some]
            expected[int(HOMES[subscriber])].append((number, subscriber, float(next(rank)), ids))
    for bucket, rows in expected.items():
        first, begin = firsts[bucket, MATCHES], firsts[bucket, MATCHED]
        names = out.subscription_names[begin:]
        read = []
        for place in range(first, first + lengths[bucket, MATCHES]):
            end = begin + out.sizes[place]
            ids = [int(names[number]) for number in out.matched[begin:end]]
            subscriber = int(out.subscriber_names[first + out.subscribers[place]])
            read.append((int(out.events[place]), subscriber, float(out.ranks[place]), ids))
            begin = end
        assert read == rows
        assert lengths[bucket, SUBSCRIBERS] == len({subscriber for _, subscriber, _, _ in rows})
        assert lengths[bucket, SUBSCRIPTIONS] == len({number for *_, ids in rows for number in ids})


@given(st.lists(st.lists(st.integers(0, 50), unique=True, max_size=40), max_size=5))
def test_spans_are_sorted_by_their_keys(spans):
    keys = np.array([key for span in spans for key in span], np.int64)
    values = (1000 - keys).astype(np.int32)
    sort_spans(np.cumsum([0, *map(len, spans)]), keys, values)
    assert keys.tolist() == [key for span in spans for key in sorted(span)]
    assert values.tolist() == [1000 - key for key in keys.tolist()]
