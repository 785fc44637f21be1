"""The SOPT-R-tree (RPS 3.2): a scored R-tree whose order leaves few holes."""

import numpy as np

from tidings.index.intervals.papers.rtree_scored import R_WALK
from tidings.index.intervals.protocol import Ranked
from tidings.index.intervals.ranges import ByScore, by_place
from tidings.index.intervals.rtree import leaves, rtree_over
from tidings.index.intervals.sopt_order import arranged
from tidings.index.intervals.tree_index import Walked


def sopt_r(intervals: Ranked) -> Walked:
    """Build it in O(n log n) (RPS Theorem 3.3); a query enters at most 2k nodes a level (3.2)."""
    found = arranged(intervals)
    tree = rtree_over(intervals, found.order, intervals.ids[found.order])
    ranks = found.order.astype(np.int32)
    by_score = ByScore(lambda: by_place(ranks, *leaves(tree), tree[2]), (ranks,))
    return Walked("sopt-r", len(intervals), tree, R_WALK, by_score, {"edges": found.edges})
