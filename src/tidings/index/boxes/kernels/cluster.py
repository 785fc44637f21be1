"""Boxes put in an order in which neighbours lie close together: halved by what varies most."""

from typing import Final

import numpy as np

from tidings.compiled.array_types import Int32s, Int64s, UInt8s
from tidings.compiled.jit import inner, kernel
from tidings.compiled.simd import LANES
from tidings.index.boxes.kernels.quantize import NEVER, Bounds, Cuts, code_of, is_free

SAMPLE: Final = 256


@kernel
def code_bounds(bounds: Bounds, ids: Int32s, cuts: Cuts, out: UInt8s) -> None:
    """Write a row of low and high codes for each rank; what is unconstrained contains all codes."""
    for rank in range(len(ids)):
        for each in range(bounds[0].shape[1]):
            if is_free(bounds, ids[rank], each):
                out[rank, 2 * each], out[rank, 2 * each + 1] = 0, NEVER
            else:
                out[rank, 2 * each] = code_of(cuts, each, bounds[0][ids[rank], each])
                out[rank, 2 * each + 1] = code_of(cuts, each, bounds[1][ids[rank], each])


@inner
def widest_column(codes: UInt8s, ranks: Int32s, start: int, end: int) -> int:
    """Give the column whose codes vary most among some of the ranks."""
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
    codes: UInt8s, column: int, ranks: Int32s, stretch: tuple[int, int], room: tuple[Int32s, Int64s]
) -> None:
    """Sort a stretch of ranks by one column, equal ones as they were; O(n)."""
    start, end = stretch
    copy, starts = room
    starts[:] = 0
    for place in range(start, end):
        copy[place] = ranks[place]
        starts[int(codes[ranks[place], column]) + 1] += 1
    for code in range(1, len(starts)):
        starts[code] += starts[code - 1]
    for place in range(start, end):
        code = int(codes[copy[place], column])
        ranks[start + starts[code]] = copy[place]
        starts[code] += 1


@kernel
def gather(
    codes: UInt8s, ranks: Int32s, band: tuple[int, int], room: tuple[Int32s, Int64s]
) -> None:
    """Halve a band by its widest column, and its halves, until they are blocks; O(n log n)."""
    stack = np.empty((128, 2), np.int64)
    stack[0, 0], stack[0, 1] = band
    size = 1
    while size > 0:
        size -= 1
        start, end = stack[size, 0], stack[size, 1]
        if end - start <= LANES:
            continue
        column = widest_column(codes, ranks, start, end)
        sort_by_column(codes, column, ranks, (start, end), room)
        blocks = (end - start + LANES - 1) // LANES
        middle = start + (blocks + 1) // 2 * LANES
        stack[size, 0], stack[size, 1] = start, middle
        stack[size + 1, 0], stack[size + 1, 1] = middle, end
        size += 2
