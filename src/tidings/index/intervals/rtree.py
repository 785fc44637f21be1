"""Scored R-trees over intervals: their arrays, and the answers to ranges that they give.

Every interval index answers ranges by a scored R-tree (RPS 2.2.3) beside it, built when the first
range arrives: in the order of scores, the first k hits are the best k for ranges as for points.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from tidings.compiled.array_types import AnyArray, Float64s, Int64s
from tidings.compiled.arrays import aligned, total_bytes
from tidings.compiled.jit import TypedKernel
from tidings.compiled.simd import LANES
from tidings.index.intervals.kernels.rtree import (
    BRANCHING,
    STATE,
    RTree,
    fill_rest,
    grow_extents,
    window_walk,
    window_walk_many,
)
from tidings.index.intervals.protocol import IntervalAnswers, RankedIntervals
from tidings.index.intervals.ranges import QueryBounds, RangeAnswers

FIRST_BATCH: Final = 64
WINDOW_WALK, WINDOW_WALK_MANY = TypedKernel(window_walk), TypedKernel(window_walk_many)


def rtree_over(intervals: RankedIntervals, order: Int64s, ids: AnyArray) -> RTree:
    """Pack the intervals, taken by rank in `order`, into nodes of b; O(n) (RPS 2.1.3)."""
    starts, size = level_starts(len(order)), len(order)
    half = int(starts[-1]) + LANES  # a node may be compared up to 64 entries past the end
    extents = aligned(2 * half, np.float64)
    extents[:] = np.nan
    extents[:size], extents[half : half + size] = intervals.low[order], intervals.high[order]
    grow_extents(extents, starts)
    return RTree(extents, starts, ids.astype(np.int32))


def level_starts(size: int) -> Int64s:
    """Return the first entry of each level, leaves first, until one node holds a level."""
    starts = [0, size]
    while size > BRANCHING:
        size = -(-size // BRANCHING)
        starts.append(starts[-1] + size)
    return np.array(starts, np.int64)


def leaf_bounds(tree: RTree) -> tuple[Float64s, Float64s]:
    """Return the lows and highs of the intervals in tree order."""
    half = len(tree.extents) // 2
    size = tree.starts[1]
    return tree.extents[:size], tree.extents[half : half + size]


def scored_rtree(intervals: RankedIntervals) -> RTree:
    """Build a scored R-tree (RPS 2.2.3) in O(n)."""
    return rtree_over(intervals, np.arange(len(intervals)), intervals.ids)


def scored_rtree_from(ranks: Any, low: Any, high: Any, ids: Any) -> RTree:
    """Build a scored R-tree from columns in another order, given the rank of each row."""
    order = np.argsort(ranks)
    columns = low[order], high[order], ids[order].astype(np.int64)
    return scored_rtree(RankedIntervals(*columns, np.empty(0)))


@dataclass
class RangeTree:
    """A scored R-tree, built on demand beside another index to answer ranges.

    The extent of a node covers its intervals, so a skipped node holds nothing within the window.
    A query may cost O(n).
    """

    make: Callable[[], RTree]
    kept: tuple[Any, ...] = ()
    """Arrays that are kept only to build the tree."""

    @cached_property
    def tree(self) -> RTree:
        """The R-tree."""
        return self.make()

    @property
    def is_built(self) -> bool:
        """Whether the tree exists."""
        return "tree" in self.__dict__

    @property
    def nbytes(self) -> int:
        """The bytes of the tree, once built, and of the arrays kept for it."""
        return total_bytes(self.kept, self.tree if self.is_built else ())

    @property
    def answers(self) -> RangeAnswers:
        """The answers to ranges."""
        return RangeAnswers(self.within, self.within_many)

    def within(self, window: QueryBounds) -> Iterator[int]:
        """Yield the ids within a window, in order."""
        tree, state = self.tree, np.zeros(STATE, np.int64)
        return in_batches(lambda out: WINDOW_WALK(tree, *window, state, out), len(tree.ids))

    def within_many(self, windows: Float64s, k: int) -> IntervalAnswers:
        """Return the ids of the k best of each window."""
        out, counts = np.empty((len(windows), k), np.int64), np.empty(len(windows), np.int64)
        WINDOW_WALK_MANY(self.tree, windows, out, counts)
        fill_rest(out, counts)
        return IntervalAnswers(out, counts)


def in_batches(fetch: Callable[[Int64s], int], size: int) -> Iterator[int]:
    """Yield ids one by one; `fetch` writes the next batch into an array and returns its length.

    Batches double up to the size of the index, since a compiled call costs more than an answer.
    """
    length = FIRST_BATCH
    while True:
        batch = np.empty(length, np.int64)
        count = fetch(batch)
        yield from batch[:count].tolist()
        if count < length:
            return
        length = max(FIRST_BATCH, min(2 * length, size))
