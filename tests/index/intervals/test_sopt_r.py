"""RPS 3.2: the constraint graph is small, the order respects it, and a query enters few nodes."""

import os
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.index.intervals.elementary_cells import cells_of
from tidings.index.intervals.kernels.rtree import LEVELS
from tidings.index.intervals.protocol import rank_intervals
from tidings.index.intervals.sopt_order import arranged, constraint_graph
from tidings.index.intervals.sopt_r import sopt_r
from tidings.index.intervals.sopt_r_simd import (
    block_starts,
    frame_of,
    framed,
    rounded_down,
    sopt_r_64,
)

JIT = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"
EXAMPLES = settings(max_examples=100 if JIT else 15)

rows = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 5), st.integers(0, 4)), min_size=1, max_size=60
)


def ranked(drawn):
    low, length, score = np.array(drawn, float).reshape(-1, 3).T
    return rank_intervals(low, low + length, score)


def random_intervals(size, seed, length):
    rng = np.random.default_rng(seed)
    low = rng.random(size)
    return rank_intervals(low, low + length * rng.random(size), rng.random(size))


def edges_by_definition(intervals):
    """G of RPS 3.2.1: some cell in both, and in nothing that scores between them."""
    cells = cells_of(intervals)
    edges = set()
    for cell in range(cells.count):
        inside = np.flatnonzero((cells.first <= cell) & (cell <= cells.last)).tolist()
        edges |= set(pairwise(inside))
    return edges


@EXAMPLES
@given(rows)
def test_the_graph_is_that_of_the_definition_and_has_at_most_3n_edges(drawn):
    intervals = ranked(drawn)
    starts, targets, coming = constraint_graph(cells_of(intervals))
    sources = np.repeat(np.arange(len(intervals)), np.diff(starts[: len(intervals) + 1]))
    assert set(zip(sources.tolist(), targets.tolist(), strict=True)) == edges_by_definition(
        intervals
    )
    assert np.bincount(targets, minlength=len(intervals)).tolist() == coming.tolist()
    assert len(targets) <= 3 * len(intervals)


@EXAMPLES
@given(rows)
def test_the_arrangement_respects_the_graph(drawn):
    intervals = ranked(drawn)
    found = arranged(intervals)
    assert sorted(found.order.tolist()) == list(range(len(intervals)))
    place = np.argsort(found.order)
    assert all(place[one] < place[other] for one, other in edges_by_definition(intervals))


@EXAMPLES
@given(rows)
def test_the_leftmost_of_those_allowed_comes_next(drawn):
    """Algorithm 1, step by step."""
    intervals = ranked(drawn)
    edges = edges_by_definition(intervals)
    left = set(range(len(intervals)))
    for rank in arranged(intervals).order.tolist():
        allowed = [each for each in left if not any((other, each) in edges for other in left)]
        assert rank in allowed
        assert intervals.low[rank] == min(intervals.low[allowed])
        left.remove(rank)


@pytest.mark.parametrize("length", [0.001, 0.05, 1.0])
def test_at_most_2k_nodes_a_level(length):
    intervals = random_intervals(6000 if JIT else 300, seed=5, length=length)
    index = sopt_r(intervals)
    assert index.counters()["edges"] <= 3 * len(intervals)
    for q in np.random.default_rng(6).random(50):
        for k in (1, 2, 5, 20):
            index.top(q, k)
            assert max(index.state()[LEVELS:]) <= 2 * k
            assert index.counters()["leaves"] <= 2 * k


def test_at_most_2k_blocks_where_rounding_changes_nothing():
    rng = np.random.default_rng(7)
    low = rng.integers(0, 1000, 5000 if JIT else 300) / 1024
    high = low + rng.integers(0, 20, len(low)) / 1024
    index = sopt_r_64(rank_intervals(low, high, rng.random(len(low))))
    for q in rng.integers(0, 1000, 50) / 1024:
        index.top(q, 5)
        assert index.counters()["leaves"] <= 10


def test_rounding_down_is_never_up():
    numbers = np.array([0.1, -0.1, np.inf, -np.inf, 0.5, 1e-60])
    rounded = rounded_down(numbers).astype(float)
    assert (rounded <= numbers).all()
    assert rounded[4] == 0.5


def test_times_close_together_and_far_from_zero_are_told_apart():
    """Seconds of one day in 2026: float32 alone would know every second minute."""
    rng = np.random.default_rng(1)
    low = 1_790_000_000 + rng.integers(0, 86_400, 3000 if JIT else 300).astype(float)
    intervals = rank_intervals(low, low + 5, rng.random(len(low)))
    index = sopt_r_64(intervals)
    for q in low[:50]:
        found = index.top(q, 20)
        assert index.counters()["intervals"] == len(found)


def test_a_frame_reaches_all_bounds():
    low, high = np.array([-1e308, 5.0, -np.inf]), np.array([1.7e308, 6.0, np.inf])
    frame = frame_of(low, high)
    assert np.abs(framed(frame, np.array([-1e308, 1.7e308, 5.0]))).max() <= 1
    assert frame_of(low[2:], high[2:]).tolist() == [0.0, 2.0, 1.0]
    assert frame_of(low[1:2], low[1:2])[0] == 5.0


def test_blocks_of_a_level_until_one_holds_all():
    assert block_starts(0).tolist() == [0, 1]
    assert block_starts(64).tolist() == [0, 1]
    assert block_starts(65).tolist() == [0, 2, 3]
    assert block_starts(64 * 64 + 1).tolist() == [0, 65, 67, 68]
