"""Ragged arrays hold the rows that they were made from."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.compiled.ragged import Ragged

LISTS = st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=6)


@given(LISTS)
def test_pairs_become_rows_of_sorted_values(lists: list[list[int]]) -> None:
    pairs = [(row, value) for row, values in enumerate(lists) for value in values]
    rows, values = np.array(pairs, np.int64).reshape(-1, 2).T
    ragged = Ragged.from_pairs(rows, values, len(lists))
    assert len(ragged) == len(lists)
    assert [ragged.row(number).tolist() for number in range(len(lists))] == [
        sorted(row) for row in lists
    ]
