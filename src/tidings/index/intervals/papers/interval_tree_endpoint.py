"""The conventional interval tree (RPS 2.2.2): each node's intervals by low and again by high."""

from typing import Any, Final

import numpy as np

from tidings.index.intervals.kernels.interval_tree import STATE, ended_walk, ended_walk_many
from tidings.index.intervals.kernels.rtree import Tree
from tidings.index.intervals.papers.interval_skeleton import hang
from tidings.index.intervals.protocol import Ranked
from tidings.index.intervals.ranges import ByScore, scored
from tidings.index.intervals.tree_index import Kernels, Walked

ENDED: Final = Kernels(ended_walk, ended_walk_many, STATE)


def interval_endpoint(intervals: Ranked) -> Walked:
    """Build it in O(n log n); a query looks at all that it stabs and keeps the best k."""
    hung = hang(intervals)
    lists = []
    for bounds in (-intervals.low, intervals.high):
        order = np.lexsort((-bounds, hung.node))
        lists += [bounds[order], order.astype(np.int32)]
    tree = (*hung.skeleton, *lists, intervals.ids.astype(np.int32))
    by_score = ByScore(lambda: by_lists(lists, tree[-1]))
    return Walked("interval-endpoint", len(intervals), tree, ENDED, by_score)


def by_lists(lists: list[Any], ids: Any) -> Tree:
    """Make an R-tree of negated lows and highs, each with their ranks."""
    lows, low_ranks, highs, high_ranks = lists
    low, high = -lows[np.argsort(low_ranks)], highs[np.argsort(high_ranks)]
    return scored(Ranked(low, high, ids, np.empty(0)))
