"""The scored segment tree (RPS 2.2.1): each interval at O(log n) nodes, all of it stabbed there."""

from typing import Final

import numpy as np

from tidings.index.intervals.elementary_cells import cells_of
from tidings.index.intervals.kernels.btree_search import search_tree
from tidings.index.intervals.kernels.segment_tree import (
    STATE,
    segment_count,
    segment_fill,
    segment_walk,
    segment_walk_many,
)
from tidings.index.intervals.protocol import Ranked
from tidings.index.intervals.ranges import ByScore, by_place
from tidings.index.intervals.tree_index import Kernels, Walked

SEGMENT: Final = Kernels(segment_walk, segment_walk_many, STATE)


def segment(intervals: Ranked) -> Walked:
    """Build it in O(n log n) time and space; a query costs O((log n + k) log log n)."""
    cells = cells_of(intervals)
    starts = np.zeros(2 * cells.count + 2, np.int64)
    segment_count(cells.first, cells.last, starts)
    ranks = np.empty(starts[-1], np.int32)
    segment_fill(cells.first, cells.last, starts, ranks)
    ids = intervals.ids.astype(np.int32)
    tree = (*search_tree(cells.starts), starts, ranks, ids)
    low, high = intervals.low, intervals.high
    by_score = ByScore(lambda: by_place(np.arange(len(ids)), low, high, ids), (low, high))
    return Walked("segment", len(intervals), tree, SEGMENT, by_score)
