"""The papers' R-trees: the conventional one, the scored one, and the SOPT-R-tree with b = 50."""

from typing import Final

import numpy as np

from tidings.compiled.jit import TypedKernel
from tidings.index.intervals.elementary_cells import sopt_order
from tidings.index.intervals.kernels.rtree import STATE, rtree_walk, rtree_walk_many
from tidings.index.intervals.papers.kernels.rtree_plain import plain_walk, plain_walk_many
from tidings.index.intervals.protocol import RankedIntervals
from tidings.index.intervals.rtree import (
    RangeTree,
    leaf_bounds,
    rtree_over,
    scored_rtree,
    scored_rtree_from,
)
from tidings.index.intervals.tree_index import TreeIndex, WalkKernels

RTREE_WALK: Final = WalkKernels(TypedKernel(rtree_walk), TypedKernel(rtree_walk_many), STATE)
PLAIN_WALK: Final = WalkKernels(TypedKernel(plain_walk), TypedKernel(plain_walk_many), STATE)


def r_plain(intervals: RankedIntervals) -> TreeIndex:
    """Build the conventional R-tree (RPS 2.1.3) in O(n log n), by low and without scores.

    A query visits all intervals that it stabs and keeps the best k.
    """
    order = np.argsort(intervals.low, kind="stable")
    size = len(intervals)
    tree = rtree_over(intervals, order, np.concatenate([order, intervals.ids]))
    range_tree = RangeTree(
        lambda: scored_rtree_from(tree.ids[:size], *leaf_bounds(tree), tree.ids[size:][order])
    )
    return TreeIndex("r-plain", size, tree, PLAIN_WALK, range_tree)


def r(intervals: RankedIntervals) -> TreeIndex:
    """Build the scored R-tree (RPS 2.2.3) in O(n), in the order of scores.

    Its first k hits are the best k (RPS Lemma 2.1); a query may cost O(n).
    """
    itself = RangeTree(lambda: scored_rtree(intervals))
    return TreeIndex("r", len(intervals), itself.tree, RTREE_WALK, itself)


def sopt_r(intervals: RankedIntervals) -> TreeIndex:
    """Build the SOPT-R-tree (RPS 3.2) in O(n log n) (Theorem 3.3): its order leaves few holes.

    A query enters at most 2k nodes a level (Theorem 3.2).
    """
    packed = sopt_order(intervals)
    tree = rtree_over(intervals, packed.order, intervals.ids[packed.order])
    ranks = packed.order.astype(np.int32)
    range_tree = RangeTree(lambda: scored_rtree_from(ranks, *leaf_bounds(tree), tree.ids), (ranks,))
    notes = {"edges": packed.edges}
    return TreeIndex("sopt-r", len(intervals), tree, RTREE_WALK, range_tree, notes)
