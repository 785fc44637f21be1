"""Which number an id has: an open table of numbers, while the ids themselves are kept by number."""

from array import array
from collections.abc import Sequence
from typing import Final

import numpy as np

from tidings.compiled.array_types import Int32s
from tidings.index.access.kernels.postings import FREE, fill_names

GONE: Final = -2
"""A cell whose number went; who looks for another id goes on behind it."""


class Names:
    """Numbers by id, in 6 to 8 bytes each; a dict takes 80, most of it for objects.

    Every call is given the ids by number. O(1).
    """

    def __init__(self) -> None:
        self._cells = array("i", [FREE]) * 64
        self._there = self._filled = 0

    def __len__(self) -> int:
        return self._there

    def find(self, name: str, ids: Sequence[str]) -> int:
        """Give the number of an id, or -1."""
        at = self._cell(name, ids)
        return self._cells[at] if at >= 0 else -1

    def pop(self, name: str, ids: Sequence[str]) -> None:
        """Forget an id that is there."""
        self._cells[self._cell(name, ids)] = GONE
        self._there -= 1

    def put(self, names: Sequence[str], numbers: Sequence[int], ids: Sequence[str]) -> None:
        """Put in ids that are not there."""
        if 3 * (self._filled + len(names)) > 2 * len(self._cells):
            self._grow(self._there + len(names), ids)
        self._there += len(names)
        self._fill(names, numbers)

    def numbers(self) -> Int32s:
        """Give all numbers, in order."""
        cells = np.frombuffer(self._cells, np.int32)
        return np.sort(cells[cells >= 0])

    @property
    def nbytes(self) -> int:
        """Bytes of the table."""
        return len(self._cells) * self._cells.itemsize

    def _cell(self, name: str, ids: Sequence[str]) -> int:
        cells, size = self._cells, len(self._cells)
        at = hash(name) % size
        while (number := cells[at]) != FREE:
            if number >= 0 and ids[number] == name:
                return at
            at = (at + 1) % size
        return -1

    def _grow(self, size: int, ids: Sequence[str]) -> None:
        """Make room for twice as many as there shall be, and forget who went."""
        numbers = self.numbers().tolist()
        self._cells = array("i", [FREE]) * (2 * size + 64)
        self._filled = 0
        self._fill([ids[number] for number in numbers], numbers)

    def _fill(self, names: Sequence[str], numbers: Sequence[int]) -> None:
        hashes = np.fromiter(map(hash, names), np.int64, len(names))
        cells = np.frombuffer(self._cells, np.int32)
        self._filled += fill_names(hashes, np.array(numbers, np.int32), cells)
