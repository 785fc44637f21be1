"""The conventional R-tree (RPS 2.1.3): intervals grouped by where they begin, scores unknown."""

from typing import Final

import numpy as np

from tidings.index.interval.protocol import Ranked
from tidings.index.interval.rtree import rtree_over
from tidings.index.interval.walked import Kernels, Walked
from tidings.kernels.rtree import STATE, rtree_best, rtree_best_many

BEST: Final = Kernels(rtree_best, rtree_best_many, STATE)


def r_plain(intervals: Ranked) -> Walked:
    """Build it in O(n log n). A query looks at all that q stabs and keeps the best k."""
    order = np.argsort(intervals.low, kind="stable")
    ranks = np.concatenate([order, intervals.ids])
    return Walked("r-plain", len(intervals), rtree_over(intervals, order, ranks), BEST)
