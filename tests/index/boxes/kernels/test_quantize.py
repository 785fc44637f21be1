"""Codes of numbers: order is kept, and missing values have their own code."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.index.boxes.kernels.quantize import (
    NEVER,
    BoxBounds,
    CodeCuts,
    Liveness,
    code_bounds,
    code_of,
    code_rows,
    is_alive,
)

CUTS = CodeCuts(np.array([[1.0, 2.0, 3.0, np.inf]]), np.array([3]))


def test_codes_keep_order_and_mark_missing_values():
    rows = np.array([[-np.inf], [0.0], [1.0], [2.5], [3.0], [np.inf], [np.nan]])
    codes = np.empty(rows.shape, np.uint8)
    code_rows(CUTS, rows, codes)
    assert codes.ravel().tolist() == [0, 0, 1, 2, 3, 3, NEVER]


@given(st.lists(st.floats(0, 4), min_size=3, max_size=3))
def test_a_box_that_contains_a_number_contains_its_code(numbers):
    low, number, high = sorted(numbers)
    assert code_of(CUTS, 0, low) <= code_of(CUTS, 0, number) <= code_of(CUTS, 0, high)


def test_free_attributes_contain_all_codes():
    bounds = BoxBounds(np.array([[-np.inf], [1.5]]), np.array([[np.inf], [9.0]]))
    codes = np.empty((2, 2), np.uint8)
    code_bounds(bounds, np.array([1, 0], np.int32), CUTS, codes)
    assert codes.tolist() == [[1, 3], [0, NEVER]]


def test_a_box_is_alive_before_the_version_of_its_death():
    died = np.array([3, 9], np.int32)
    assert [is_alive(Liveness(died, version), 0) for version in (2, 3, 4)] == [True, False, False]
    assert is_alive(Liveness(died[:0], 5), 1)
