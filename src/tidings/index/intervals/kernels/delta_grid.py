"""Intervals that are added and stamped while they are read: a grid of places and scores.

The line is cut into 16**h cells, the scores into bands. On level l an interval lies in one of
16**(h - l) wide cells, or in two that touch, and there in one of 16**l / 8 bands, on level 0 in
the only one: short intervals are found by where they are, long ones, of which many are stabbed, by
how good they are. A node, that is a cell and a band of a level, is a chain of chunks of 16 slots.

Nothing that a reader may see is moved. A slot says from which version on it is there and from which
on it is not; slots never used are never there. A reader of version v sees exactly what was there at
v, whatever is added meanwhile, in whatever order the writes reach it.
"""

from typing import Final

from numba import types

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined, inner, wide_vectors
from tidings.compiled.simd import compare_bounds
from tidings.index.intervals.kernels.btree_search import count_until
from tidings.index.intervals.kernels.ir_blocks import table_drop, table_place
from tidings.index.intervals.kernels.merge_by_key import score_of

Grid = tuple[Float64s, Int64s, Int64s, Int64s, Int64s, Int32s, Float64s, Int64s, Int32s, Int64s]
"""Where the line is cut, as `search` has it; per level rows (key, id) where the scores are cut;
nodes in use, 32 in a word; nodes; chunks; 16 lows, highs and scores a chunk; slots; the other slot
of each; the pool."""
Entry = tuple[float, float, int, int]
"""Low, high, key and id."""
Young = tuple[Int64s, Int64s]
"""A table of the ids in the grid: ids, and their slots or -1."""
SLOTS: Final = 16
ROOM: Final = 3 * SLOTS
"""So many numbers a chunk has: its lows, its highs, its scores."""
BITS: Final = 4
NEVER: Final = (1 << 31) - 1
NOTHING: Final = (1 << 63) - 1
"""The best key of a node before there is one."""

KEY, ID, DIED, BORN = range(4)
FIRST, LAST, TOP = range(3)
"""A node: its first and last chunk, or -1, and the best key that was ever in it."""
COARSE: Final = 3
"""There are 2**3 times fewer bands than there could be, so that few nodes are nearly empty."""
NEXT, USED = range(2)
TAKEN, LIVING, HEIGHT, USUAL, BUSY = range(5)
"""The pool: chunks taken, intervals that live, h, the key of a usual last answer, and per level how
many nodes are in use."""
ALONE, COPY = -1, -2
"""In place of the other slot: there is none; this is the second of two."""


def inside_plain(bounds: Float64s, first: int, below: float, above: float) -> int:
    """Give which of the 16 slots of a chunk have low <= below and above <= high, as a mask."""
    mask = int64(0)
    for each in range(SLOTS):
        if bounds[first + each] <= below and above <= bounds[first + SLOTS + each]:
            mask |= int64(1) << int64(each)
    return mask


compare_slots = compare_bounds("<=", types.float64, SLOTS)


@inner
def inside_fast(bounds: Float64s, first: int, below: float, above: float) -> int:
    """Give which of the 16 slots of a chunk have low <= below and above <= high, as a mask."""
    mask: int = compare_slots(bounds, first, first + SLOTS, below, above)
    return mask


def worthy_plain(bounds: Float64s, first: int, q: float, least: float) -> int:
    """Give which of the 16 slots of a chunk contain q and have least <= score, as a mask."""
    mask = int64(0)
    for each in range(SLOTS):
        at = first + each
        if bounds[at] <= q <= bounds[at + SLOTS] and least <= bounds[at + 2 * SLOTS]:
            mask |= int64(1) << int64(each)
    return mask


@inlined
def worthy_fast(bounds: Float64s, first: int, q: float, least: float) -> int:
    """Give which of the 16 slots of a chunk contain q and have least <= score, as a mask."""
    stabbed: int = compare_slots(bounds, first, first + SLOTS, q, q)
    good: int = compare_slots(bounds, first, first + 2 * SLOTS, q, least)
    return stabbed & good


inside = inside_fast if wide_vectors() else inner(inside_plain)
worthy = worthy_fast if wide_vectors() else inner(worthy_plain)


@inlined
def bands_of(level: int) -> int:
    """Give how many bands a cell has on a level, as a power of two."""
    return max(int64(0), BITS * level - COARSE)


@inner
def band_of(bands: Int64s, level: int, key: int, id: int) -> int:
    """Give how many of a level's rows (key, id) do not come after this one; O(log n)."""
    below, above = int64(-1), int64(bands.shape[1])
    while above - below > 1:
        middle = (below + above) >> 1
        cut, other = bands[level, middle, 0], bands[level, middle, 1]
        if cut < key or (cut == key and other <= id):
            below = middle
        else:
            above = middle
    return above


@inner
def open_chunk(grid: Grid, level: int, node: int) -> int:
    """Put a chunk, which is empty, at the end of a node's chain."""
    words, nodes, chunks, pool = grid[3], grid[4], grid[5], grid[9]
    new, last = pool[TAKEN], nodes[node, LAST]
    pool[TAKEN] += 1
    if last >= 0:
        chunks[last, NEXT] = new
    else:
        nodes[node, FIRST] = new
        words[node >> 5] |= int64(1) << (node & 31)
        pool[BUSY + level] += 1
    nodes[node, LAST] = new
    return new


@inner
def put(grid: Grid, level: int, node: int, entry: Entry, born: int) -> int:
    """Write an entry into a node; give its slot."""
    nodes, chunks, bounds, notes = grid[4], grid[5], grid[6], grid[7]
    chunk = nodes[node, LAST]
    if chunk < 0 or chunks[chunk, USED] == SLOTS:
        chunk = open_chunk(grid, level, node)
    at = int64(chunks[chunk, USED])
    slot = chunk * SLOTS + at
    chunks[chunk, USED] += 1
    first = chunk * ROOM + at
    bounds[first], bounds[first + SLOTS] = entry[0], entry[1]
    bounds[first + 2 * SLOTS] = score_of(entry[2])
    notes[slot, ID], notes[slot, KEY] = entry[3], entry[2]
    notes[slot, DIED], notes[slot, BORN] = NEVER, born
    nodes[node, TOP] = min(nodes[node, TOP], entry[2])
    return slot


@inner
def has_room(grid: Grid, young: Young) -> bool:
    """Say whether one more interval finds room, also if it needs two slots in new chunks."""
    chunks, pool = grid[5], grid[9]
    return pool[TAKEN] + 2 <= len(chunks) and 2 * pool[LIVING] + 2 <= len(young[0])


@inner
def grid_add(grid: Grid, young: Young, entry: Entry, born: int) -> None:
    """Add an interval, for which there is room, from version `born` on."""
    twins, pool, height = grid[8], grid[9], grid[9][HEIGHT]
    first, last = count_until(grid[0], grid[1], entry[0]), count_until(grid[0], grid[1], entry[1])
    level = int64(0)
    while (last >> (BITS * level)) - (first >> (BITS * level)) > 1:
        level += 1
    bands = bands_of(level)
    band = (level << (BITS * height)) + (
        band_of(grid[2], level, entry[2], entry[3]) >> (BITS * height - bands)
    )
    first, last = first >> (BITS * level), last >> (BITS * level)
    slot = put(grid, level, band + (first << bands), entry, born)
    twins[slot] = ALONE
    if first != last:
        twins[slot] = put(grid, level, band + (last << bands), entry, born)
        twins[twins[slot]] = COPY
    place = table_place(young[0], young[1], entry[3])  # type: ignore[arg-type]
    young[0][place], young[1][place] = entry[3], slot
    pool[LIVING] += 1


@inner
def grid_kill(grid: Grid, young: Young, id: int, version: int) -> int:
    """Stamp an interval as dead from `version` on; give its slot, or -1 if it is not there."""
    notes, twins, pool = grid[7], grid[8], grid[9]
    place = table_place(young[0], young[1], id)  # type: ignore[arg-type]
    slot = young[1][place]
    if slot < 0:
        return int64(-1)
    table_drop(young[0], young[1], place)  # type: ignore[arg-type]
    notes[slot, DIED] = version
    if twins[slot] >= 0:
        notes[twins[slot], DIED] = version
    pool[LIVING] -= 1
    return slot


@inner
def bounds_at(grid: Grid, slot: int) -> tuple[float, float]:
    """Give low and high of a slot."""
    first = (slot // SLOTS) * ROOM + slot % SLOTS
    return grid[6][first], grid[6][first + SLOTS]
