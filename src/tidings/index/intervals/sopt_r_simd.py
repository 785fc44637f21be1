"""Ours: the SOPT-R-tree with nodes of 64 entries that are compared at once."""

import math
from typing import Any, Final

import numpy as np

from tidings.compiled.aligned import aligned
from tidings.compiled.array_types import Float32s, Float64s, Int64s
from tidings.index.intervals.kernels.sopt_r_simd import (
    FAN,
    STATE,
    grow_blocks,
    wide_walk,
    wide_walk_many,
)
from tidings.index.intervals.protocol import Ranked
from tidings.index.intervals.ranges import ByScore, by_place
from tidings.index.intervals.sopt_order import arranged
from tidings.index.intervals.tree_index import Kernels, Walked

WIDE: Final = Kernels(wide_walk, wide_walk_many, STATE)


MIDDLE: Final = 1e290
"""A base within this makes no difference of float64 overflow."""

LEAST_EXPONENT: Final = -1000


def sopt_r_64(intervals: Ranked) -> Walked:
    """Build it in O(n log n); a query compares at most 2k blocks of 64 a level (RPS 3.2)."""
    found = arranged(intervals)
    low, high = intervals.low[found.order], intervals.high[found.order]
    starts, frame = block_starts(len(intervals)), frame_of(low, high)
    tree = (
        blocks_over(framed(frame, low), framed(frame, high), starts),
        starts,
        np.stack([low, high], axis=1),
        intervals.ids[found.order].astype(np.int32),
        frame,
    )
    ranks = found.order.astype(np.int32)
    by_score = ByScore(lambda: by_place(ranks, tree[2][:, 0], tree[2][:, 1], tree[3]), (ranks,))
    return Walked("sopt-r-64", len(intervals), tree, WIDE, by_score, {"edges": found.edges})


def frame_of(low: Float64s, high: Float64s) -> Float64s:
    """Give where float32 is to be fine and how far it must reach: base, reach and scale.

    The base is the median bound, so that also times or prices that lie close together, far from 0,
    are told apart; the scale is a power of two that brings all of them within 1.
    """
    bounds = np.concatenate([low[np.isfinite(low)], high[np.isfinite(high)]])
    if not len(bounds):
        return np.array([0.0, 2.0, 1.0])
    base = float(np.clip(np.partition(bounds, len(bounds) // 2)[len(bounds) // 2], -MIDDLE, MIDDLE))
    farthest = float(np.abs(bounds - base).max()) or 1.0
    exponent = max(math.frexp(farthest)[1], LEAST_EXPONENT)
    return np.array([base, 2 * farthest, math.ldexp(1.0, -exponent)])


def framed(frame: Float64s, numbers: Float64s) -> Float64s:
    """Give numbers as the blocks hold them, before rounding; equal or in the same order."""
    result: Float64s = (numbers - frame[0]) * frame[2]
    return result


def block_starts(size: int) -> Int64s:
    """Give the first block of each level, leaves first, until a level is one block."""
    starts, blocks = [0], size
    while len(starts) == 1 or blocks > 1:
        blocks = max(1, -(-blocks // FAN))
        starts.append(starts[-1] + blocks)
    return np.array(starts, np.int64)


def blocks_over(low: Float64s, high: Float64s, starts: Int64s) -> Any:
    """Lay the intervals out in blocks, rounded outwards; an unused entry contains nothing."""
    flat = aligned(int(starts[-1]) * 2 * FAN, np.float32)
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
    """Give for each number the greatest float32 that is not above it."""
    near = numbers.astype(np.float32)
    return np.where(near > numbers, np.nextafter(near, np.float32(-np.inf)), near)
