"""Reorders boxes so that each block of 64 holds boxes that lie close together.

A band of ranks is split in half by the column of codes that varies most, like a k-d tree, until
the parts are blocks. Tight blocks make the bounds in a directory exclude more.
"""

from typing import Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Int32s, Int64s, UInt8s
from tidings.compiled.jit import inner, kernel
from tidings.compiled.simd import LANES

SAMPLE: Final = 256


class SortScratch(NamedTuple):
    """Scratch buffers of the counting sort: a copy of the ranks, and 257 counts."""

    ranks: Int32s
    counts: Int64s


@inner
def widest_column(codes: UInt8s, ranks: Int32s, start: int, end: int) -> int:
    """Return the column whose codes vary most, by a sample of the ranks."""
    # The variance only chooses a column: a sample of 256 chooses nearly always the same one.
    step = max(1, (end - start) // SAMPLE)
    widest, most = 0, -1.0
    for column in range(codes.shape[1]):
        count, total, squares = 0.0, 0.0, 0.0
        for place in range(start, end, step):
            code = float(codes[ranks[place], column])
            count, total, squares = count + 1, total + code, squares + code * code
        variance = squares / count - (total / count) ** 2
        if variance > most:
            widest, most = column, variance
    return widest


@inner
def sort_by_column(
    codes: UInt8s, column: int, ranks: Int32s, start: int, end: int, scratch: SortScratch
) -> None:
    """Sort ranks[start:end] by one column, with a stable counting sort; O(n)."""
    copy, counts = scratch.ranks, scratch.counts
    counts[:] = 0
    for place in range(start, end):
        copy[place] = ranks[place]
        counts[int(codes[ranks[place], column]) + 1] += 1
    for code in range(1, len(counts)):
        counts[code] += counts[code - 1]
    for place in range(start, end):
        code = int(codes[copy[place], column])
        ranks[start + counts[code]] = copy[place]
        counts[code] += 1


@kernel
def cluster(codes: UInt8s, ranks: Int32s, start: int, end: int, scratch: SortScratch) -> None:
    """Split ranks[start:end] by its widest column, recursively, down to blocks; O(n log n)."""
    # Depth-first, one half a level waits on the stack: 128 are more than any array needs.
    stack = np.empty((128, 2), np.int64)
    stack[0, 0], stack[0, 1] = start, end
    size = 1
    while size > 0:
        size -= 1
        first, last = stack[size, 0], stack[size, 1]
        if last - first <= LANES:
            continue
        column = widest_column(codes, ranks, first, last)
        sort_by_column(codes, column, ranks, first, last, scratch)
        blocks = (last - first + LANES - 1) // LANES
        middle = first + (blocks + 1) // 2 * LANES  # parts begin on whole blocks
        stack[size, 0], stack[size, 1] = first, middle
        stack[size + 1, 0], stack[size + 1, 1] = middle, last
        size += 2
