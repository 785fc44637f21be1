"""Pools of slabs: slabs are assigned, moved together, and their arrays lengthened."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.compiled.array_types import Int32s
from tidings.feed.columnar.kernels.layout import Slabs, release_slab
from tidings.feed.columnar.slab_pools import (
    Pool,
    SlabColumns,
    assign_slabs,
    compact,
    has_many_gaps,
    lengthen,
    lengthened,
    new_slabs,
    pool_size,
    reserve_slab,
    size_classes,
)

SIZE, START, SLAB_CLASS = range(3)


class Lists:
    """Lists of numbers in one pool, which is noted in `head`."""

    def __init__(self, sizes: list[int], classes: list[int], spare: int = 0) -> None:
        self.head = np.zeros((len(sizes), 3), np.int64)
        self.head[:, SIZE] = sizes
        self.values = np.zeros(0, np.int32)
        self.pool = Pool(
            new_slabs(classes), ("values",), SlabColumns("head", SIZE, START, SLAB_CLASS)
        )
        assign_slabs(self, self.pool, np.arange(len(sizes)), spare)
        lengthen(self, self.pool.arrays, int(self.slabs.used[0]))
        for row in range(len(sizes)):
            self.list(row)[:] = row

    @property
    def slabs(self) -> Slabs:
        return self.pool.slabs

    def list(self, row: int) -> Int32s:
        size, start, _ = self.head[row]
        return self.values[start : start + size]

    def release(self, row: int) -> None:
        _, start, slab_class = self.head[row]
        release_slab(self.slabs, self.values, start, slab_class)
        self.head[row] = 0, 0, -1


@given(st.integers(1, 3000), st.integers(1, 8))
def test_size_classes_grow_by_a_quarter_up_to_the_most(most, first):
    sizes = size_classes(most, first)
    assert sizes[0] == min(first, most)
    assert sizes[-1] == most
    for small, large in pairwise(sizes):
        assert small < large <= max(small + 1, small * 5 / 4)


@given(st.lists(st.integers(0, 20), max_size=8), st.integers(0, 2))
def test_assigned_slabs_do_not_overlap_and_are_the_smallest_that_fit(sizes, spare):
    lists = Lists(sizes, size_classes(20), spare)
    capacity = lists.slabs.capacity.tolist()
    end = 0
    for size, start, slab_class in lists.head.tolist():
        if size == 0:
            assert slab_class == -1
        else:
            assert start == end
            wanted = min(size + spare, 20)
            assert capacity[slab_class] == min(cells for cells in capacity if cells >= wanted)
            end += capacity[slab_class]
    assert lists.slabs.used.tolist() == [end]
    assert lists.slabs.free.tolist() == [-1] * len(capacity)


def test_slabs_are_assigned_behind_those_in_use():
    lists = Lists([2, 0, 5], [2, 5])
    lists.head[1, SIZE] = 1
    assign_slabs(lists, lists.pool, np.array([1]))
    assert lists.head.tolist() == [[2, 0, 0], [1, 7, 0], [5, 2, 1]]
    assert lists.slabs.used.tolist() == [9]


@given(st.lists(st.integers(0, 20), min_size=1, max_size=8), st.sets(st.integers(0, 7)))
def test_slabs_that_are_moved_together_keep_what_they_hold(sizes, released):
    lists = Lists(sizes, size_classes(20))
    for row in released & {row for row, size in enumerate(sizes) if size}:
        lists.release(row)
    compact(lists, lists.pool)
    for row in range(len(sizes)):
        assert set(lists.list(row).tolist()) <= {row}
    in_use = lists.head[lists.head[:, SLAB_CLASS] >= 0]
    assert lists.slabs.used[0] == lists.slabs.capacity[in_use[:, SLAB_CLASS]].sum()
    assert (lists.slabs.free == -1).all()


def test_some_slabs_are_moved_behind_the_first_cells():
    lists = Lists([2, 2, 2], [2])
    moves = compact(lists, lists.pool, np.array([2, 1]), first_cell=1)
    assert [cells.tolist() for cells in moves] == [[2, 4], [1, 3], [2, 2]]
    assert lists.values.tolist()[1:5] == [1, 1, 2, 2]
    assert lists.slabs.used.tolist() == [5]


@pytest.mark.parametrize(("released", "used"), [((), 8), ((0, 1), 4)])
def test_a_full_pool_is_compacted_if_much_of_it_is_free_and_lengthened(released, used):
    lists = Lists([2, 2, 2, 2], [2, 3])
    for row in released:
        lists.release(row)
    reserve_slab(lists, lists.pool, 3)
    assert lists.slabs.used.tolist() == [used]
    assert len(lists.values) == max(8, pool_size(used + 3))
    assert lists.list(3).tolist() == [3, 3]


def test_arrays_that_are_long_enough_stay():
    lists = Lists([2, 2], [2])
    values = lists.values
    lengthen(lists, ("values",), 3)
    assert lists.values is values
    assert len(values) == 4
    assert lengthened(np.array([[1, 2]]), 3).tolist() == [[1, 2], [0, 0], [0, 0]]


def test_free_slabs_are_gaps_once_they_are_an_eighth() -> None:
    slabs = new_slabs([2, 5])
    slabs.used[0] = 2 * 2 + 2 * 5 + 2
    assert not has_many_gaps(slabs, np.array([0, 1, -1, 1, 0]))  # one slab of 16 cells is free
    assert has_many_gaps(slabs, np.array([0, 1, -1, 1, -1]))
    assert not has_many_gaps(new_slabs([2, 5]), np.array([-1, -1]))
