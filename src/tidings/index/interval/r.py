"""The scored R-tree (RPS 2.2.3): intervals in the order of their scores, grouped by b = 50."""

from typing import Final

import numpy as np

from tidings.index.interval.protocol import Ranked
from tidings.index.interval.rtree import rtree_over
from tidings.index.interval.walked import Kernels, Walked
from tidings.kernels.rtree import STATE, rtree_walk, rtree_walk_many

R_WALK: Final = Kernels(rtree_walk, rtree_walk_many, STATE)


def r(intervals: Ranked) -> Walked:
    """Build it in O(n). Its first k hits are the best k (RPS Lemma 2.1); a query may cost O(n)."""
    order = np.arange(len(intervals))
    return Walked("r", len(intervals), rtree_over(intervals, order, intervals.ids), R_WALK)
