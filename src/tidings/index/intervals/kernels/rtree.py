"""An R-tree over intervals in a given order, and its left-first depth-first walk (RPS 2.2.3).

    extents   | lows:  intervals | level 1 | root | 64 NaN | highs: the same layout          |
                       ^starts[0]  ^starts[1] ^starts[2]

The intervals lie in their order, then for each b of them their extent, and so on until one node
holds a level. Levels are as flat as the order, so entry e of a level is the parent of entries
b e .. b e + b - 1 below it: the walk needs no stack, only a position. A node is compared at once,
64 lanes from any entry on, hence the 64 NaN behind the last.
"""

from typing import Final, NamedTuple

import numpy as np
from numba import types

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.ints import int64
from tidings.compiled.jit import inner, kernel
from tidings.compiled.simd import bounds_mask, lowest_bit, without_lowest

BRANCHING: Final = 50
"""b of RPS, Table 1."""

NODES, LEAVES, INTERVALS, PLACE, LEVELS = range(5)
"""The state of a walk: three counters, the next position, then the nodes entered on each level."""

STATE: Final = LEVELS + 12


class RTree(NamedTuple):
    """The extents of all entries, the first entry of each level, and the ids in tree order."""

    extents: Float64s
    starts: Int64s
    ids: Int32s


@kernel
def grow_extents(extents: Float64s, starts: Int64s) -> None:
    """Fill the levels above the intervals: each extent bounds the entries of its node."""
    half = len(extents) // 2
    for level in range(1, len(starts) - 1):
        for entry in range(starts[level] - starts[level - 1]):
            child, parent = starts[level - 1] + entry, starts[level] + entry // BRANCHING
            # Extents are uninitialized: the first entry of a node sets them.
            if entry % BRANCHING == 0:
                extents[parent], extents[half + parent] = extents[child], extents[half + child]
            else:
                extents[parent] = min(extents[parent], extents[child])
                extents[half + parent] = max(extents[half + parent], extents[half + child])


within = bounds_mask("<=", types.float64)


@inner
def count_node(state: Int64s, level: int) -> None:
    """Count a node that the walk enters."""
    state[NODES] += 1
    state[LEVELS + level] += 1
    if level == 0:
        state[LEAVES] += 1


@inner
def rtree_climb(starts: Int64s, level: int, entry: int) -> tuple[int, int]:
    """Return the highest level whose node begins at this entry, and the entry there."""
    while entry % BRANCHING == 0 and level < len(starts) - 2:
        level, entry = level + 1, entry // BRANCHING
    return level, entry


@inner
def node_within(tree: RTree, below: float, above: float, level: int, entry: int) -> tuple[int, int]:
    """Return a mask of the entries of a node, from `entry` on, within; and the node's end."""
    starts = tree.starts
    end = min(starts[level + 1] - starts[level], (entry // BRANCHING + 1) * BRANCHING)
    first = starts[level] + entry
    mask = within(tree.extents, first, first + len(tree.extents) // 2, below, above)
    # 64 lanes are compared, but a node has 50 entries: the rest belongs to its neighbour.
    return mask & ((int64(1) << (end - entry)) - 1), end


@inner
def rtree_leaf(
    tree: RTree, below: float, above: float, place: int, out: Int64s, count: int
) -> tuple[int, int]:
    """Append the ids within of one leaf from `place` on; return the next place and the count."""
    mask, end = node_within(tree, below, above, 0, place)
    while mask != 0:
        entry = lowest_bit(mask)
        mask = without_lowest(mask)
        out[count] = tree.ids[place + entry]
        count += 1
        if count == len(out):
            return place + entry + 1, count
    return end, count


@inner
def window_walk(tree: RTree, below: float, above: float, state: Int64s, out: Int64s) -> int:
    """Write the next ids with low <= below and above <= high, in tree order; return how many.

    Costs O(b) for each node entered. A walk that filled `out` resumes where it stopped.
    """
    starts = tree.starts
    place, count = state[PLACE], 0
    level, entry = rtree_climb(starts, 0, place)
    if place == 0:
        count_node(state, level)
    while count < len(out) and entry < starts[level + 1] - starts[level]:
        if level == 0:
            place, count = rtree_leaf(tree, below, above, entry, out, count)
            state[INTERVALS] += place - entry
            level, entry = rtree_climb(starts, 0, place)
            continue
        mask, end = node_within(tree, below, above, level, entry)
        if mask == 0:
            # The last node of its level: nothing can follow, not even below another parent.
            if end == starts[level + 1] - starts[level]:
                place = starts[1]
                break
            level, entry = rtree_climb(starts, level, end)
            continue
        # Skipped siblings need no stack: the walk meets their successors again from below.
        level, entry = level - 1, (entry + lowest_bit(mask)) * BRANCHING
        count_node(state, level)
    state[PLACE] = place
    return count


@kernel
def window_walk_many(tree: RTree, windows: Float64s, out: Int64s, counts: Int64s) -> None:
    """Answer each row (below, above) of `windows` in its row of `out`."""
    state = np.zeros(STATE, np.int64)
    for row in range(len(windows)):
        state[:] = 0
        counts[row] = window_walk(tree, windows[row, 0], windows[row, 1], state, out[row])


@inner
def rtree_walk(tree: RTree, q: float, state: Int64s, out: Int64s) -> int:
    """Write the next stabbed ids; in SOPT order at most 2k nodes a level (RPS Theorem 3.2)."""
    return window_walk(tree, q, q, state, out)


@kernel
def rtree_walk_many(tree: RTree, qs: Float64s, out: Int64s, counts: Int64s) -> None:
    """Answer each query in its row of `out`."""
    state = np.zeros(STATE, np.int64)
    for row in range(len(qs)):
        state[:] = 0
        counts[row] = rtree_walk(tree, qs[row], state, out[row])


@kernel
def fill_rest(out: Int64s, counts: Int64s) -> None:
    """Pad each row of answers with -1 after its count; used by all interval indexes."""
    for row in range(len(counts)):
        for column in range(counts[row], out.shape[1]):
            out[row, column] = -1
