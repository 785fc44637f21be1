"""Interval trees (RPS 2.1.1 and 2.2.2): the conventional one by endpoints, and the scored one."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.arrays import offsets
from tidings.compiled.jit import TypedKernel
from tidings.index.intervals.kernels.btree_search import search_tree
from tidings.index.intervals.kernels.rtree import RTree
from tidings.index.intervals.papers.kernels.interval_trees import (
    STATE,
    EndpointTree,
    ScoredTree,
    Skeleton,
    endpoint_walk,
    endpoint_walk_many,
    scored_walk,
    scored_walk_many,
)
from tidings.index.intervals.protocol import RankedIntervals
from tidings.index.intervals.rtree import RangeTree, scored_rtree, scored_rtree_from
from tidings.index.intervals.tree_index import TreeIndex, WalkKernels

SCORED_WALK: Final = WalkKernels(TypedKernel(scored_walk), TypedKernel(scored_walk_many), STATE)
ENDPOINT_WALK: Final = WalkKernels(
    TypedKernel(endpoint_walk), TypedKernel(endpoint_walk_many), STATE
)


def scored_interval_tree(intervals: RankedIntervals) -> TreeIndex:
    """Build the scored tree in O(n log n): each node's intervals in the order of their scores.

    A query skips all better intervals of a node that it does not stab.
    """
    hung = hang(intervals)
    order = np.argsort(hung.node, kind="stable")
    bounds = np.stack([intervals.low[order], intervals.high[order]], axis=1)
    ranks, ids = order.astype(np.int32), intervals.ids.astype(np.int32)
    extents = node_extents(bounds, hung.skeleton.starts[:-1])
    tree = ScoredTree(hung.skeleton, bounds, ranks, extents, ids)
    range_tree = RangeTree(lambda: scored_rtree_from(ranks, bounds[:, 0], bounds[:, 1], ids[ranks]))
    return TreeIndex("interval", len(intervals), tree, SCORED_WALK, range_tree)


def endpoint_tree(intervals: RankedIntervals) -> TreeIndex:
    """Build the conventional tree in O(n log n): each node's intervals by low and by high.

    A query visits all intervals that it stabs and keeps the best k.
    """
    hung = hang(intervals)
    by_low, by_high = (
        np.lexsort((bounds, hung.node)).astype(np.int32)
        for bounds in (intervals.low, -intervals.high)
    )
    lows, highs = -intervals.low[by_low], intervals.high[by_high]
    ids = intervals.ids.astype(np.int32)
    tree = EndpointTree(hung.skeleton, lows, by_low, highs, by_high, ids)
    range_tree = RangeTree(lambda: range_tree_from_endpoints(tree))
    return TreeIndex("interval-endpoint", len(intervals), tree, ENDPOINT_WALK, range_tree)


@dataclass(frozen=True)
class HungIntervals:
    """The tree, and by rank the node at which each interval hangs."""

    skeleton: Skeleton
    node: Int64s


def hang(intervals: RankedIntervals) -> HungIntervals:
    """Assign numbers from 1 to the distinct lows and find each interval's node; O(n log n).

    An interval that contains the lows a..b hangs at the highest of these numbers in the tree: b
    without the bits below the highest bit in which it differs from a - 1.
    """
    lows = np.unique(intervals.low)
    a = np.searchsorted(lows, intervals.low, side="right")
    b = np.searchsorted(lows, intervals.high, side="right")
    height = np.frexp(((a - 1) ^ b).astype(np.float64))[1].astype(np.int64) - 1
    numbers, node, sizes = np.unique(
        (b >> height) << height, return_inverse=True, return_counts=True
    )
    node_of = np.full(len(lows) + 1, -1, np.int32)
    node_of[numbers] = np.arange(len(numbers))
    starts = offsets(sizes).astype(np.int32)
    return HungIntervals(Skeleton(search_tree(lows), node_of, starts), node)


def node_extents(bounds: Float64s, starts: Int32s) -> Float64s:
    """Return the lowest low and the highest high of each node."""
    lows = np.minimum.reduceat(bounds[:, 0], starts) if len(starts) else bounds[:, 0]
    highs = np.maximum.reduceat(bounds[:, 1], starts) if len(starts) else bounds[:, 1]
    return np.stack([lows, highs], axis=1)


def range_tree_from_endpoints(tree: EndpointTree) -> RTree:
    """Build an R-tree from the lists of negated lows and of highs, each with ranks."""
    low = -tree.lows[np.argsort(tree.low_ranks)]
    high = tree.highs[np.argsort(tree.high_ranks)]
    return scored_rtree(RankedIntervals(low, high, tree.ids.astype(np.int64), np.empty(0)))
