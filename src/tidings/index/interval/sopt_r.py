"""The SOPT-R-tree (RPS 3.2): a scored R-tree whose order leaves few holes."""

import numpy as np

from tidings.index.interval.arrangement import arranged
from tidings.index.interval.protocol import Ranked
from tidings.index.interval.r import R_WALK
from tidings.index.interval.ranges import ByScore, by_place
from tidings.index.interval.rtree import leaves, rtree_over
from tidings.index.interval.walked import Walked


def sopt_r(intervals: Ranked) -> Walked:
    """Build it in O(n log n) (RPS Theorem 3.3); a query enters at most 2k nodes a level (3.2)."""
    found = arranged(intervals)
    tree = rtree_over(intervals, found.order, intervals.ids[found.order])
    ranks = found.order.astype(np.int32)
    by_score = ByScore(lambda: by_place(ranks, *leaves(tree), tree[2]), (ranks,))
    return Walked("sopt-r", len(intervals), tree, R_WALK, by_score, {"edges": found.edges})
