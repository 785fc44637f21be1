"""Ragged arrays: rows of different lengths in one array.

    starts  0     2  2        5      row n is values[starts[n]:starts[n + 1]]
    values  a  b     c  d  e

Two flat arrays can be passed to kernels, written to files and mapped, which lists of arrays cannot.
"""

from collections.abc import Iterable
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_types import AnyArray


class Ragged(NamedTuple):
    """Rows of different lengths."""

    starts: AnyArray
    values: AnyArray

    @classmethod
    def from_lists(cls, rows: Iterable[list[int]], dtype: npt.DTypeLike = np.int32) -> "Ragged":
        """Return lists as rows.

        >>> Ragged.from_lists([[1, 2], [], [3]]).row(0)
        array([1, 2], dtype=int32)
        """
        lists = list(rows)
        starts = np.array([0, *accumulate(map(len, lists))], np.int64)
        return cls(starts, np.array([value for row in lists for value in row], dtype))

    @classmethod
    def from_pairs(cls, rows: AnyArray, values: AnyArray, count: int) -> "Ragged":
        """Return `count` rows from pairs (row, value); the values of a row are sorted."""
        order = np.lexsort((values, rows))
        starts = np.searchsorted(rows[order], np.arange(count + 1))
        return cls(starts, values[order])

    def row(self, number: int) -> AnyArray:
        """Return the values of a row, as a view."""
        return self.values[self.starts[number] : self.starts[number + 1]]

    def __len__(self) -> int:
        return len(self.starts) - 1
