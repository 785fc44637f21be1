"""Elementary cells: two points of one cell stab the same intervals."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.index.intervals.elementary_cells import cells_of
from tidings.index.intervals.protocol import rank_intervals

ends = st.one_of(st.integers(0, 6).map(float), st.sampled_from([-math.inf, math.inf]))
rows = st.lists(st.tuples(ends, ends).map(sorted), max_size=12)


@given(rows, st.floats(-1, 7))
def test_an_interval_contains_the_cells_of_its_points(drawn, q):
    low, high = np.array(drawn, float).reshape(-1, 2).T
    intervals = rank_intervals(low, high, np.zeros(len(low)))
    cells = cells_of(intervals)
    cell = np.searchsorted(cells.starts, q, "right")
    stabbed = (intervals.low <= q) & (q <= intervals.high)
    assert ((cells.first <= cell) & (cell <= cells.last)).tolist() == stabbed.tolist()
    assert cells.count <= 2 * len(low) + 1
