"""What values say, remembered: entries to stamp and codes, in arrays that only grow."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tidings.index.access.kernels.records import Phrases

MOST_PHRASES: Final = 1 << 17
MOST_ENTRIES: Final = 1 << 22


class Book:
    """Phrases by number; number 0 says nothing. Not more than some, so that it stays small."""

    def __init__(self) -> None:
        self.table = Phrases(
            np.zeros(1024, np.int32),
            np.zeros(4096, np.int32),
            np.full(1024, -1, np.int32),
            np.zeros(1024, np.int64),
        )
        self.longest = 0
        self._size, self._entries, self._asked = 1, 0, 0

    @property
    def full(self) -> bool:
        """Tell whether it is time for a new book."""
        return self._asked > MOST_PHRASES or self._entries > MOST_ENTRIES

    def add(self, entries: Sequence[int], slot: int, code: int) -> int:
        """Put in a phrase; give its number. One that says nothing is counted, as it is kept too."""
        self._asked += 1
        if not entries and slot < 0:
            return 0
        number, end = self._size, self._entries + len(entries)
        start, kept, slots, codes = self.table
        if number + 2 > len(start):
            start, slots, codes = doubled(start), doubled(slots), doubled(codes)
        while end > len(kept):
            kept = doubled(kept)
        kept[self._entries : end] = entries
        start[number + 1], slots[number], codes[number] = end, slot, code
        self.table = Phrases(start, kept, slots, codes)
        self._size, self._entries = number + 1, end
        self.longest = max(self.longest, len(entries))
        return number

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(each.nbytes for each in self.table)


def doubled(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Give a copy with as much room again, filled with zeros."""
    return np.concatenate([array, np.zeros_like(array)])
