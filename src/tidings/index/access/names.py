"""Which number an id has: an open table of numbers, while the ids themselves are kept by number."""

from array import array
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tidings.kernels.access import Ints, Shorts
from tidings.kernels.access_lists import FREE, fill_names

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
        self._there += len(names)
        self._filled += len(names)
        if 3 * self._filled > 2 * len(self._cells):
            self._grow(ids)
        fill_names(_hashes(names), np.array(numbers, np.int32), np.frombuffer(self._cells, "i4"))

    def numbers(self) -> Shorts:
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

    def _grow(self, ids: Sequence[str]) -> None:
        """Make room for twice as many as are there, and forget who went."""
        numbers = self.numbers()
        self._cells = array("i", [FREE]) * (2 * self._there + 64)
        self._filled = self._there
        names = [ids[number] for number in numbers.tolist()]
        fill_names(_hashes(names), numbers, np.frombuffer(self._cells, "i4"))


def _hashes(names: Sequence[Any]) -> Ints:
    return np.fromiter(map(hash, names), np.int64, len(names))
