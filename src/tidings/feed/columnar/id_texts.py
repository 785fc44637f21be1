"""Ids by number as UTF-8, so that a column of them is made without touching Python strings.

At a million ids the strings are scattered over the memory, and each one that is touched misses the
cache. The bytes of all ids are written once they pay: when as many were asked for as there are.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.compiled.array_types import Int64s
from tidings.compiled.arrays import grown
from tidings.feed.columnar.kernels.texts import TextPool, write_offsets, write_texts


class IdTexts:
    """The texts of a list of ids, which grows, and in which a number may get another id."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._bounds, self._data = np.zeros((64, 2), np.int64), np.zeros(1024, np.uint8)
        self._used = self._known = self._replaced = 0
        self._changed: list[int] = []
        self._asked = self._asked_order = 0
        self._order: Int64s | None = None

    def replaced(self, number: int) -> None:
        """Note that a number has got another id."""
        self._order = None
        if number < self._known:
            self._changed.append(number)

    def pool(self, asked: int) -> TextPool | None:
        """Return all texts; None if too few have been asked for so far to write all of them."""
        missing = len(self._names) - self._known + len(self._changed)
        if missing:
            self._asked += asked
            if missing > self._asked:
                return None
            self._write()
        return TextPool(self._bounds, self._data)

    def order(self, asked: int) -> Int64s | None:
        """Return the place of each id among all of them, ascending; None if that does not pay."""
        if self._order is None or len(self._order) != len(self._names):
            self._asked_order += asked
            if len(self._names) > self._asked_order:
                return None
            self._asked_order, self._order = 0, ascending_places(self._names)
        return self._order

    def _write(self) -> None:
        """Write the texts that are new; all of them if more than half were replaced."""
        names = self._names
        self._replaced += len(self._changed)
        if 2 * self._replaced > len(names):
            self._used = self._known = self._replaced = 0
            self._changed = []
        numbers = [*self._changed, *range(self._known, len(names))]
        text = pa.array([names[number] for number in numbers], pa.large_string())
        _, ends, data = text.buffers()
        offsets = np.frombuffer(ends, np.int64)[: len(numbers) + 1]
        size = int(offsets[-1])
        self._data = grown(self._data, self._used + size)
        if size:
            self._data[self._used : self._used + size] = np.frombuffer(data, np.uint8)[:size]
        self._bounds = grown(self._bounds, len(names))
        self._bounds[numbers, 0] = self._used + offsets[:-1]
        self._bounds[numbers, 1] = self._used + offsets[1:]
        self._used, self._known = self._used + size, len(names)
        self._changed, self._asked = [], 0


def gathered(pool: TextPool, numbers: Int64s) -> pa.StringArray:
    """Return the texts of numbers as a column."""
    offsets = np.empty(len(numbers) + 1, np.int32)
    write_offsets(pool, numbers, offsets)
    out = np.empty(int(offsets[-1]), np.uint8)
    write_texts(pool, numbers, offsets, out)
    return text_column(offsets, out)


def text_column(offsets: np.ndarray, data: np.ndarray) -> pa.StringArray:
    """Return a column of texts that lie one behind the other."""
    return pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data))


def ascending_places(texts: Sequence[str]) -> Int64s:
    """Return the place of each text in ascending order."""
    order = pc.sort_indices(pa.array(texts, pa.large_string())).to_numpy()
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return places
