"""Arrays keep their rows when they grow, and grow by doubling."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.compiled.growable import grown


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
