"""Cells are cut at every low, and after every high."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.index.intervals.plain import Row, rows

from tidings.index.intervals.kernels.bitset import bitset_add, bitset_from, empty_bitset
from tidings.index.intervals.kernels.cells import (
    ConstraintGraph,
    SortedEnds,
    arrange,
    constraint_edges,
    cover_blocks,
    cut_cells,
    transpose_edges,
)


def cut(low, high):
    lows, highs = np.array(low, float), np.array(high, float)
    by_low, by_high = np.argsort(lows).astype(np.int32), np.argsort(highs).astype(np.int32)
    starts = np.empty(2 * len(low))
    first, last = np.empty((2, len(low)), np.int32)
    count = cut_cells(SortedEnds(lows, highs, by_low, by_high), starts, first, last)
    return starts[:count].tolist(), first.tolist(), last.tolist()


def after(number):
    return math.nextafter(number, math.inf)


def test_a_cell_begins_at_each_low_and_after_each_high():
    starts, first, last = cut([2, 0], [5, 3])
    assert starts == [0.0, 2.0, after(3.0), after(5.0)]
    assert (first, last) == ([2, 1], [3, 2])


def test_a_point_has_a_cell_of_its_own():
    assert cut([4], [4]) == ([4.0, after(4.0)], [1], [1])


def test_an_interval_that_never_ends_begins_the_last_cell():
    assert cut([4], [math.inf]) == ([4.0], [1], [1])
    assert cut([-math.inf], [math.inf]) == ([-math.inf], [1], [1])


def test_an_end_where_another_interval_begins_is_cut_once():
    assert cut([0, after(1.0)], [1, 2]) == ([0.0, after(1.0), after(2.0)], [1, 2], [1, 2])


def test_no_intervals_have_no_cells():
    assert cut([], []) == ([], [], [])


@given(rows)
def test_cells_are_those_of_the_sorted_ends(drawn: list[Row]):
    low, high = [row[0] for row in drawn], [row[1] for row in drawn]
    starts, first, last = cut(low, high)
    assert starts == sorted({*low, *(after(end) for end in high if end < math.inf)})
    assert first == [starts.index(begin) + 1 for begin in low]
    assert last == [sum(start <= end for start in starts) for end in high]


CELLS = 12
spans = st.lists(st.tuples(st.integers(1, 10), st.integers(1, 10)).map(sorted), max_size=9)


def visible(blocks, owner):
    """Return the owner of each cell: that of the last block that begins at or before it."""
    cells, current = [], -1
    for cell in range(CELLS):
        if bitset_from(blocks, cell) == cell:
            current = int(owner[cell])
        cells.append(current)
    return cells


def edges_of(drawn):
    first, last = np.array(drawn, np.int32).reshape(-1, 2).T.copy()
    edges, ends = np.empty(3 * len(drawn), np.int32), np.zeros(len(drawn), np.int64)
    owner = np.full(CELLS, -1, np.int32)
    count = constraint_edges(first, last, empty_bitset(CELLS), owner, edges, ends)
    return edges[:count], ends


@given(spans)
def test_an_interval_is_visible_wherever_no_later_one_lies(drawn):
    blocks, owner, plain = empty_bitset(CELLS), np.full(CELLS, -1, np.int32), [-1] * CELLS
    bitset_add(blocks, 0)
    for rank, (first, last) in enumerate(drawn):
        cover_blocks(blocks, owner, rank, first, last)
        plain[first : last + 1] = [rank] * (last + 1 - first)
        assert visible(blocks, owner) == plain


def test_an_interval_has_an_edge_from_each_that_it_covers():
    """The drawing: 1 covers the left of 0."""
    edges, ends = edges_of([(3, 7), (1, 5)])
    assert (edges.tolist(), ends.tolist()) == ([0], [0, 1])


def test_an_interval_visible_in_two_blocks_gives_two_edges():
    edges, ends = edges_of([(1, 9), (4, 5), (1, 9)])
    assert edges.tolist() == [0, 0, 1, 0]
    assert ends.tolist() == [0, 1, 4]


@given(spans)
def test_edges_come_from_the_visible_intervals_and_are_at_most_3n(drawn):
    edges, ends = edges_of(drawn)
    assert len(edges) <= 3 * len(drawn)
    plain, start = [-1] * CELLS, 0
    for rank, (first, last) in enumerate(drawn):
        below = {one for one in plain[first : last + 1] if one >= 0}
        assert set(edges[start : ends[rank]].tolist()) == below
        plain[first : last + 1] = [rank] * (last + 1 - first)
        start = ends[rank]


@given(st.lists(st.lists(st.integers(0, 4), max_size=3), min_size=1, max_size=5))
def test_edges_are_regrouped_by_source(by_target):
    by_target = [[source for source in own if source < rank] for rank, own in enumerate(by_target)]
    flat = [source for own in by_target for source in own]
    ends = np.cumsum([len(own) for own in by_target])
    starts, targets = np.zeros(len(by_target) + 2, np.int64), np.empty(len(flat), np.int32)
    transpose_edges(np.array(flat, np.int32), ends, starts, targets)
    for source in range(len(by_target)):
        expected = [rank for rank, own in enumerate(by_target) for one in own if one == source]
        assert targets[starts[source] : starts[source + 1]].tolist() == expected


@given(st.permutations(range(5)), st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4))))
def test_the_leftmost_rank_without_an_edge_comes_next(by_low, pairs):
    edges = sorted((one, other) for one, other in pairs if one < other)
    starts = np.searchsorted([one for one, _ in edges], np.arange(7)).astype(np.int64)
    targets = np.array([other for _, other in edges], np.int32)
    incoming = np.bincount(targets, minlength=5).astype(np.int32)
    position, order = np.argsort(by_low).astype(np.int32), np.empty(5, np.int64)
    graph = ConstraintGraph(starts, targets, incoming)
    arrange(graph, np.array(by_low, np.int32), position, empty_bitset(5), order)
    left, expected = list(by_low), []
    while left:
        free = [rank for rank in left if not any((one, rank) in edges for one in left)]
        expected.append(free[0])
        left.remove(free[0])
    assert order.tolist() == expected


def test_a_block_may_end_with_the_last_cell_of_a_full_word():
    """There is no word after 32 cells, so nothing may be looked up behind them."""
    blocks, owner = empty_bitset(32), np.full(32, -1, np.int32)
    bitset_add(blocks, 0)
    cover_blocks(blocks, owner, 7, 30, 31)
    assert owner[30] == 7
    assert [bitset_from(blocks, cell) for cell in (0, 1, 30)] == [0, 30, 30]
