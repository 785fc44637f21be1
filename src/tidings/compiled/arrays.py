"""Arrays that grow by doubling or begin on a cache line, and the offsets of ragged arrays.

A ragged array has its values one run after the other, and offsets that say where runs start:

    offsets    0       2 3       6          run i: values[offsets[i] : offsets[i + 1]]
    values     a0  a1  b0  d0  d1  d2       the run c is empty
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_types import AnyArray, Int32s, Int64s

LINE: Final = 64


class Ragged(NamedTuple):
    """A ragged array of small numbers: where each run starts, with the last end, and the values."""

    starts: Int64s
    values: Int32s

    @classmethod
    def of(cls, runs: Sequence[Sequence[int]]) -> "Ragged":
        """Return lists of numbers as runs.

        >>> Ragged.of([[7, 9], [], [8]])
        Ragged(starts=array([0, 2, 2, 3]), values=array([7, 9, 8], dtype=int32))
        """
        # Python's own loops: most calls are for a few short lists, for which NumPy takes longer.
        starts = np.array([*accumulate(map(len, runs), initial=0)], np.int64)
        return cls(starts, np.array([*chain.from_iterable(runs)], np.int32))

    def run(self, number: int) -> Int32s:
        """Return the values of one run."""
        return self.values[self.starts[number] : self.starts[number + 1]]


def grown(array: AnyArray, size: int, fill: Any = 0) -> AnyArray:
    """Return an array of at least `size` rows: itself, or a copy of twice the rows and more.

    New rows are `fill`.

    >>> grown(np.array([7, 8]), 3, fill=-1)
    array([ 7,  8, -1, -1])
    """
    if size <= len(array):
        return array
    # Not `np.resize`, which repeats the old rows, and not `ndarray.resize`, which views forbid.
    shape = (max(size, 2 * len(array)), *array.shape[1:])
    # Zeros are not written: what is not used yet takes no memory.
    longer = np.full(shape, fill, array.dtype) if fill else np.zeros(shape, array.dtype)
    longer[: len(array)] = array
    return longer


def distinct(numbers: AnyArray, size: int) -> Int64s:
    """Return the distinct numbers, all below a size, in ascending order.

    Of many numbers, marking them takes a tenth of the time that `np.unique` takes.

    >>> distinct(np.array([3, 1, 3]), 5)
    array([1, 3])
    """
    marked = np.zeros(size, np.bool_)
    marked[numbers] = True
    return np.flatnonzero(marked)


def stable_order(numbers: AnyArray, size: int) -> Int64s:
    """Return the order of numbers from 0 to below a size; equal ones stay in theirs.

    Numbers of 16 bits are sorted by their digits, several times as fast as others.

    >>> stable_order(np.array([2, 0, 2, 1]), 3)
    array([1, 3, 0, 2])
    """
    narrow = numbers.astype(np.uint16) if size <= 1 << 16 else numbers
    return np.argsort(narrow, kind="stable")


class Group(NamedTuple):
    """A number, and the indexes at which it occurs, in their order; a slice if these are all."""

    number: int
    indexes: Int64s | slice


def grouped(numbers: Int32s) -> Iterator[Group]:
    """Yield the group of each number that occurs, in ascending order; O(n log n).

    >>> [(group.number, group.indexes.tolist()) for group in grouped(np.array([7, 4, 7]))]
    [(4, [1]), (7, [0, 2])]
    """
    if len(numbers) == 1 or (len(numbers) and (numbers == numbers[0]).all()):
        yield Group(int(numbers[0]), slice(None))
        return
    order = np.argsort(numbers, kind="stable")
    edges = np.flatnonzero(np.diff(numbers[order], prepend=numbers.min(initial=0) - 1))
    for indexes in np.split(order, edges[1:]):
        if len(indexes):
            yield Group(int(numbers[indexes[0]]), indexes)


def offsets(sizes: AnyArray | Sequence[int]) -> Int64s:
    """Return where runs of these sizes start, followed by where the last one ends.

    >>> offsets([2, 1, 0, 3])
    array([0, 2, 3, 3, 6])
    """
    ends = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    return ends


def run_indexes(starts: AnyArray, sizes: AnyArray) -> Int64s:
    """Return the indexes of all values of some runs, one run after the other.

    >>> run_indexes(np.array([7, 0, 4]), np.array([2, 1, 3]))
    array([7, 8, 0, 4, 5, 6])
    """
    before = np.cumsum(sizes) - sizes
    return np.repeat(starts - before, sizes) + np.arange(int(sizes.sum()))


def aligned(size: int, dtype: Any) -> npt.NDArray[Any]:
    """Return an uninitialized array whose first number is at a 64-byte boundary."""
    width = np.dtype(dtype).itemsize
    # NumPy aligns to 16 bytes: one more line, and the start is moved to the boundary.
    raw = np.empty(size * width + LINE, np.uint8)
    start = -raw.ctypes.data % LINE
    return raw[start : start + size * width].view(dtype)


def total_bytes(*arrays: Any) -> int:
    """Return the bytes of all arrays, also of those in nested tuples; other values count 0.

    >>> import numpy as np
    >>> total_bytes((np.zeros(2), (np.zeros(3, np.int32), 7)), np.zeros(1))
    36
    """
    return sum(
        total_bytes(*item) if isinstance(item, tuple) else int(getattr(item, "nbytes", 0))
        for item in arrays
    )
