"""Elementary cells: points of one cell stab the same intervals; the order of SOPT-R-trees."""

import math
import os
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.index.intervals.elementary_cells import cells_of, constraint_graph, sopt_order
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


JIT = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"
EXAMPLES = settings(max_examples=100 if JIT else 15)

bounded_rows = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 5), st.integers(0, 4)), min_size=1, max_size=60
)


def ranked(drawn):
    low, length, score = np.array(drawn, float).reshape(-1, 3).T
    return rank_intervals(low, low + length, score)


def edges_by_definition(intervals):
    """G of RPS 3.2.1: some cell in both intervals, and in none that scores between them."""
    cells = cells_of(intervals)
    edges = set()
    for cell in range(cells.count):
        inside = np.flatnonzero((cells.first <= cell) & (cell <= cells.last)).tolist()
        edges |= set(pairwise(inside))
    return edges


@EXAMPLES
@given(bounded_rows)
def test_the_graph_is_that_of_the_definition_with_at_most_3n_edges(drawn):
    intervals = ranked(drawn)
    graph = constraint_graph(cells_of(intervals))
    sources = np.repeat(np.arange(len(intervals)), np.diff(graph.starts[: len(intervals) + 1]))
    edges = set(zip(sources.tolist(), graph.targets.tolist(), strict=True))
    assert edges == edges_by_definition(intervals)
    incoming = np.bincount(graph.targets, minlength=len(intervals))
    assert incoming.tolist() == graph.incoming.tolist()
    assert len(graph.targets) <= 3 * len(intervals)


@EXAMPLES
@given(bounded_rows)
def test_the_order_respects_the_graph(drawn):
    intervals = ranked(drawn)
    order = sopt_order(intervals).order
    assert sorted(order.tolist()) == list(range(len(intervals)))
    place = np.argsort(order)
    assert all(place[one] < place[other] for one, other in edges_by_definition(intervals))


@EXAMPLES
@given(bounded_rows)
def test_the_leftmost_of_those_allowed_comes_next(drawn):
    """Algorithm 1, step by step."""
    intervals = ranked(drawn)
    edges = edges_by_definition(intervals)
    left = set(range(len(intervals)))
    for rank in sopt_order(intervals).order.tolist():
        allowed = [one for one in left if not any((other, one) in edges for other in left)]
        assert rank in allowed
        assert intervals.low[rank] == min(intervals.low[allowed])
        left.remove(rank)
