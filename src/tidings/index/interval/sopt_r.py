"""The SOPT-R-tree (RPS 3.2): a scored R-tree whose order leaves few holes."""

from tidings.index.interval.arrangement import arranged
from tidings.index.interval.protocol import Ranked
from tidings.index.interval.r import R_WALK
from tidings.index.interval.rtree import rtree_over
from tidings.index.interval.walked import Walked


def sopt_r(intervals: Ranked) -> Walked:
    """Build it in O(n log n) (RPS Theorem 3.3); a query enters at most 2k nodes a level (3.2)."""
    found = arranged(intervals)
    tree = rtree_over(intervals, found.order, intervals.ids[found.order])
    return Walked("sopt-r", len(intervals), tree, R_WALK, {"edges": found.edges})
