"""The papers' R-trees: a query of the SOPT-R-tree enters few nodes (RPS Theorem 3.2)."""

import os

import numpy as np
import pytest

from tidings.index.intervals.kernels.rtree import LEVELS
from tidings.index.intervals.papers.rtrees import r, sopt_r
from tidings.index.intervals.protocol import rank_intervals

JIT = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"


@pytest.mark.parametrize("length", [0.001, 0.05, 1.0])
def test_at_most_2k_nodes_a_level(length):
    rng = np.random.default_rng(5)
    low = rng.random(6000 if JIT else 300)
    intervals = rank_intervals(low, low + length * rng.random(len(low)), rng.random(len(low)))
    index = sopt_r(intervals)
    assert index.counters()["edges"] <= 3 * len(intervals)
    for q in np.random.default_rng(6).random(50):
        for k in (1, 2, 5, 20):
            index.top(q, k)
            assert max(index.state()[LEVELS:]) <= 2 * k
            assert index.counters()["leaves"] <= 2 * k


def test_the_scored_tree_shares_its_arrays_with_its_ranges():
    index = r(rank_intervals([0.0, 1.0], [2.0, 3.0], [1.0, 2.0]))
    before = index.nbytes
    assert index.ranges.top(2.5, 9.0, 5).tolist() == [1]
    assert index.nbytes == before
