"""Bounds on scores: no box that could enter the top k is excluded."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.index.boxes.kernels.score_bounds import MAX_CODES, is_over, least_codes, most_score
from tidings.index.boxes.kernels.topk_heap import TopkHeaps

scores = st.floats(1e-6, 1e6)


@given(scores, st.floats(0.01, 1), st.floats(1e-3, 1e3), st.floats(0, 5))
def test_codes_below_the_least_cannot_reach_the_worst(worst, peak, scale, error):
    least = least_codes(worst, peak, scale, error)
    assert 1 <= least <= MAX_CODES
    if 1 < least < MAX_CODES:
        certain = (least - 1 + error) / scale
        assert most_score(certain, peak) < worst * (1 + 1e-6)


def test_a_full_heap_ends_at_lower_totals_and_at_ties_with_larger_ids():
    heaps = TopkHeaps(np.array([[2.0]]), np.array([[7]]), np.array([1]))
    assert is_over(1.9, 0, 1.0, heaps, 0)
    assert is_over(2.0, 8, 1.0, heaps, 0)
    assert not is_over(2.0, 6, 1.0, heaps, 0)
    assert not is_over(2.1, 99, 1.0, heaps, 0)
    assert not is_over(0.0, 99, 1.0, heaps._replace(sizes=np.array([0])), 0)
