"""Cells are cut at every low, and after every high."""

import math

import numpy as np
from hypothesis import given
from tests.index.intervals.plain import Row, rows

from tidings.index.intervals.kernels.cells import SortedEnds, cut_cells


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
