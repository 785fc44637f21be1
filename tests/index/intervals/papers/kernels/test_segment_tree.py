"""The segment tree: ranks at the highest nodes within their cells, and walks that resume."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.intervals.plain import POINTS, many_rows, ranked, stabbed

from tidings.index.intervals.papers.kernels.segment_tree import (
    STATE,
    segment_count,
    segment_fill,
    segment_walk,
    segment_walk_many,
)
from tidings.index.intervals.papers.segment_tree import segment

DRAWN = many_rows(120)


def lists_of(spans, cells):
    """Return the ranks of each node of a tree over `cells` cells."""
    first, last = np.array(spans, np.int32).reshape(-1, 2).T.copy()
    starts = np.zeros(2 * cells + 2, np.int64)
    segment_count(first, last, starts)
    ranks = np.empty(starts[-1], np.int32)
    segment_fill(first, last, starts, ranks)
    assert starts[2 * cells] == len(ranks)
    return [ranks[starts[node] : starts[node + 1]].tolist() for node in range(2 * cells)]


def test_an_interval_is_stored_at_the_highest_nodes_within_it():
    """Over four cells, the leaves are nodes 4 to 7."""
    assert lists_of([(0, 3), (1, 3), (2, 2)], 4) == [[], [0], [], [1], [], [1], [2], []]


@st.composite
def trees(draw):
    cells = draw(st.integers(1, 12))
    cell = st.integers(0, cells - 1)
    return draw(st.lists(st.tuples(cell, cell).map(sorted), max_size=8)), cells


@given(trees())
def test_the_path_of_a_cell_has_each_of_its_intervals_once(drawn):
    spans, cells = drawn
    lists = lists_of(spans, cells)
    assert all(ranks == sorted(ranks) for ranks in lists)
    for cell in range(cells):
        path, node = [], cells + cell
        while node > 0:
            path += lists[node]
            node >>= 1
        expected = [rank for rank, (first, last) in enumerate(spans) if first <= cell <= last]
        assert sorted(path) == expected


@pytest.mark.parametrize("step", [1, 3, 200])
def test_a_walk_resumes_where_it_stopped(step):
    tree: Any = segment(ranked(DRAWN)).tree
    state, out, found = np.zeros(STATE, np.int64), np.empty(step, np.int64), []
    while (count := segment_walk(tree, 5.0, state, out)) > 0:
        found += out[:count].tolist()
    assert found == stabbed(DRAWN, 5.0)
    assert segment_walk(tree, 5.0, state, out) == 0


def test_each_query_of_a_batch_begins_anew():
    tree: Any = segment(ranked(DRAWN)).tree
    out, counts = np.empty((len(POINTS), 7), np.int64), np.empty(len(POINTS), np.int64)
    segment_walk_many(tree, np.array(POINTS), out, counts)
    for q, row, count in zip(POINTS, out.tolist(), counts.tolist(), strict=True):
        assert row[:count] == stabbed(DRAWN, q)[:7]
