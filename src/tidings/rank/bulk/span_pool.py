"""Spans of values by number, in one array that grows at its end and reclaims unused spans."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tidings.compiled.array_file import Reader, Writer
from tidings.compiled.array_types import AnyArray, Int64s
from tidings.compiled.arrays import grown
from tidings.rank.bulk.kernels.relaxed import Spans

NOTHING: Final = np.empty(0)


class SpanPool:
    """One span of values per number, or none."""

    def __init__(self, dtype: Any) -> None:
        self._firsts: Int64s = np.full(64, -1, np.int64)
        self._sizes: Int64s = np.zeros(64, np.int64)
        self._values = np.empty(64, dtype)
        self._used = 0

    def put(self, number: int, values: AnyArray) -> None:
        """Write the span of a number, replacing the old one."""
        self._make_room(number + 1)
        if self._firsts[number] < 0 or self._sizes[number] < len(values):
            self._firsts[number] = self._reserve(number, len(values))
        first, self._sizes[number] = self._firsts[number], len(values)
        self._values[first : first + len(values)] = values

    def get(self, number: int) -> AnyArray:
        """Return the span of a number; it is empty where there is none."""
        first = int(self._firsts[number]) if number < len(self._firsts) else -1
        return self._values[first : first + int(self._sizes[number])] if first >= 0 else NOTHING

    def drop(self, numbers: Sequence[int]) -> None:
        """Remove the spans of numbers."""
        present = [number for number in numbers if number < len(self._firsts)]
        self._firsts[present], self._sizes[present] = -1, 0

    def spans(self, numbers: int) -> Spans:
        """Return all spans, with entries for at least this many numbers."""
        self._make_room(numbers)
        return Spans(self._firsts, self._values)

    def write(self, writer: Writer, numbers: int) -> None:
        """Write the spans of the first `numbers` numbers to a file, one behind the other."""
        self._make_room(numbers)
        firsts, sizes = self._firsts[:numbers], self._sizes[:numbers]
        ends = np.cumsum(sizes)
        old = np.repeat(firsts - (ends - sizes), sizes) + np.arange(sizes.sum())
        writer.array("firsts", np.where(firsts < 0, -1, ends - sizes))
        writer.array("sizes", sizes)
        writer.array("values", self._values[old])

    @classmethod
    def read(cls, reader: Reader, dtype: Any, numbers: int) -> "SpanPool":
        """Return the spans of a file; the values themselves are not validated."""
        pool = cls(dtype)
        pool._firsts = reader.array("firsts", np.int64, numbers)
        pool._sizes = reader.array("sizes", np.int64, numbers)
        pool._values = reader.array("values", dtype)
        pool._used = len(pool._values)
        reader.within_bounds("sizes", pool._sizes, pool._used + 1)
        none = (pool._firsts == -1) & (pool._sizes == 0)
        tiled = none | (pool._firsts == np.cumsum(pool._sizes) - pool._sizes)
        right = tiled.all() and int(pool._sizes.sum()) == pool._used
        reader.require(right, "firsts", "do not split the values among them")
        return pool

    @property
    def firsts(self) -> Int64s:
        """Where the span of each number starts, or -1."""
        return self._firsts

    @property
    def sizes(self) -> Int64s:
        """How long the span of each number is."""
        return self._sizes

    @property
    def values(self) -> AnyArray:
        """The values of all spans."""
        return self._values

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self._firsts.nbytes + self._sizes.nbytes + self._values.nbytes

    def _make_room(self, numbers: int) -> None:
        self._firsts = grown(self._firsts, numbers, -1)
        self._sizes = grown(self._sizes, numbers)

    def _reserve(self, number: int, size: int) -> int:
        self._sizes[number] = 0
        if self._used + size > len(self._values):
            self._compact(size)
        first, self._used = self._used, self._used + size
        return first

    def _compact(self, size: int) -> None:
        """Drop values that no number has, and make room for twice those that are left."""
        ends = np.cumsum(self._sizes)
        shift = np.repeat(self._firsts - (ends - self._sizes), self._sizes)
        kept = self._values[shift + np.arange(ends[-1])]
        self._firsts = np.where(self._firsts < 0, -1, ends - self._sizes)
        self._used = len(kept)
        self._values = np.empty(2 * (len(kept) + size) + 64, self._values.dtype)
        self._values[: len(kept)] = kept
