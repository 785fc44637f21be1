"""The scored interval tree (RPS 2.2.2): the intervals of each node in the order of their scores."""

from typing import Final

import numpy as np

from tidings.compiled.array_types import Float64s
from tidings.index.intervals.kernels.interval_tree import STATE, scored_walk, scored_walk_many
from tidings.index.intervals.papers.interval_skeleton import hang
from tidings.index.intervals.protocol import Ranked
from tidings.index.intervals.ranges import ByScore, by_place
from tidings.index.intervals.tree_index import Kernels, Walked

SCORED: Final = Kernels(scored_walk, scored_walk_many, STATE)


def interval(intervals: Ranked) -> Walked:
    """Build it in O(n log n); a query passes over all better intervals that it does not stab."""
    hung = hang(intervals)
    order = np.argsort(hung.node, kind="stable")
    bounds = np.stack([intervals.low[order], intervals.high[order]], axis=1)
    ranks, ids = order.astype(np.int32), intervals.ids.astype(np.int32)
    tree = (*hung.skeleton, bounds, ranks, extents(bounds, hung.skeleton[3][:-1]), ids)
    by_score = ByScore(lambda: by_place(ranks, bounds[:, 0], bounds[:, 1], ids[ranks]))
    return Walked("interval", len(intervals), tree, SCORED, by_score)


def extents(bounds: Float64s, starts: np.ndarray) -> Float64s:
    """Give the lowest low and the highest high of each node."""
    lows = np.minimum.reduceat(bounds[:, 0], starts) if len(starts) else bounds[:, 0]
    highs = np.maximum.reduceat(bounds[:, 1], starts) if len(starts) else bounds[:, 1]
    return np.stack([lows, highs], axis=1)
