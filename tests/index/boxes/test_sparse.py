"""Sparse boxes: only existing predicates are compared."""

import numpy as np

from tidings.index.boxes import box_index


def test_an_event_compares_the_predicates_of_its_attributes():
    rng = np.random.default_rng(3)
    low, high = np.full((500, 300), -np.inf), np.full((500, 300), np.inf)
    low[np.arange(500), rng.integers(0, 300, 500)] = 0.0
    index = box_index("sparse", low, high, np.ones((500, 300)))
    event = np.full(300, np.nan)
    event[7] = 1.0
    index.top(event, 500)
    assert index.counters()["predicates"] == np.isfinite(low[:, 7]).sum()
