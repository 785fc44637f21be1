"""The arrays of an R-tree over intervals in a given order (RPS 2.1.3)."""

from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.compiled.aligned import aligned
from tidings.compiled.array_types import Int64s
from tidings.compiled.simd import LANES
from tidings.index.intervals.kernels.rtree import BRANCHING, Tree, grow_extents
from tidings.index.intervals.protocol import Ranked


def rtree_over(intervals: Ranked, order: Int64s, ids: npt.NDArray[np.int64]) -> Tree:
    """Group the intervals, taken by rank in `order`, by b; O(n), n (1 + 2 / (b - 1)) entries."""
    starts, size = level_starts(len(order)), len(order)
    half = int(starts[-1]) + LANES
    extents = aligned(2 * half, np.float64)
    extents[:] = np.nan
    extents[:size], extents[half : half + size] = intervals.low[order], intervals.high[order]
    grow_extents(extents, starts)
    return extents, starts, ids.astype(np.int32)


def leaves(tree: Tree) -> tuple[Any, Any]:
    """Give lows and highs of the intervals in their order."""
    extents, starts, _ = tree
    half = len(extents) // 2
    return extents[: starts[1]], extents[half : half + starts[1]]


def level_starts(size: int) -> Int64s:
    """Give the first row of each level, leaves first, until one node holds a level."""
    starts = [0, size]
    while size > BRANCHING:
        size = -(-size // BRANCHING)
        starts.append(starts[-1] + size)
    return np.array(starts, np.int64)
