"""An R-tree over intervals in a given order, and its left-first depth-first walk (RPS 2.2.3).

The tree is `extents`, the lows of all entries and then their highs, each half filled up by 64 NaN:
first the intervals in their order, then for each b of them their extent, and so on, until one node
holds all; `starts`, the entry where each level begins; and `ids`, the interval ids in order. It is
as flat as its order: the walk needs no stack. A node is compared at once.
"""

from typing import Final

import numpy as np
from numba import types

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.bits import lowest_bit, without_lowest
from tidings.compiled.heaps import heap_offer, heap_sort
from tidings.compiled.ints import int64
from tidings.compiled.jit import inner, kernel, wide_vectors
from tidings.compiled.simd import LANES, compare_bounds

Tree = tuple[Float64s, Int64s, Int32s]
Window = tuple[float, float]
"""What is looked for has low <= the first and the second <= high; both are q for a point."""

BRANCHING: Final = 50
"""b of RPS, Table 1."""

NODES, LEAVES, INTERVALS, PLACE, LEVELS = range(5)
"""The state of a walk: three counters, the next place in order, then nodes entered per level."""

STATE: Final = LEVELS + 12


@kernel
def grow_extents(extents: Float64s, starts: Int64s) -> None:
    """Fill the levels above the intervals: each extent bounds the entries of its node."""
    half = len(extents) // 2
    for level in range(1, len(starts) - 1):
        for entry in range(starts[level] - starts[level - 1]):
            child, parent = starts[level - 1] + entry, starts[level] + entry // BRANCHING
            if entry % BRANCHING == 0:
                extents[parent], extents[half + parent] = extents[child], extents[half + child]
            else:
                extents[parent] = min(extents[parent], extents[child])
                extents[half + parent] = max(extents[half + parent], extents[half + child])


def within_plain(extents: Float64s, first: int, below: float, above: float) -> int:
    """Give which of the 64 entries from `first` on are within a window, as a mask."""
    mask, half = int64(0), len(extents) // 2
    for entry in range(LANES):
        if extents[first + entry] <= below and above <= extents[half + first + entry]:
            mask |= int64(1) << int64(entry)
    return mask


compare_within = compare_bounds("<=", types.float64)


@inner
def within_fast(extents: Float64s, first: int, below: float, above: float) -> int:
    """Give which of the 64 entries from `first` on are within a window, as a mask."""
    mask: int = compare_within(extents, first, first + len(extents) // 2, below, above)
    return mask


within = within_fast if wide_vectors() else inner(within_plain)


@inner
def rtree_enter(state: Int64s, level: int) -> None:
    """Count a node that the walk enters."""
    state[NODES] += 1
    state[LEVELS + level] += 1
    if level == 0:
        state[LEAVES] += 1


@inner
def rtree_climb(starts: Int64s, level: int, entry: int) -> tuple[int, int]:
    """Go up from the first entry of a node not yet entered to the node that holds it."""
    while entry % BRANCHING == 0 and level < len(starts) - 2:
        level, entry = level + 1, entry // BRANCHING
    return level, entry


@inner
def rtree_within(tree: Tree, window: Window, level: int, entry: int) -> tuple[int, int]:
    """Give which entries of a node, from `entry` on, are within, as a mask, and the node's end."""
    extents, starts = tree[0], tree[1]
    end = min(starts[level + 1] - starts[level], (entry // BRANCHING + 1) * BRANCHING)
    mask = within(extents, starts[level] + entry, window[0], window[1])
    return mask & ((int64(1) << (end - entry)) - 1), end


@inner
def rtree_leaf(tree: Tree, window: Window, place: int, out: Int64s, found: int) -> tuple[int, int]:
    """Write the ids within of one leaf from `place` on; give the next place and how many."""
    ids = tree[2]
    mask, end = rtree_within(tree, window, 0, place)
    while mask != 0:
        entry = lowest_bit(mask)
        mask = without_lowest(mask)
        out[found] = ids[place + entry]
        found += 1
        if found == len(out):
            return place + entry + 1, found
    return end, found


@inner
def window_walk(tree: Tree, window: Window, state: Int64s, out: Int64s) -> int:
    """Write the next ids within, in order, from where `state` stands; give how many.

    Cost O(b) for each node that is entered. A walk that filled `out` goes on where it stopped.
    """
    starts = tree[1]
    place, found = state[PLACE], 0
    level, entry = rtree_climb(starts, 0, place)
    if place == 0:
        rtree_enter(state, level)
    while found < len(out) and entry < starts[level + 1] - starts[level]:
        if level == 0:
            place, found = rtree_leaf(tree, window, entry, out, found)
            state[INTERVALS] += place - entry
            level, entry = rtree_climb(starts, 0, place)
            continue
        mask, end = rtree_within(tree, window, level, entry)
        if mask == 0:
            if end == starts[level + 1] - starts[level]:
                place = starts[1]
                break
            level, entry = rtree_climb(starts, level, end)
            continue
        level, entry = level - 1, (entry + lowest_bit(mask)) * BRANCHING
        rtree_enter(state, level)
    state[PLACE] = place
    return found


@kernel
def window_walk_many(tree: Tree, windows: Float64s, out: Int64s, counts: Int64s) -> None:
    """Answer each row of windows in its row of `out`, from the start."""
    state = np.zeros(STATE, np.int64)
    for row in range(len(windows)):
        state[:] = 0
        counts[row] = window_walk(tree, (windows[row, 0], windows[row, 1]), state, out[row])


@inner
def rtree_walk(tree: Tree, q: float, state: Int64s, out: Int64s) -> int:
    """Write the next stabbed ids; in a SOPT-R-tree at most 2k nodes a level (RPS Theorem 3.2)."""
    return window_walk(tree, (q, q), state, out)


@kernel
def rtree_walk_many(tree: Tree, qs: Float64s, out: Int64s, counts: Int64s) -> None:
    """Answer each query in its row of `out`, from the start."""
    state = np.zeros(STATE, np.int64)
    for row in range(len(qs)):
        state[:] = 0
        counts[row] = rtree_walk(tree, qs[row], state, out[row])


@kernel
def rtree_best(tree: Tree, q: float, state: Int64s, out: Int64s) -> int:
    """Write the next best ids of a tree whose order says nothing about scores.

    Its last array begins with the ranks in order and ends with the ids by rank. Every stabbed
    interval is looked at: O(b) a node, O(log k) an interval.
    """
    _, starts, ranks = tree
    seen = np.empty(256, np.int64)
    size, count, floor = 0, 1, state[PLACE]
    state[PLACE] = 0
    while count > 0:
        count = rtree_walk(tree, q, state, seen)
        for each in seen[:count]:
            if each >= floor:
                size = heap_offer(out, size, each)
    heap_sort(out, size)
    state[PLACE] = out[size - 1] + 1 if size > 0 else starts[1]
    for each in range(size):
        out[each] = ranks[starts[1] + out[each]]
    return size


@kernel
def rtree_best_many(tree: Tree, qs: Float64s, out: Int64s, counts: Int64s) -> None:
    """Answer each query in its row of `out`, from the start."""
    state = np.zeros(STATE, np.int64)
    for row in range(len(qs)):
        state[:] = 0
        counts[row] = rtree_best(tree, qs[row], state, out[row])
