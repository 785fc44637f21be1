"""Matches are split by bucket as lists would be, and spans are sorted as lists are."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.rank.bulk.kernels.bucketize import (
    Given,
    Known,
    Split,
    count_matches,
    sort_spans,
    split_matches,
)

BUCKETS = 3
WHOSE = np.array([0, 2, 2, 0, 2, 0], np.int32)  # the buckets of six people; one bucket is empty
MATCH = st.tuples(st.integers(0, 5), st.lists(st.integers(0, 1), min_size=1, max_size=2))


def laid(events):
    """Lay out matches (owner, which of its two subscriptions) as a fan-out does."""
    matches = [match for event in events for match in event]
    wishes = [[2 * owner + each for each in some] for owner, some in matches]
    return Given(
        np.cumsum([0, *map(len, events)]),
        np.array([owner for owner, _ in matches], np.int32),
        np.arange(len(matches), dtype=np.float64),
        np.cumsum([0, *map(len, wishes)]),
        np.array([each for some in wishes for each in some], np.int32),
        WHOSE,
    )


def split(given):
    counts = np.zeros((BUCKETS, 4), np.int64)
    count_matches(given, counts)
    firsts, done = np.cumsum(counts, axis=0) - counts, np.zeros_like(counts)
    out = Split.room(len(given.owners), len(given.matched))
    known = Known(np.zeros(6, np.int32), np.zeros(12, np.int32))
    split_matches(given, firsts, known, done, out)
    assert (done[:, :2] == counts[:, :2]).all()
    return firsts, done, out


@given(st.lists(st.lists(MATCH, max_size=4, unique_by=lambda match: match[0]), max_size=5))
def test_every_match_is_in_its_bucket_in_the_order_of_events(events):
    given = laid(events)
    firsts, done, out = split(given)
    rank = iter(range(len(given.owners)))
    wanted: dict[int, list[Any]] = {bucket: [] for bucket in range(BUCKETS)}
    for number, event in enumerate(events):
        for owner, some in event:
            ids = [2 * owner + each for each in some]
            wanted[int(WHOSE[owner])].append((number, owner, float(next(rank)), ids))
    for bucket, expected in wanted.items():
        first, begin = firsts[bucket, 0], firsts[bucket, 1]
        found = []
        for at in range(first, first + done[bucket, 0]):
            end = begin + out.sizes[at]
            ids = [int(out.wishes[firsts[bucket, 1] + each]) for each in out.matched[begin:end]]
            owner = int(out.people[first + out.owners[at]])
            found.append((int(out.events[at]), owner, float(out.ranks[at]), ids))
            begin = end
        assert found == expected
        assert done[bucket, 2] == len({owner for _, owner, _, _ in expected})
        assert done[bucket, 3] == len({each for *_, ids in expected for each in ids})


@given(st.lists(st.lists(st.integers(0, 50), unique=True, max_size=40), max_size=5))
def test_spans_are_sorted_by_their_keys(spans):
    keys = np.array([key for span in spans for key in span], np.int64)
    values = (1000 - keys).astype(np.int32)
    sort_spans(np.cumsum([0, *map(len, spans)]), keys, values)
    assert keys.tolist() == [key for span in spans for key in sorted(span)]
    assert values.tolist() == [1000 - key for key in keys.tolist()]
