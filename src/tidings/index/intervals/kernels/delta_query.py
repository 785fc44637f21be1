"""Queries of a grid: what was there at a version, whatever is added meanwhile."""

from tidings.compiled.array_types import Int64s
from tidings.compiled.bits import lowest_bit, without_lowest
from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined, inner, kernel
from tidings.index.intervals.kernels.delta_grid import (
    BITS,
    BORN,
    BUSY,
    COPY,
    DIED,
    FIRST,
    HEIGHT,
    ID,
    KEY,
    NEXT,
    ROOM,
    SLOTS,
    TOP,
    USUAL,
    Grid,
    bands_of,
    inside,
    worthy,
)
from tidings.index.intervals.kernels.merge_by_key import (
    Best,
    Counts,
    comes_late,
    last_key,
    offer,
    score_of,
)

Window = tuple[float, float]
"""What is looked for has low <= the first and the second <= high; both are q for a point."""
Found = tuple[Int64s, Int64s]
"""Room for ids and for keys."""


@inlined
def next_node(words: Int64s, node: int, end: int) -> int:
    """Give the next node in use from `node` on, or the end."""
    while node < end:
        rest = words[node >> 5] >> (node & 31)
        if rest != 0:
            return min(node + lowest_bit(rest), end)
        node = ((node >> 5) + 1) << 5
    return end


@inlined
def chunk_offer(
    grid: Grid, chunk: int, q: float, version: int, best: Best, counts: Counts
) -> Counts:
    """Offer what q stabs in a chunk; give how many are found."""
    bounds, notes = grid[6], grid[7]
    mask = worthy(bounds, chunk * ROOM, q, score_of(last_key(best, counts)))
    while mask != 0:
        slot = chunk * SLOTS + lowest_bit(mask)
        mask = without_lowest(mask)
        if notes[slot, BORN] <= version < notes[slot, DIED] and not comes_late(
            best, counts, notes[slot, KEY], notes[slot, ID]
        ):
            counts = offer(best, counts, notes[slot, KEY], notes[slot, ID])
    return counts


@inlined
def node_offer(grid: Grid, node: int, q: float, version: int, best: Best, counts: Counts) -> Counts:
    """Offer what q stabs in a node."""
    chunk = grid[4][node, FIRST]
    while chunk >= 0:
        counts = chunk_offer(grid, chunk, q, version, best, counts)
        chunk = int64(grid[5][chunk, NEXT])
    return counts


@inlined
def grid_seed(grid: Grid, q: float, version: int, best: Best) -> tuple[int, Counts]:
    """Begin with those of the longest that are better than a usual last answer.

    They are likely to be stabbed and to spare a walk the rest of its way. Gives the node where that
    ended, and how many are found.
    """
    words, nodes, pool = grid[3], grid[4], grid[9]
    level, counts = pool[HEIGHT], (int64(0), int64(0))
    node = level << (BITS * level)
    if pool[BUSY + level] == 0:
        return node, counts
    end = node + (int64(1) << bands_of(level))
    node = next_node(words, node, end)
    while node < end:
        if nodes[node, TOP] > min(pool[USUAL], last_key(best, counts)):
            break
        counts = node_offer(grid, node, q, version, best, counts)
        node = next_node(words, node + 1, end)
    return node, counts


@inlined
def grid_offer(
    grid: Grid, at: tuple[int, int], q: float, version: int, best: Best, counts: Counts
) -> Counts:
    """Offer what q stabs, level by level, there band by band until one comes late as a whole.

    `at` is the cell of q and the node where the seeds ended: there the highest level goes on.
    """
    words, nodes, pool = grid[3], grid[4], grid[9]
    height, (cell, seeded) = pool[HEIGHT], at
    for level in range(height, -1, -1):
        if pool[BUSY + level] == 0:
            continue
        bands = bands_of(level)
        node = (level << (BITS * height)) + ((cell >> (BITS * level)) << bands)
        end = node + (int64(1) << bands)
        node = next_node(words, max(node, seeded) if level == height else node, end)
        while node < end:
            if nodes[node, TOP] > last_key(best, counts):
                break
            counts = node_offer(grid, node, q, version, best, counts)
            node = next_node(words, node + 1, end)
    return counts


@inner
def chunk_gather(
    grid: Grid, chunk: int, window: Window, version: int, out: Found, count: int
) -> int:
    """Write ids and keys of a chunk's entries within the window, each interval once."""
    bounds, notes, twins = grid[6], grid[7], grid[8]
    mask = inside(bounds, chunk * ROOM, window[0], window[1])
    while mask != 0:
        slot = chunk * SLOTS + lowest_bit(mask)
        mask = without_lowest(mask)
        if notes[slot, BORN] <= version < notes[slot, DIED] and twins[slot] != COPY:
            out[0][count], out[1][count] = notes[slot, ID], notes[slot, KEY]
            count += 1
    return count


@kernel
def grid_gather(grid: Grid, window: Window, version: int, taken: int, out: Found) -> int:
    """Write ids and keys of all entries within the window; looks at all `taken` chunks."""
    count = int64(0)
    for chunk in range(taken):
        count = chunk_gather(grid, chunk, window, version, out, count)
    return count
