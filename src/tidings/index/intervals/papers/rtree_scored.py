"""The scored R-tree (RPS 2.2.3): intervals in the order of their scores, grouped by b = 50."""

from typing import Final

from tidings.index.intervals.kernels.rtree import STATE, rtree_walk, rtree_walk_many
from tidings.index.intervals.protocol import Ranked
from tidings.index.intervals.ranges import ByScore, scored
from tidings.index.intervals.tree_index import Kernels, Walked

R_WALK: Final = Kernels(rtree_walk, rtree_walk_many, STATE)


def r(intervals: Ranked) -> Walked:
    """Build it in O(n). Its first k hits are the best k (RPS Lemma 2.1); a query may cost O(n)."""
    itself = ByScore(lambda: scored(intervals))
    return Walked("r", len(intervals), itself.tree, R_WALK, itself)
