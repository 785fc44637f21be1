"""The K best intervals of every elementary cell, listed in advance: a query is a look-up."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import ClassVar, Final

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.compiled.arrays import total_bytes
from tidings.compiled.jit import TypedKernel
from tidings.index import arguments
from tidings.index.intervals.elementary_cells import cells_of
from tidings.index.intervals.kernels.bitset import empty_bitset
from tidings.index.intervals.kernels.btree_search import search_tree
from tidings.index.intervals.kernels.topk_table import (
    LISTS,
    RANKS,
    STATE,
    SWEEP,
    ListedColumns,
    SweepCells,
    SweepLists,
    TopkLists,
    sweep,
    table_columns,
    table_walk,
    table_walk_many,
)
from tidings.index.intervals.protocol import IntervalAnswers, RankedIntervals
from tidings.index.intervals.ranges import RangeAnswers
from tidings.index.intervals.rtree import RangeTree, scored_rtree
from tidings.index.intervals.sopt_r_simd import sopt_r_64
from tidings.index.intervals.tree_index import TreeIndex, WalkKernels

DEPTH: Final = 32
TABLE_WALK: Final = WalkKernels(TypedKernel(table_walk), TypedKernel(table_walk_many), STATE)


class TopkTable:
    """A list of the K best for each cell, stored only where it differs from the previous one.

    A query costs O(log n + k) for k <= `depth`. A larger k is answered by a SOPT-R-tree, built
    when first needed from the intervals, which are kept for that. There are at most 2n lists, and
    far fewer if long intervals score well.
    """

    name: ClassVar[str] = "topk-table"

    def __init__(self, intervals: RankedIntervals, depth: int = DEPTH) -> None:
        self.depth = depth = min(arguments.count("depth", depth, low=1), max(len(intervals), DEPTH))
        self._intervals = replace(intervals, score=np.empty(0))  # the ranks order them
        self._table = list_topk(self._intervals, depth)
        self._deep: TreeIndex | None = None

    @property
    def nbytes(self) -> int:
        """The bytes of the table, of the intervals, and of the tree once it is built."""
        interval_bytes = total_bytes(*vars(self._intervals).values())
        return self._table.nbytes + interval_bytes + (self._deep.nbytes if self._deep else 0)

    @property
    def ranges(self) -> RangeAnswers:
        """Answers to events that are ranges, from an R-tree instead of the lists."""
        return self._table.ranges

    def top(self, q: float, k: int) -> Int64s:
        """Return the k best; a list shorter than `depth` has all stabbed intervals."""
        count = arguments.count("k", k)
        listed = self._table.top(q, min(count, self.depth))
        return self.deep().top(q, count) if len(listed) == self.depth < count else listed

    def top_many(self, qs: Float64s, k: int) -> IntervalAnswers:
        """Look up each query, or ask the tree if k is above `depth`."""
        count = arguments.count("k", k)
        return (self._table if count <= self.depth else self.deep()).top_many(qs, count)

    @property
    def lists(self) -> TopkLists:
        """The lists of all cells."""
        return TopkLists(*self._table.tree)

    def top_columns(self, qs: Float64s, k: int, scores: Float64s) -> ListedColumns:
        """Return the k best of each query as columns, for k <= `depth`.

        `scores` has one for each id of `lists`, so that it is copied with the ids, not looked up.
        """
        size = len(qs) * k
        starts = np.empty(len(qs) + 1, np.int64)
        columns = ListedColumns(starts, np.empty(size, np.int32), np.empty(size))
        table_columns(self.lists, scores, np.ascontiguousarray(qs), k, columns)
        size = int(starts[-1])
        return ListedColumns(starts, columns.ids[:size], columns.scores[:size])

    def iterate(self, q: float) -> Iterator[int]:
        """Yield the list, then the ids that follow it in the tree."""
        listed = self._table.top(q, self.depth).tolist()
        yield from listed
        if len(listed) == self.depth:
            yield from islice(self.deep().iterate(q), self.depth, None)

    def counters(self) -> dict[str, int]:
        """Return counts of the visits of the last `top`, and the number of lists."""
        return self._table.counters()

    def deep(self) -> TreeIndex:
        """Return the tree that answers k above `depth`."""
        if self._deep is None:
            self._deep = sopt_r_64(self._intervals)
        return self._deep


def list_topk(intervals: RankedIntervals, depth: int) -> TreeIndex:
    """Sweep over the cells and write their lists, doubling the arrays whenever they are full."""
    cells = cells_of(intervals)
    columns = SweepCells(cells.starts, cells.first, cells.last, cells.by_low, cells.by_high)
    active, best = empty_bitset(len(intervals)), np.empty(depth, np.int64)
    state = np.zeros(SWEEP, np.int64)
    state[0] = 1
    lists = empty_lists(1024, 1024 * depth)
    while not sweep(columns, active, best, lists, state):
        lists = doubled(lists)
    count, ranks = int(state[LISTS]), int(state[RANKS])
    ids = intervals.ids[lists.ranks[:ranks]].astype(np.int32)
    starts = search_tree(lists.holds_from[:count])
    table = TopkLists(starts, lists.places[: count + 2].copy(), ids)
    range_tree = RangeTree(lambda: scored_rtree(intervals))
    return TreeIndex("topk-table", len(intervals), table, TABLE_WALK, range_tree, {"lists": count})


def empty_lists(lists: int, ranks: int) -> SweepLists:
    """Allocate room for lists; list 0, before all intervals, is empty."""
    return SweepLists(np.empty(lists), np.zeros(lists + 2, np.int64), np.empty(ranks, np.int32))


def doubled(lists: SweepLists) -> SweepLists:
    """Return the lists in arrays of twice the size."""
    wider = empty_lists(2 * len(lists.holds_from), 2 * len(lists.ranks))
    wider.holds_from[: len(lists.holds_from)] = lists.holds_from
    wider.places[: len(lists.places)] = lists.places
    wider.ranks[: len(lists.ranks)] = lists.ranks
    return wider
