"""The conventional R-tree (RPS 2.1.3): intervals grouped by where they begin, scores unknown."""

from typing import Final

import numpy as np

from tidings.index.intervals.kernels.rtree import STATE, rtree_best, rtree_best_many
from tidings.index.intervals.protocol import Ranked
from tidings.index.intervals.ranges import ByScore, by_place
from tidings.index.intervals.rtree import leaves, rtree_over
from tidings.index.intervals.tree_index import Kernels, Walked

BEST: Final = Kernels(rtree_best, rtree_best_many, STATE)


def r_plain(intervals: Ranked) -> Walked:
    """Build it in O(n log n). A query looks at all that q stabs and keeps the best k."""
    order = np.argsort(intervals.low, kind="stable")
    ranks, size = np.concatenate([order, intervals.ids]), len(intervals)
    tree = rtree_over(intervals, order, ranks)
    by_score = ByScore(lambda: by_place(tree[2][:size], *leaves(tree), tree[2][size:][order]))
    return Walked("r-plain", size, tree, BEST, by_score)
