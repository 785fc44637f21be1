"""A SOPT-R-tree of 64 entries a node, compared at once: the stabbed ones are a 64-bit mask.

A block is 64 lows and 64 highs in float32, taken from the middle of all bounds, scaled, and rounded
outwards: what the mask leaves out is not stabbed. Blocks of a level follow each other, leaves
first, from block starts[level] on. A leaf's entry is stabbed for sure where q is inside also after
rounding; only else are its float64 bounds looked at. All this keeps order, so it is exact.
"""

from typing import Final

import numpy as np
from numba import types

from tidings.compiled.array_types import Float32s, Float64s, Int32s, Int64s
from tidings.compiled.bits import lowest_bit, without_lowest
from tidings.compiled.ints import float32, int64
from tidings.compiled.jit import inlined, inner, kernel, wide_vectors
from tidings.compiled.simd import compare_bounds

Tree = tuple[Float32s, Int64s, Float64s, Int32s, Float64s]
"""Blocks, the first block of each level, the intervals as rows (low, high), their ids; the frame:
the middle of the bounds, twice the farthest from there, and the scale."""
Rounded = tuple[float, float]
"""A query, rounded down and rounded up."""

FAN: Final = 64
WIDTH: Final = 2 * FAN

NODES, LEAVES, INTERVALS, BEGUN, LEVEL, LEVELS = range(6)
STATE: Final = LEVELS + 3 * 8
"""The state of a walk: counters, whether it has begun, its level, and per level the block, the
entries of it still to be taken, and for the leaf those that are sure."""


def inside_plain(blocks: Float32s, first: int, below: float, above: float) -> int:
    """Give the entries of a block with low <= below and above <= high."""
    mask = int64(0)
    for entry in range(FAN):
        if blocks[first + entry] <= below and above <= blocks[first + FAN + entry]:
            mask |= int64(1) << int64(entry)
    return mask


def deep_plain(blocks: Float32s, first: int, below: float, above: float) -> int:
    """Give the entries of a block with low < below and above < high."""
    mask = int64(0)
    for entry in range(FAN):
        if blocks[first + entry] < below and above < blocks[first + FAN + entry]:
            mask |= int64(1) << int64(entry)
    return mask


compare_inside = compare_bounds("<=", types.float32)
compare_deep = compare_bounds("<", types.float32)


@inner
def inside_fast(blocks: Float32s, first: int, below: float, above: float) -> int:
    """Give the entries of a block with low <= below and above <= high."""
    mask: int = compare_inside(blocks, first, first + FAN, below, above)
    return mask


@inner
def deep_fast(blocks: Float32s, first: int, below: float, above: float) -> int:
    """Give the entries of a block with low < below and above < high."""
    mask: int = compare_deep(blocks, first, first + FAN, below, above)
    return mask


WIDE: Final = wide_vectors()
inside = inside_fast if WIDE else inner(inside_plain)
deep = deep_fast if WIDE else inner(deep_plain)


@inlined
def rounded(frame: Float64s, q: float) -> Rounded:
    """Give a query as the blocks hold bounds, rounded down and rounded up.

    What lies far outside of all bounds is drawn near, but stays outside.
    """
    base, reach, scale = frame[0], frame[1], frame[2]
    away = q - base
    if reach < away < np.inf:
        away = reach
    if -np.inf < away < -reach:
        away = -reach
    framed = away * scale
    near = float32(framed)
    below = np.nextafter(near, float32(-np.inf)) if np.float64(near) > framed else near
    above = np.nextafter(near, float32(np.inf)) if np.float64(near) < framed else near
    return below, above


@inlined
def wide_enter(tree: Tree, limits: Rounded, level: int, block: int, state: Int64s) -> None:
    """Compare a block: note which of its entries are to be taken."""
    blocks, starts = tree[0], tree[1]
    first = (starts[level] + block) * WIDTH
    at = LEVELS + 3 * level
    state[at] = block
    state[at + 1] = inside(blocks, first, limits[0], limits[1])
    state[NODES] += 1
    if level == 0:
        state[at + 2] = deep(blocks, first, limits[0], limits[1])
        state[LEAVES] += 1


@inlined
def wide_seek(tree: Tree, limits: Rounded, state: Int64s) -> bool:
    """Go on to the next leaf with entries to be taken; say whether there is one.

    At most 2k blocks a level (RPS Theorem 3.2), plus those that only rounding seems to stab.
    """
    top = len(tree[1]) - 2
    if state[BEGUN] == 0:
        state[BEGUN], state[LEVEL] = 1, top
        wide_enter(tree, limits, top, 0, state)
    level = state[LEVEL]
    while level <= top:
        at = LEVELS + 3 * level
        mask = state[at + 1]
        if mask == 0:
            level += 1
            continue
        if level == 0:
            break
        state[at + 1] = without_lowest(mask)
        level -= 1
        wide_enter(tree, limits, level, state[at] * FAN + lowest_bit(mask), state)
    state[LEVEL] = level
    return level == 0


@inner
def wide_leaf(tree: Tree, q: float, state: Int64s, out: Int64s, found: int) -> int:
    """Take entries of the current leaf until it or `out` is used up; give how many are found."""
    exact, ids = tree[2], tree[3]
    first, mask, sure = state[LEVELS] * FAN, state[LEVELS + 1], state[LEVELS + 2]
    while mask != 0 and found < len(out):
        entry = lowest_bit(mask)
        mask = without_lowest(mask)
        place = first + entry
        state[INTERVALS] += 1
        if (sure >> entry) & 1 or exact[place, 0] <= q <= exact[place, 1]:
            out[found] = ids[place]
            found += 1
    state[LEVELS + 1] = mask
    return found


@inner
def wide_walk(tree: Tree, q: float, state: Int64s, out: Int64s) -> int:
    """Write the next stabbed ids, in order, from where `state` stands; give how many."""
    found, limits = 0, rounded(tree[4], q)
    while found < len(out) and wide_seek(tree, limits, state):
        found = wide_leaf(tree, q, state, out, found)
    return found


@kernel
def wide_walk_many(tree: Tree, qs: Float64s, out: Int64s, counts: Int64s) -> None:
    """Answer each query in its row of `out`, from the start."""
    state = np.zeros(STATE, np.int64)
    for row in range(len(qs)):
        state[BEGUN] = 0
        counts[row] = wide_walk(tree, qs[row], state, out[row])


@kernel
def grow_blocks(blocks: Float32s, starts: Int64s) -> None:
    """Fill the levels above the leaves: each entry bounds the block below it."""
    for level in range(1, len(starts) - 1):
        for below in range(starts[level] - starts[level - 1]):
            child = (starts[level - 1] + below) * WIDTH
            entry = (starts[level] + below // FAN) * WIDTH + below % FAN
            for each in range(FAN):
                blocks[entry] = min(blocks[entry], blocks[child + each])
                blocks[entry + FAN] = max(blocks[entry + FAN], blocks[child + FAN + each])
