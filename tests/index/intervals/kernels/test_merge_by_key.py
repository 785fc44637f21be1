"""Merging an ordered and an unordered source against sorting both."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.index.intervals.kernels.merge_by_key import (
    WORST,
    Counts,
    TwoSources,
    is_too_late,
    key_of,
    last_key,
    merge,
    offer,
    score_of,
)

entries = st.lists(st.integers(-5, 0), max_size=12)


@given(st.integers(1, 8), entries, entries)
def test_the_k_best_of_both_sources_in_order(k, old_keys, new_keys):
    old = sorted((key, 2 * id) for id, key in enumerate(old_keys))[:k]
    new = [(key, 2 * id + 1) for id, key in enumerate(new_keys)]
    best = TwoSources(*np.zeros((4, k), np.int64))
    best.old_keys[: len(old)] = [key for key, _ in old]
    best.old_ids[: len(old)] = [id for _, id in old]
    counts = Counts(len(old), 0)
    for key, id in new:
        if not is_too_late(best, counts, key, id):
            counts = offer(best, counts, key, id)
    expected = sorted(old + new)[:k]
    assert last_key(best, counts) == (expected[-1][0] if len(expected) == k else WORST)
    count = merge(best, counts)
    assert best.old_ids[:count].tolist() == [id for _, id in expected]


@given(st.floats(0, allow_infinity=False), st.floats(0, allow_infinity=False))
def test_keys_order_like_falling_scores(one, other):
    assert score_of(key_of(one)) == one
    assert (key_of(one) < key_of(other)) == (one > other)
    assert key_of(-0.0) == key_of(0.0) == WORST
