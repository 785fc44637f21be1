"""The binary tree that both interval trees hang their intervals on (RPS 2.1.1)."""

from dataclasses import dataclass

import numpy as np

from tidings.compiled.array_types import Int64s
from tidings.index.intervals.kernels.btree_search import search_tree
from tidings.index.intervals.kernels.interval_tree import Skeleton
from tidings.index.intervals.protocol import Ranked


@dataclass(frozen=True)
class Hung:
    """Intervals, each at the highest low that it contains: the number of its node by rank."""

    skeleton: Skeleton
    node: Int64s


def hang(intervals: Ranked) -> Hung:
    """Number the distinct lows from 1 and find each interval's node; O(n log n).

    Of the numbers a..b the highest in the tree is b without the bits below the highest one in
    which it differs from a - 1.
    """
    lows = np.unique(intervals.low)
    a = np.searchsorted(lows, intervals.low, side="right")
    b = np.searchsorted(lows, intervals.high, side="right")
    height = np.frexp(((a - 1) ^ b).astype(np.float64))[1].astype(np.int64) - 1
    numbers, node, sizes = np.unique(
        (b >> height) << height, return_inverse=True, return_counts=True
    )
    node_of = np.full(len(lows) + 1, -1, np.int32)
    node_of[numbers] = np.arange(len(numbers))
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    return Hung((*search_tree(lows), node_of, starts), node)
