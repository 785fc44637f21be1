"""Exact matching over blocks of 64 subscriptions, each with its bounds in a directory of 64.

Subscriptions are ranks, best first. The first directory's blocks keep that order; later ones gather
what lies close together, within bands of ranks that grow, so that the bounds of a block say much.
"""

from typing import Final

from tidings.compiled.array_types import Float64s, Int32s, Int64s, UInt8s
from tidings.compiled.bits import lowest_bit, without_lowest
from tidings.compiled.heaps import heap_offer, heap_sort
from tidings.compiled.jit import inner, kernel
from tidings.compiled.simd import LANES
from tidings.index.boxes.kernels.quantize import NEVER, Alive, Asked, Bounds, is_alive, is_free
from tidings.index.boxes.kernels.simd_codes import stab
from tidings.index.boxes.kernels.topk_heap import Found, best_offer

Blocks = tuple[UInt8s, UInt8s, Int32s, Int32s, Int32s, Int32s]
"""Codes of the directories and of the blocks; the rank at each place; ids by rank; the best rank
of each block; the best rank from each directory on."""

BOTH: Final = 2 * LANES

DIRECTORIES, BLOCKS, CHECKED = range(3)


@kernel
def lay_exact(rows: UInt8s, blocks: Blocks) -> None:
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
def stab_block(codes: UInt8s, block: int, asked: Asked, row: int) -> int:
    """Give the lanes of a block that contain an event in every attribute."""
    below, above, numbers = asked[0], asked[1], asked[2]
    attributes = numbers.shape[1]
    first, start = block * attributes * BOTH, row * (attributes + 1)
    mask = stab(codes, first, first + LANES, below[start], above[start])
    for each in range(1, attributes):
        if mask == 0:
            break
        at = first + each * BOTH
        mask &= stab(codes, at, at + LANES, below[start + each], above[start + each])
    return mask


@inner
def contains_row(bounds: Bounds, id: int, asked: Asked, row: int) -> bool:
    """Say whether every constrained attribute of a subscription contains the event's value."""
    low, high = bounds
    below, above = asked[2], asked[3]
    for each in range(below.shape[1]):
        inside = low[id, each] <= below[row, each] and above[row, each] <= high[id, each]
        if not inside and not is_free(bounds, id, each):
            return False
    return True


@inner
def exact_directory(
    held: tuple[Blocks, Bounds, Alive],
    event: tuple[Asked, int],
    directory: int,
    best: Int64s,
    size: int,
    counters: Int64s,
) -> int:
    """Go through the blocks of a directory for one event; give the size of its answer."""
    directories, codes, ranks, ids, best_of_block, _ = held[0]
    _, bounds, alive = held
    asked, row = event
    counters[DIRECTORIES] += 1
    some = stab_block(directories, directory, asked, row)
    while some != 0:
        block = directory * LANES + lowest_bit(some)
        some = without_lowest(some)
        if size == len(best) and best_of_block[block] > best[0]:
            continue
        counters[BLOCKS] += 1
        mask = stab_block(codes, block, asked, row)
        while mask != 0:
            rank = ranks[block * LANES + lowest_bit(mask)]
            mask = without_lowest(mask)
            if size == len(best) and rank > best[0]:
                continue
            counters[CHECKED] += 1
            if is_alive(alive, ids[rank]) and contains_row(bounds, ids[rank], asked, row):
                size = heap_offer(best, size, rank)
    return size


@kernel
def exact_many(
    held: tuple[Blocks, Bounds, Alive],
    asked: Asked,
    answers: tuple[Int64s, Int64s],
    counters: Int64s,
) -> None:
    """Write the best ranks of each event, in order, and how many; directory by directory."""
    best, counts = answers
    best_onwards = held[0][5]
    for directory in range(len(best_onwards)):
        waiting = False
        for row in range(len(counts)):
            if counts[row] == best.shape[1] and (
                counts[row] == 0 or best_onwards[directory] > best[row, 0]
            ):
                continue
            waiting = True
            counts[row] = exact_directory(
                held, (asked, row), directory, best[row], counts[row], counters
            )
        if not waiting:
            break
    for row in range(len(counts)):
        heap_sort(best[row], counts[row])


@kernel
def offer_ranks(
    ranked: tuple[Int64s, Int64s], held: tuple[Int32s, Float64s, Int64s], found: Found
) -> None:
    """Offer the best ranks of each event, whose ids, scores and names are given by rank or id."""
    best, counts = ranked
    ids, worth, names = held
    for row in range(len(counts)):
        size = found[2][row]
        for each in range(counts[row]):
            id = ids[best[row, each]]
            size = best_offer((found[0], found[1], row), size, worth[id], names[id])
        found[2][row] = size
