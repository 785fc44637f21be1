"""Ours: the K best of every cell of the line, listed in advance."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, ClassVar, Final

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.index import arguments
from tidings.index.intervals.elementary_cells import Cells, cells_of
from tidings.index.intervals.kernels.bitset import empty_bitset
from tidings.index.intervals.kernels.btree_search import search_tree
from tidings.index.intervals.kernels.topk_table import (
    STATE,
    SWEEP,
    sweep,
    table_walk,
    table_walk_many,
)
from tidings.index.intervals.protocol import Ranked
from tidings.index.intervals.ranges import ByScore, Ranges, scored
from tidings.index.intervals.sopt_r_simd import sopt_r_64
from tidings.index.intervals.tree_index import Kernels, Walked

DEPTH: Final = 32
TABLE: Final = Kernels(table_walk, table_walk_many, STATE)


class TopkTable:
    """A list of the K best for each cell, a new one only where they change; then it is a look-up.

    O(log n + k) for k <= `depth`. Who asks for more gets it from a SOPT-R-tree, built when first
    needed from the intervals, which are kept for that. At most 2n lists; far fewer, if long
    intervals score well.
    """

    name: ClassVar[str] = "topk-table"

    def __init__(self, intervals: Ranked, depth: int = DEPTH) -> None:
        self.depth = depth = min(arguments.count("depth", depth, low=1), max(len(intervals), DEPTH))
        self._intervals = replace(intervals, score=np.empty(0))  # the ranks say it all
        self._table = listed(self._intervals, depth)
        self._deep: Walked | None = None

    @property
    def nbytes(self) -> int:
        """The bytes of the table, of the intervals, and of the tree, once there is one."""
        kept: int = sum(each.nbytes for each in vars(self._intervals).values())
        return self._table.nbytes + kept + (self._deep.nbytes if self._deep else 0)

    @property
    def ranges(self) -> Ranges:
        """What it answers to events that are ranges: those of a tree, not of the lists."""
        return self._table.ranges

    def top(self, q: float, k: int) -> Int64s:
        """Give the k best; a list shorter than `depth` is all there is."""
        most = arguments.count("k", k)
        found = self._table.top(q, min(most, self.depth))
        return self.deep().top(q, most) if len(found) == self.depth < most else found

    def top_many(self, qs: Float64s, k: int) -> tuple[Int64s, Int64s]:
        """Look each query up, or ask the tree, if k is above `depth`."""
        most = arguments.count("k", k)
        return (self._table if most <= self.depth else self.deep()).top_many(qs, most)

    def iterate(self, q: float) -> Iterator[int]:
        """Give the list, then what follows it in the tree."""
        found = self._table.top(q, self.depth).tolist()
        yield from found
        if len(found) == self.depth:
            yield from islice(self.deep().iterate(q), self.depth, None)

    def counters(self) -> dict[str, int]:
        """Give what the last `top` looked at in the table, and how many lists there are."""
        return self._table.counters()

    def deep(self) -> Walked:
        """Give the tree that answers for k above `depth`."""
        if self._deep is None:
            self._deep = sopt_r_64(self._intervals)
        return self._deep


def listed(intervals: Ranked, depth: int) -> Walked:
    """Sweep over the cells and write their lists, with more room whenever it runs out."""
    cells = cells_of(intervals)
    size = len(intervals)
    active, best = empty_bitset(size), np.empty(depth, np.int64)
    state = np.zeros(SWEEP, np.int64)
    state[0] = 1
    lists = room(1024, 1024 * depth)
    while not sweep(cut(cells), active, best, lists, state):
        lists = grown(lists)
    count, ranks = int(state[4]), int(state[5])
    keys = search_tree(lists[0][:count])
    ids = intervals.ids[lists[2][:ranks]].astype(np.int32)
    table = (*keys, lists[1][: count + 2].copy(), ids)
    by_score = ByScore(lambda: scored(intervals))
    return Walked("topk-table", size, table, TABLE, by_score, {"lists": count})


def cut(cells: Cells) -> tuple[Any, ...]:
    """Give the cells as the sweep takes them."""
    return cells.starts, cells.first, cells.last, cells.by_low, cells.by_high


def room(lists: int, ranks: int) -> tuple[Float64s, Int64s, Any]:
    """Make room for lists; the first, before everything, is empty."""
    return np.empty(lists), np.zeros(lists + 2, np.int64), np.empty(ranks, np.int32)


def grown(lists: tuple[Float64s, Int64s, Any]) -> tuple[Float64s, Int64s, Any]:
    """Give twice the room, with what was written."""
    wider = room(2 * len(lists[0]), 2 * len(lists[2]))
    for new, old in zip(wider, lists, strict=True):
        new[: len(old)] = old
    return wider
