"""The delta of a live index: a grid over position, length and score that is read while it grows.

    level h     |               one cell               |    16**h / 8 bands of scores
    ...
    level 1     |  16 cells wide  |  16 cells wide  | ..    2 bands
    level 0     | c | c | c | c | c | c | c | c | c | ..    1 band, 16**h cells

The line is cut into 16**h cells. An interval lies on the lowest level where it touches at most two
wide cells: one slot in either, its twins. Short intervals are thus found by position, and long
ones, many of which are stabbed, by score. A node is one cell and band of a level:

    node (first chunk, last chunk, best key) -> chunk -> chunk -> ...
    chunk     | 16 lows | 16 highs | 16 scores |            compared at once
    slot      (key, id, died, born)

Nothing that a reader may see is ever moved. A slot records the versions from which on it exists and
no longer exists; an unused slot never exists. A reader of version v thus sees exactly the entries
of v, whatever is added meanwhile and in whatever order the writes become visible.
"""

from typing import Final, NamedTuple

from numba import types

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined, inner, kernel
from tidings.compiled.simd import bounds_mask, lowest_bit, without_lowest
from tidings.index.intervals.kernels.btree_search import SearchTree, count_until
from tidings.index.intervals.kernels.hash_table import HashTable, table_remove, table_slot
from tidings.index.intervals.kernels.merge_by_key import (
    Counts,
    TwoSources,
    is_too_late,
    last_key,
    offer,
    score_of,
)

SLOTS: Final = 16
"""Slots in a chunk."""
CHUNK_WIDTH: Final = 3 * SLOTS
"""Numbers in a chunk."""
BITS: Final = 4
"""A level has 2**4 times fewer cells than the one below it."""
COARSE: Final = 3
"""There are 2**3 times fewer bands than there could be, so that few nodes are nearly empty."""
NEVER: Final = (1 << 31) - 1
NO_KEY: Final = (1 << 63) - 1
"""The best key of a node before it has entries."""

KEY, ID, DIED, BORN = range(4)
"""The columns of a slot."""
FIRST, LAST, TOP = range(3)
"""The columns of a node: its first and last chunk, or -1, and the best key it ever had."""
NEXT, USED = range(2)
"""The columns of a chunk: the next chunk of its node, or -1, and its used slots."""
TAKEN, LIVING, HEIGHT, USUAL, BUSY = range(5)
"""The pool: chunks taken, living intervals, h, the key of a typical last answer, and from BUSY on
the nodes in use on each level."""
ALONE, COPY = -1, -2
"""In the twin column: the interval has one slot; this slot is the second of two."""


class Grid(NamedTuple):
    """The arrays of a grid; see the drawing above."""

    cuts: SearchTree
    """Where the line is cut."""
    bands: Int64s
    """Per level, rows (key, id) where the scores are cut."""
    used: Int64s
    """The nodes in use, 32 in a word."""
    nodes: Int64s
    chunks: Int32s
    numbers: Float64s
    """The lows, highs and scores of the chunks."""
    slots: Int64s
    twins: Int32s
    """The other slot of an interval, ALONE or COPY."""
    pool: Int64s


class GridEntry(NamedTuple):
    """An interval as the grid stores it."""

    low: float
    high: float
    key: int
    id: int


inside = bounds_mask("<=", types.float64, SLOTS)


@inlined
def worthy(numbers: Float64s, first: int, q: float, least: float) -> int:
    """Return the mask of a chunk's slots that contain q and have a score >= least."""
    stabbed = inside(numbers, first, first + SLOTS, q, q)
    # The scores lie where highs are looked for: the lows are loaded already.
    return stabbed & inside(numbers, first, first + 2 * SLOTS, q, least)


@inlined
def band_bits(level: int) -> int:
    """Return the number of bands of a cell on a level, as a power of two."""
    return max(int64(0), BITS * level - COARSE)


@inner
def band_of(bands: Int64s, level: int, key: int, id: int) -> int:
    """Return how many of a level's cuts (key, id) do not come after this one; O(log n)."""
    below, above = int64(-1), int64(bands.shape[1])
    while above - below > 1:
        middle = (below + above) >> 1
        cut_key, cut_id = bands[level, middle, 0], bands[level, middle, 1]
        if cut_key < key or (cut_key == key and cut_id <= id):
            below = middle
        else:
            above = middle
    return above


# Writing. All writers hold the index's lock; readers may be running.


@inner
def open_chunk(grid: Grid, level: int, node: int) -> int:
    """Append an empty chunk to a node's chain and return it."""
    nodes, pool = grid.nodes, grid.pool
    chunk, last = pool[TAKEN], nodes[node, LAST]
    pool[TAKEN] += 1
    if last >= 0:
        grid.chunks[last, NEXT] = chunk
    else:
        nodes[node, FIRST] = chunk
        # Only 32 bits of each word, so that shifts of int64 never meet the sign.
        grid.used[node >> 5] |= int64(1) << (node & 31)
        pool[BUSY + level] += 1
    nodes[node, LAST] = chunk
    return chunk


@inner
def put(grid: Grid, level: int, node: int, entry: GridEntry, born: int) -> int:
    """Write an entry into a node and return its slot."""
    nodes, chunks, numbers, slots = grid.nodes, grid.chunks, grid.numbers, grid.slots
    chunk = nodes[node, LAST]
    if chunk < 0 or chunks[chunk, USED] == SLOTS:
        chunk = open_chunk(grid, level, node)
    position = int64(chunks[chunk, USED])
    slot = chunk * SLOTS + position
    chunks[chunk, USED] += 1
    first = chunk * CHUNK_WIDTH + position
    numbers[first], numbers[first + SLOTS] = entry.low, entry.high
    numbers[first + 2 * SLOTS] = score_of(entry.key)
    slots[slot, ID], slots[slot, KEY] = entry.id, entry.key
    slots[slot, DIED], slots[slot, BORN] = NEVER, born
    nodes[node, TOP] = min(nodes[node, TOP], entry.key)
    return slot


@inner
def has_room(grid: Grid, table: HashTable) -> bool:
    """Return whether one more interval fits, even if it needs two slots in new chunks."""
    chunks_left = grid.pool[TAKEN] + 2 <= len(grid.chunks)
    return chunks_left and 2 * grid.pool[LIVING] + 2 <= len(table.keys)


@inner
def grid_add(grid: Grid, table: HashTable, entry: GridEntry, born: int) -> None:
    """Add an interval, for which there is room, from version `born` on."""
    twins, height = grid.twins, grid.pool[HEIGHT]
    first, last = count_until(grid.cuts, entry.low), count_until(grid.cuts, entry.high)
    level = int64(0)
    # The number of a wide cell is a prefix of the numbers of its cells: a shift finds it.
    while (last >> (BITS * level)) - (first >> (BITS * level)) > 1:
        level += 1
    bits = band_bits(level)
    band = (level << (BITS * height)) + (
        band_of(grid.bands, level, entry.key, entry.id) >> (BITS * height - bits)
    )
    first, last = first >> (BITS * level), last >> (BITS * level)
    slot = put(grid, level, band + (first << bits), entry, born)
    twins[slot] = ALONE
    if first != last:
        twins[slot] = put(grid, level, band + (last << bits), entry, born)
        twins[twins[slot]] = COPY
    place = table_slot(table, entry.id)
    table.keys[place], table.values[place] = entry.id, slot
    grid.pool[LIVING] += 1


@inner
def grid_kill(grid: Grid, table: HashTable, id: int, version: int) -> int:
    """Write the tombstone of an interval, dead from `version` on; return its slot, or -1."""
    slots, twins = grid.slots, grid.twins
    place = table_slot(table, id)
    slot = int64(table.values[place])
    if slot < 0:
        return int64(-1)
    table_remove(table, place)
    # The slot stays where it is: readers of earlier versions still need it.
    slots[slot, DIED] = version
    if twins[slot] >= 0:
        slots[twins[slot], DIED] = version
    grid.pool[LIVING] -= 1
    return slot


@inner
def bounds_at(grid: Grid, slot: int) -> tuple[float, float]:
    """Return low and high of a slot."""
    first = (slot // SLOTS) * CHUNK_WIDTH + slot % SLOTS
    return grid.numbers[first], grid.numbers[first + SLOTS]


# Reading, at one version.


@inlined
def next_node(used: Int64s, node: int, end: int) -> int:
    """Return the next node in use from `node` on, or the end."""
    while node < end:
        rest = used[node >> 5] >> (node & 31)
        if rest != 0:
            return min(node + lowest_bit(rest), end)
        node = ((node >> 5) + 1) << 5
    return end


@inlined
def chunk_offer(
    grid: Grid, chunk: int, q: float, version: int, best: TwoSources, counts: Counts
) -> Counts:
    """Offer the stabbed entries of a chunk; return the new counts."""
    slots = grid.slots
    mask = worthy(grid.numbers, chunk * CHUNK_WIDTH, q, score_of(last_key(best, counts)))
    while mask != 0:
        slot = chunk * SLOTS + lowest_bit(mask)
        mask = without_lowest(mask)
        # The vector compared scores: ids decide ties, and versions are kept elsewhere.
        if slots[slot, BORN] <= version < slots[slot, DIED] and not is_too_late(
            best, counts, slots[slot, KEY], slots[slot, ID]
        ):
            counts = offer(best, counts, slots[slot, KEY], slots[slot, ID])
    return counts


@inlined
def node_offer(
    grid: Grid, node: int, q: float, version: int, best: TwoSources, counts: Counts
) -> Counts:
    """Offer the stabbed entries of a node; return the new counts."""
    chunk = grid.nodes[node, FIRST]
    while chunk >= 0:
        counts = chunk_offer(grid, chunk, q, version, best, counts)
        chunk = int64(grid.chunks[chunk, NEXT])
    return counts


@inlined
def grid_seed(grid: Grid, q: float, version: int, best: TwoSources) -> tuple[int, Counts]:
    """Offer the longest entries that are better than a typical last answer.

    They are likely to be stabbed, and each may spare the walk of the base the rest of its way.
    Returns the node where this ended, and the counts.
    """
    pool = grid.pool
    level, counts = pool[HEIGHT], Counts(int64(0), int64(0))
    node = level << (BITS * level)
    if pool[BUSY + level] == 0:
        return node, counts
    end = node + (int64(1) << band_bits(level))
    node = next_node(grid.used, node, end)
    while node < end:
        # Keys ascend as scores descend, so a greater key is a worse entry.
        if grid.nodes[node, TOP] > min(pool[USUAL], last_key(best, counts)):
            break
        counts = node_offer(grid, node, q, version, best, counts)
        node = next_node(grid.used, node + 1, end)
    return node, counts


@inlined
def grid_offer(
    grid: Grid, seeded: int, q: float, version: int, best: TwoSources, counts: Counts
) -> Counts:
    """Offer the stabbed entries, level by level, and band by band until a band is too late.

    `seeded` is the node where the seeds ended, from which on the highest level is searched. Bands
    are ordered by key, so the first late one ends its level.
    """
    pool = grid.pool
    height, cell = pool[HEIGHT], count_until(grid.cuts, q)
    for level in range(height, -1, -1):
        if pool[BUSY + level] == 0:
            continue
        bits = band_bits(level)
        node = (level << (BITS * height)) + ((cell >> (BITS * level)) << bits)
        end = node + (int64(1) << bits)
        node = next_node(grid.used, max(node, seeded) if level == height else node, end)
        while node < end:
            if grid.nodes[node, TOP] > last_key(best, counts):
                break
            counts = node_offer(grid, node, q, version, best, counts)
            node = next_node(grid.used, node + 1, end)
    return counts


@kernel
def grid_gather(
    grid: Grid, below: float, above: float, version: int, ids: Int64s, keys: Int64s
) -> int:
    """Write ids and keys of all entries with low <= below and above <= high; return how many.

    Tests every chunk taken; an interval in two cells is written once.
    """
    slots, count = grid.slots, int64(0)
    for chunk in range(len(ids) // SLOTS):
        first = chunk * CHUNK_WIDTH
        mask = inside(grid.numbers, first, first + SLOTS, below, above)
        while mask != 0:
            slot = chunk * SLOTS + lowest_bit(mask)
            mask = without_lowest(mask)
            # An interval in two cells has two slots.
            if slots[slot, BORN] <= version < slots[slot, DIED] and grid.twins[slot] != COPY:
                ids[count], keys[count] = slots[slot, ID], slots[slot, KEY]
                count += 1
    return count
