"""The scored segment tree (RPS 2.2.1): each interval at O(log n) nodes, stabbed wherever met."""

from typing import Final

import numpy as np

from tidings.compiled.jit import TypedKernel
from tidings.index.intervals.elementary_cells import cells_of
from tidings.index.intervals.kernels.btree_search import search_tree
from tidings.index.intervals.papers.kernels.segment_tree import (
    STATE,
    SegmentTree,
    segment_count,
    segment_fill,
    segment_walk,
    segment_walk_many,
)
from tidings.index.intervals.protocol import RankedIntervals
from tidings.index.intervals.rtree import RangeTree, scored_rtree_from
from tidings.index.intervals.tree_index import TreeIndex, WalkKernels

SEGMENT_WALK: Final = WalkKernels(TypedKernel(segment_walk), TypedKernel(segment_walk_many), STATE)


def segment(intervals: RankedIntervals) -> TreeIndex:
    """Build the tree in O(n log n) time and space; a query costs O((log n + k) log log n)."""
    cells = cells_of(intervals)
    starts = np.zeros(2 * cells.count + 2, np.int64)
    segment_count(cells.first, cells.last, starts)
    ranks = np.empty(starts[-1], np.int32)
    segment_fill(cells.first, cells.last, starts, ranks)
    ids = intervals.ids.astype(np.int32)
    tree = SegmentTree(search_tree(cells.starts), starts, ranks, ids)
    low, high = intervals.low, intervals.high
    range_tree = RangeTree(
        lambda: scored_rtree_from(np.arange(len(ids)), low, high, ids), (low, high)
    )
    return TreeIndex("segment", len(intervals), tree, SEGMENT_WALK, range_tree)
