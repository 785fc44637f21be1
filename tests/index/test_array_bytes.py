"""The bytes of arrays, in tuples of any depth."""

import numpy as np

from tidings.index.array_bytes import total_bytes
from tidings.index.intervals.kernels.rtree import RTree


def test_arrays_count_wherever_they_are_in_nested_tuples():
    arrays = (np.zeros(2), ((np.zeros(3, np.int32),), np.zeros((2, 2), np.uint8)))
    assert total_bytes(arrays, np.zeros(1)) == 16 + 12 + 4 + 8


def test_values_other_than_arrays_count_nothing():
    assert total_bytes() == total_bytes(7, "seven", None, ()) == 0


def test_named_tuples_count_their_fields():
    tree = RTree(np.zeros(4), np.zeros(2, np.int64), np.zeros(1, np.int32))
    assert total_bytes(tree) == 32 + 16 + 4


def test_a_view_counts_the_bytes_that_it_shows():
    assert total_bytes(np.zeros(100)[::10]) == 80
