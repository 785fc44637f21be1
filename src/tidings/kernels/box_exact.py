"""Exact matching over blocks of 64 subscriptions, each with its bounds in a directory of 64.

Subscriptions are ranks, best first. The first directory's blocks keep that order; later ones gather
what lies close together, within bands of ranks that grow, so that the bounds of a block say much.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from tidings.kernels.bits import lowest_bit, without_lowest
from tidings.kernels.code_vectors import Codes, stab
from tidings.kernels.codes import NEVER, Bounds, Cuts, Floats, Ints, code_of, is_free
from tidings.kernels.heap import heap_offer, heap_sort
from tidings.kernels.policy import inner, kernel
from tidings.kernels.vectors import LANES

Ids = npt.NDArray[np.int32]
Blocks = tuple[Codes, Codes, Ids, Ids, Ids, Ids]
"""Codes of the directories and of the blocks; the rank at each place; ids by rank; the best rank
of each block; the best rank from each directory on."""

BOTH: Final = 2 * LANES
SAMPLE: Final = 256

DIRECTORIES, BLOCKS, CHECKED = range(3)


@kernel
def code_bounds(bounds: Bounds, ids: Ids, cuts: Cuts, out: Codes) -> None:
    """Write a row of low and high codes for each rank; what is unconstrained contains all codes."""
    for rank in range(len(ids)):
        for each in range(bounds[0].shape[1]):
            if is_free(bounds, ids[rank], each):
                out[rank, 2 * each], out[rank, 2 * each + 1] = 0, NEVER
            else:
                out[rank, 2 * each] = code_of(cuts, each, bounds[0][ids[rank], each])
                out[rank, 2 * each + 1] = code_of(cuts, each, bounds[1][ids[rank], each])


@inner
def widest_column(codes: Codes, ranks: Ids, start: int, end: int) -> int:
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
    codes: Codes, column: int, ranks: Ids, stretch: tuple[int, int], room: tuple[Ids, Ints]
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
def gather(codes: Codes, ranks: Ids, band: tuple[int, int], room: tuple[Ids, Ints]) -> None:
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


@kernel
def lay_exact(rows: Codes, blocks: Blocks) -> None:
    """Fill blocks, directories and best ranks; unused lanes contain nothing."""
    directories, codes, ranks, _, best_of_block, best_onwards = blocks
    attributes = rows.shape[1] // 2
    for flat in (directories, codes):
        for at in range(len(flat)):
            flat[at] = NEVER if at % BOTH < LANES else 0
    best_of_block[:] = len(ranks)
    best_onwards[:] = len(ranks)
    for place in range(len(ranks)):
        rank, block = ranks[place], place // LANES
        for each in range(attributes):
            low, high = rows[rank, 2 * each], rows[rank, 2 * each + 1]
            at = (block * attributes + each) * BOTH + place % LANES
            codes[at], codes[at + LANES] = low, high
            at = (block // LANES * attributes + each) * BOTH + block % LANES
            directories[at] = min(directories[at], low)
            directories[at + LANES] = max(directories[at + LANES], high)
        best_of_block[block] = min(best_of_block[block], rank)
        best_onwards[block // LANES] = min(best_onwards[block // LANES], rank)
    for directory in range(len(best_onwards) - 2, -1, -1):
        best_onwards[directory] = min(best_onwards[directory], best_onwards[directory + 1])


@inner
def stab_block(codes: Codes, block: int, row_codes: Codes, row: int) -> int:
    """Give the lanes of a block that contain an event in every attribute."""
    attributes = row_codes.shape[1]
    first = block * attributes * BOTH
    mask = stab(codes, first, first + LANES, row_codes[row, 0])
    for each in range(1, attributes):
        if mask == 0:
            break
        at = first + each * BOTH
        mask &= stab(codes, at, at + LANES, row_codes[row, each])
    return mask


@inner
def contains_row(bounds: Bounds, id: int, rows: Floats, row: int) -> bool:
    """Say whether every constrained attribute of a subscription contains the event's value."""
    low, high = bounds
    for each in range(rows.shape[1]):
        inside = low[id, each] <= rows[row, each] <= high[id, each]
        if not inside and not is_free(bounds, id, each):
            return False
    return True


@inner
def exact_directory(
    held: tuple[Blocks, Bounds],
    event: tuple[Codes, Floats, int],
    directory: int,
    best: Ints,
    size: int,
    counters: Ints,
) -> int:
    """Go through the blocks of a directory for one event; give the size of its answer."""
    directories, codes, ranks, ids, best_of_block, _ = held[0]
    bounds = held[1]
    row_codes, rows, row = event
    counters[DIRECTORIES] += 1
    some = stab_block(directories, directory, row_codes, row)
    while some != 0:
        block = directory * LANES + lowest_bit(some)
        some = without_lowest(some)
        if size == len(best) and best_of_block[block] > best[0]:
            continue
        counters[BLOCKS] += 1
        mask = stab_block(codes, block, row_codes, row)
        while mask != 0:
            rank = ranks[block * LANES + lowest_bit(mask)]
            mask = without_lowest(mask)
            if size == len(best) and rank > best[0]:
                continue
            counters[CHECKED] += 1
            if contains_row(bounds, ids[rank], rows, row):
                size = heap_offer(best, size, rank)
    return size


@kernel
def exact_many(
    blocks: Blocks,
    bounds: Bounds,
    events: tuple[Codes, Floats],
    answers: tuple[Ints, Ints],
    counters: Ints,
) -> None:
    """Write the best ranks of each event, in order, and how many; directory by directory."""
    best, counts = answers
    row_codes, rows = events
    best_onwards = blocks[5]
    for directory in range(len(best_onwards)):
        waiting = False
        for row in range(len(counts)):
            if counts[row] == best.shape[1] and (
                counts[row] == 0 or best_onwards[directory] > best[row, 0]
            ):
                continue
            waiting = True
            event = (row_codes, rows, row)
            counts[row] = exact_directory(
                (blocks, bounds), event, directory, best[row], counts[row], counters
            )
        if not waiting:
            break
    for row in range(len(counts)):
        heap_sort(best[row], counts[row])
