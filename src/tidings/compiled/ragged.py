"""Ragged arrays: rows of different lengths in one array.

    starts  0     2  2        5      row n is values[starts[n]:starts[n + 1]]
    values  a  b     c  d  e

Two flat arrays can be passed to kernels, written to files and mapped, which lists of arrays cannot.
"""

from typing import NamedTuple

import numpy as np

from tidings.compiled.array_types import AnyArray


class Ragged(NamedTuple):
    """Rows of different lengths."""

    starts: AnyArray
    values: AnyArray

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
