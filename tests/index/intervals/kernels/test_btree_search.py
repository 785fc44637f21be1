"""The static B-tree against numpy's binary search."""

import math

import numpy as np
import pytest

from tidings.index.intervals.kernels.btree_search import (
    count_node,
    count_node_plain,
    count_until,
    search_tree,
)


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 255, 256, 257, 5000])
def test_counts_are_those_of_a_binary_search(size):
    numbers = np.sort(np.random.default_rng(size).integers(0, 2 * size + 1, size)).astype(float)
    tree = search_tree(numbers)
    probes = [*numbers[:20], *(numbers[-20:] + 0.5), -1.0, math.inf, -math.inf]
    for q in probes:
        assert count_until(tree, q) == np.searchsorted(numbers, q, "right")
    assert count_until(tree, math.nan) == 0


def test_a_node_is_counted_as_by_its_plain_twin():
    keys = np.append(np.arange(12.0), [np.nan] * 4)
    for q in (-1.0, 0.0, 5.5, 11.0, 99.0, math.nan):
        assert count_node(keys, 0, q) == count_node_plain(keys, 0, q)
