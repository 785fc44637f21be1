"""Arrays keep their rows when they grow; aligned ones begin on a cache line; bytes are counted."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.compiled.arrays import (
    LINE,
    Ragged,
    aligned,
    grouped,
    grown,
    offsets,
    run_indexes,
    total_bytes,
)
from tidings.index.intervals.kernels.rtree import RTree


@given(st.lists(st.integers(-9, 9), max_size=9), st.integers(0, 30), st.integers(-1, 1))
def test_rows_are_kept_and_new_ones_are_filled(rows: list[int], size: int, fill: int) -> None:
    array = np.array(rows, np.int32)
    longer = grown(array, size, fill)
    assert longer.dtype == array.dtype
    assert longer[: len(rows)].tolist() == rows
    assert set(longer[len(rows) :].tolist()) <= {fill}
    assert len(longer) == (len(rows) if size <= len(rows) else max(size, 2 * len(rows)))


def test_an_array_that_is_long_enough_is_returned_itself() -> None:
    array = np.zeros(3)
    assert grown(array, 3) is array


def test_arrays_of_two_dimensions_grow_by_rows() -> None:
    longer = grown(np.ones((2, 3), np.uint8), 3, fill=9)
    assert longer.tolist() == [[1, 1, 1], [1, 1, 1], [9, 9, 9], [9, 9, 9]]


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int64])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_first_number_is_at_a_cache_line(size: int, dtype: type) -> None:
    array = aligned(size, dtype)
    assert array.dtype == dtype
    assert array.shape == (size,)
    assert array.ctypes.data % LINE == 0


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


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5)), max_size=8))
def test_indexes_of_runs_are_ranges_one_after_the_other(runs: list[tuple[int, int]]) -> None:
    starts = np.array([start for start, _ in runs], np.int64)
    sizes = np.array([size for _, size in runs], np.int64)
    expected = [number for start, size in runs for number in range(start, start + size)]
    assert run_indexes(starts, sizes).tolist() == expected


@given(st.lists(st.lists(st.integers(0, 9))))
def test_runs_are_one_after_the_other(runs: list[list[int]]) -> None:
    starts, values = Ragged.of(runs)
    assert [starts.dtype, values.dtype] == [np.int64, np.int32]
    assert [values[start:stop].tolist() for start, stop in pairwise(starts.tolist())] == runs


@given(st.lists(st.integers(-1, 3), max_size=9))
def test_groups_have_the_indexes_of_each_number_in_order(numbers: list[int]) -> None:
    places = np.arange(len(numbers))
    groups = {group.number: places[group.indexes].tolist() for group in grouped(np.array(numbers))}
    assert groups == {
        number: [place for place, other in enumerate(numbers) if other == number]
        for number in sorted({*numbers})
    }
    assert list(groups) == sorted(groups)


@given(st.lists(st.integers(0, 5), max_size=8))
def test_offsets_cut_the_values_into_runs_of_these_sizes(sizes: list[int]) -> None:
    ends = offsets(sizes)
    assert ends.dtype == np.int64
    assert ends[0] == 0
    assert np.diff(ends).tolist() == sizes
