"""The R-tree walk: masks against their plain twin, and padding of answers."""

import numpy as np

from tidings.index.intervals.kernels.rtree import fill_rest, within, within_plain


def test_masks_are_those_of_the_plain_twin():
    rng = np.random.default_rng(1)
    low = rng.integers(0, 9, 100).astype(float)
    extents = np.concatenate([low, low + rng.integers(0, 4, 100)])
    extents[95:100] = extents[195:] = np.nan
    for first in (0, 3, 36):
        for below, above in ((4.0, 4.0), (6.0, 2.0), (2.0, 6.0), (np.nan, 1.0)):
            expected = within_plain(extents, first, below, above)
            assert within(extents, first, below, above) == expected


def test_rows_are_padded_after_their_counts():
    out = np.ones((3, 2), np.int64)
    fill_rest(out, np.array([0, 1, 2]))
    assert out.tolist() == [[-1, -1], [1, -1], [1, 1]]
