"""Exact matching over blocks of 64 boxes, with a directory for every 64 blocks.

    block       attribute 0                 attribute 1             64 boxes, one byte a bound
                | 64 lows | 64 highs |      | 64 lows | 64 highs |  ...
    directory   the same layout, with one lane per block: the hull of its boxes

Boxes are ranks, best first. The blocks of the first directory keep that order; later ones are
clustered within bands of ranks that grow, so that hulls are tight. An event compares 64 hulls with
two instructions an attribute, then the blocks that may match, and stops at the first directory
whose ranks are all worse than its k-th best. `blocks` beats numpy columns 50 to 600 times
(bench/results/box.md).
"""

from typing import Final, NamedTuple

from tidings.compiled.array_types import Float64s, Int32s, Int64s, UInt8s
from tidings.compiled.heaps import heap_offer, heap_sort
from tidings.compiled.jit import inner, kernel
from tidings.compiled.simd import LANES, lowest_bit, without_lowest
from tidings.index.boxes.kernels.quantize import (
    NEVER,
    BoxBounds,
    CodedEvents,
    Liveness,
    is_alive,
    is_free,
)
from tidings.index.boxes.kernels.simd_codes import stab
from tidings.index.boxes.kernels.topk_heap import TopkHeaps, topk_offer

BOTH: Final = 2 * LANES
"""The bytes of an attribute in a block: lows, then highs."""

DIRECTORIES, BLOCKS, CHECKED = range(3)
"""The counters."""


class ExactLayout(NamedTuple):
    """The codes of directories and blocks, and the ranks in their order."""

    directories: UInt8s
    blocks: UInt8s
    ranks: Int32s
    """The rank at each place."""
    ids: Int32s
    """The id of each rank."""
    best_in_block: Int32s
    best_onwards: Int32s
    """The best rank from each directory on."""


class ExactTask(NamedTuple):
    """A search: the index, the events, and the counters."""

    layout: ExactLayout
    bounds: BoxBounds
    liveness: Liveness
    events: CodedEvents
    counters: Int64s


class RankHeaps(NamedTuple):
    """A heap of the best ranks per event, and the number of ranks in each."""

    ranks: Int64s
    sizes: Int64s


@kernel
def fill_exact(rows: UInt8s, layout: ExactLayout) -> None:
    """Fill blocks, directories and best ranks from coded rows; unused lanes contain nothing."""
    directories, codes, ranks = layout.directories, layout.blocks, layout.ranks
    best_in_block, best_onwards = layout.best_in_block, layout.best_onwards
    attributes = rows.shape[1] // 2
    for flat in (directories, codes):
        for place in range(len(flat)):
            # An empty lane: its low is above every code, its high below.
            flat[place] = NEVER if place % BOTH < LANES else 0
    best_in_block[:] = len(ranks)
    best_onwards[:] = len(ranks)
    for place in range(len(ranks)):
        rank, block = ranks[place], place // LANES
        for attribute in range(attributes):
            low, high = rows[rank, 2 * attribute], rows[rank, 2 * attribute + 1]
            # By block, then by attribute: the lanes that are compared together are adjacent.
            lane = (block * attributes + attribute) * BOTH + place % LANES
            codes[lane], codes[lane + LANES] = low, high
            lane = (block // LANES * attributes + attribute) * BOTH + block % LANES
            directories[lane] = min(directories[lane], low)
            directories[lane + LANES] = max(directories[lane + LANES], high)
        best_in_block[block] = min(best_in_block[block], rank)
        best_onwards[block // LANES] = min(best_onwards[block // LANES], rank)
    # Clustering mixes ranks, so a directory may be followed by a better one: minima from the end.
    for directory in range(len(best_onwards) - 2, -1, -1):
        best_onwards[directory] = min(best_onwards[directory], best_onwards[directory + 1])


@inner
def stab_block(codes: UInt8s, block: int, events: CodedEvents, row: int) -> int:
    """Return the mask of a block's lanes that contain an event in every attribute."""
    below, above = events.below_codes, events.above_codes
    attributes = events.below.shape[1]
    first, start = block * attributes * BOTH, row * (attributes + 1)
    mask = stab(codes, first, first + LANES, below[start], above[start])
    for attribute in range(1, attributes):
        # Most blocks fail at the first few attributes.
        if mask == 0:
            break
        lows, code = first + attribute * BOTH, start + attribute
        mask &= stab(codes, lows, lows + LANES, below[code], above[code])
    return mask


@inner
def contains_event(bounds: BoxBounds, id: int, events: CodedEvents, row: int) -> bool:
    """Return whether every constrained attribute of a box contains the event's value."""
    low, high = bounds.low, bounds.high
    below, above = events.below, events.above
    for attribute in range(below.shape[1]):
        inside = (
            low[id, attribute] <= below[row, attribute]
            and above[row, attribute] <= high[id, attribute]
        )
        # A missing value (NaN) is inside of nothing, but a free attribute does not ask for one.
        if not inside and not is_free(bounds, id, attribute):
            return False
    return True


@inner
def search_directory(task: ExactTask, row: int, directory: int, best: Int64s, size: int) -> int:
    """Search the blocks of a directory for one event; return the new size of its heap."""
    layout, counters = task.layout, task.counters
    counters[DIRECTORIES] += 1
    blocks = stab_block(layout.directories, directory, task.events, row)
    while blocks != 0:
        block = directory * LANES + lowest_bit(blocks)
        blocks = without_lowest(blocks)
        # The root of the heap is the worst of the best: a block without a better rank is skipped.
        if size == len(best) and layout.best_in_block[block] > best[0]:
            continue
        counters[BLOCKS] += 1
        mask = stab_block(layout.blocks, block, task.events, row)
        while mask != 0:
            rank = layout.ranks[block * LANES + lowest_bit(mask)]
            mask = without_lowest(mask)
            if size == len(best) and rank > best[0]:
                continue
            counters[CHECKED] += 1
            # Codes have no false negatives but false positives: the float64 bounds decide.
            id = layout.ids[rank]
            if is_alive(task.liveness, id) and contains_event(task.bounds, id, task.events, row):
                size = heap_offer(best, size, rank)
    return size


@kernel
def exact_many(task: ExactTask, best: RankHeaps) -> None:
    """Write the best ranks of each event, in order.

    Directories are the outer loop, so that the blocks of one stay in the cache for all events.
    """
    ranks, sizes = best.ranks, best.sizes
    best_onwards = task.layout.best_onwards
    for directory in range(len(best_onwards)):
        unfinished = False
        for row in range(len(sizes)):
            # With k = 0 there is no k-th best to compare with.
            if sizes[row] == ranks.shape[1] and (
                sizes[row] == 0 or best_onwards[directory] > ranks[row, 0]
            ):
                continue
            unfinished = True
            sizes[row] = search_directory(task, row, directory, ranks[row], sizes[row])
        if not unfinished:
            break
    for row in range(len(sizes)):
        heap_sort(ranks[row], sizes[row])


@kernel
def offer_ranks(
    best: RankHeaps, ids: Int32s, scores: Float64s, names: Int64s, heaps: TopkHeaps
) -> None:
    """Offer the best ranks of each event; `ids` is by rank, `scores` and `names` are by id."""
    for row in range(len(best.sizes)):
        for position in range(best.sizes[row]):
            id = ids[best.ranks[row, position]]
            topk_offer(heaps, row, scores[id], names[id])
