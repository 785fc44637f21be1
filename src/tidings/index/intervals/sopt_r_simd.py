"""The SOPT-R-tree with nodes of 64 entries, each compared at once in float32."""

import math
from typing import Final

import numpy as np

from tidings.compiled.array_types import Float32s, Float64s, Int64s
from tidings.compiled.arrays import aligned
from tidings.compiled.jit import TypedKernel
from tidings.index.intervals.elementary_cells import sopt_order
from tidings.index.intervals.kernels.sopt_r_simd import (
    FAN,
    STATE,
    BlockTree,
    TreeFrame,
    block_walk,
    block_walk_many,
    grow_blocks,
)
from tidings.index.intervals.protocol import RankedIntervals
from tidings.index.intervals.rtree import RangeTree, scored_rtree_from
from tidings.index.intervals.tree_index import TreeIndex, WalkKernels

BLOCK_WALK: Final = WalkKernels(TypedKernel(block_walk), TypedKernel(block_walk_many), STATE)

LARGEST_BASE: Final = 1e290
"""With a base up to this, no difference of two float64 overflows."""
LEAST_EXPONENT: Final = -1000


def sopt_r_64(intervals: RankedIntervals) -> TreeIndex:
    """Build the index in O(n log n); a query compares at most 2k blocks a level (RPS 3.2)."""
    packed = sopt_order(intervals)
    low, high = intervals.low[packed.order], intervals.high[packed.order]
    starts, frame = block_starts(len(intervals)), frame_of(low, high)
    tree = BlockTree(
        blocks_over(framed(frame, low), framed(frame, high), starts),
        starts,
        np.stack([low, high], axis=1),
        intervals.ids[packed.order].astype(np.int32),
        frame,
    )
    ranks = packed.order.astype(np.int32)
    range_tree = RangeTree(
        lambda: scored_rtree_from(ranks, tree.bounds[:, 0], tree.bounds[:, 1], tree.ids), (ranks,)
    )
    notes = {"edges": packed.edges}
    return TreeIndex("sopt-r-64", len(intervals), tree, BLOCK_WALK, range_tree, notes)


def frame_of(low: Float64s, high: Float64s) -> TreeFrame:
    """Return the frame in which float32 distinguishes the bounds best.

    The base is the median bound, so that times or prices that lie close together, far from 0, stay
    distinct; the scale is a power of two that brings all bounds within 1.
    """
    bounds = np.concatenate([low[np.isfinite(low)], high[np.isfinite(high)]])
    if not len(bounds):
        return TreeFrame(0.0, 2.0, 1.0)
    median = float(np.partition(bounds, len(bounds) // 2)[len(bounds) // 2])
    base = min(max(median, -LARGEST_BASE), LARGEST_BASE)
    farthest = float(np.abs(bounds - base).max()) or 1.0
    exponent = max(math.frexp(farthest)[1], LEAST_EXPONENT)
    return TreeFrame(base, 2 * farthest, math.ldexp(1.0, -exponent))


def framed(frame: TreeFrame, numbers: Float64s) -> Float64s:
    """Return numbers in the frame, before rounding; order is kept, though some become equal."""
    result: Float64s = (numbers - frame.base) * frame.scale
    return result


def block_starts(size: int) -> Int64s:
    """Return the first block of each level, leaves first, until a level is one block."""
    starts, blocks = [0], size
    while len(starts) == 1 or blocks > 1:
        blocks = max(1, -(-blocks // FAN))
        starts.append(starts[-1] + blocks)
    return np.array(starts, np.int64)


def blocks_over(low: Float64s, high: Float64s, starts: Int64s) -> Float32s:
    """Write the intervals into blocks, rounded outwards; an unused entry contains nothing."""
    flat: Float32s = aligned(int(starts[-1]) * 2 * FAN, np.float32)
    blocks = flat.reshape(-1, 2, FAN)
    blocks[:, 0], blocks[:, 1] = np.inf, -np.inf
    leaves = starts[1] * FAN
    for side, bounds in enumerate((rounded_down(low), -rounded_down(-high))):
        padded = np.full(leaves, np.inf if side == 0 else -np.inf, np.float32)
        padded[: len(bounds)] = bounds
        blocks[: starts[1], side] = padded.reshape(-1, FAN)
    grow_blocks(flat, starts)
    return flat


def rounded_down(numbers: Float64s) -> Float32s:
    """Return for each number the greatest float32 that is not above it."""
    near = numbers.astype(np.float32)
    return np.where(near > numbers, np.nextafter(near, np.float32(-np.inf)), near)
