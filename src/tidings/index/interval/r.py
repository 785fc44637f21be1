"""The scored R-tree (RPS 2.2.3): intervals in the order of their scores, grouped by b = 50."""

from typing import Final

from tidings.index.interval.protocol import Ranked
from tidings.index.interval.ranges import ByScore, scored
from tidings.index.interval.walked import Kernels, Walked
from tidings.kernels.rtree import STATE, rtree_walk, rtree_walk_many

R_WALK: Final = Kernels(rtree_walk, rtree_walk_many, STATE)


def r(intervals: Ranked) -> Walked:
    """Build it in O(n). Its first k hits are the best k (RPS Lemma 2.1); a query may cost O(n)."""
    itself = ByScore(lambda: scored(intervals))
    return Walked("r", len(intervals), itself.tree, R_WALK, itself)
