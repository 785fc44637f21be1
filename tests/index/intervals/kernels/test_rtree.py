"""The padding of answers."""

import numpy as np

from tidings.index.intervals.kernels.rtree import fill_rest


def test_rows_are_padded_after_their_counts():
    out = np.ones((3, 2), np.int64)
    fill_rest(out, np.array([0, 1, 2]))
    assert out.tolist() == [[-1, -1], [1, -1], [1, 1]]
