"""Elementary cells: the line, cut wherever an interval begins or ends (RPS 2.1.2).

    intervals      [-----A-----]
                          [----B----]
    cells       0  |  1   |  2 |  3 | 4

All points of a cell stab the same intervals. A SOPT-R-tree packs its intervals in an order that
follows from their cells (RPS 3.2.1 and 3.2.2).
"""

from dataclasses import dataclass

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.index.intervals.kernels.bitset import empty_bitset
from tidings.index.intervals.kernels.cells import (
    ConstraintGraph,
    SortedEnds,
    arrange,
    constraint_edges,
    cut_cells,
    transpose_edges,
)
from tidings.index.intervals.protocol import RankedIntervals


@dataclass(frozen=True)
class ElementaryCells:
    """At most 2n + 1 half-open cells [start, next start).

    An interval ends at the next float after its high, so that a single point has its cell without
    a special case. Cell c begins at `starts[c - 1]`; cell 0 lies before all intervals. An interval
    with high = +inf never ends.
    """

    starts: Float64s
    first: Int32s
    last: Int32s
    """By rank: the first and the last cell of the interval."""

    by_low: Int32s
    by_high: Int32s
    """The ranks sorted by low, and by high."""

    @property
    def count(self) -> int:
        """The number of cells."""
        return len(self.starts) + 1


def cells_of(intervals: RankedIntervals) -> ElementaryCells:
    """Cut the line at the ends of the intervals; O(n log n)."""
    low, high, size = intervals.low, intervals.high, len(intervals)
    by_low, by_high = np.argsort(low).astype(np.int32), np.argsort(high).astype(np.int32)
    starts = np.empty(2 * size, np.float64)
    first, last = np.empty((2, size), np.int32)
    count = cut_cells(SortedEnds(low, high, by_low, by_high), starts, first, last)
    return ElementaryCells(starts[:count], first, last, by_low, by_high)


@dataclass(frozen=True)
class SoptOrder:
    """Ranks in an order that respects the constraint graph, and the number of its edges."""

    order: Int64s
    edges: int


def sopt_order(intervals: RankedIntervals) -> SoptOrder:
    """Order by Algorithm 1 over the graph of Algorithm 2, both with bitsets; O(n log n)."""
    order = np.empty(len(intervals), np.int64)
    cells = cells_of(intervals)
    graph = constraint_graph(cells)
    position = np.empty_like(cells.by_low)
    position[cells.by_low] = np.arange(len(position), dtype=np.int32)
    arrange(graph, cells.by_low, position, empty_bitset(len(order)), order)
    return SoptOrder(order, len(graph.targets))


def constraint_graph(cells: ElementaryCells) -> ConstraintGraph:
    """Return the constraint graph of the intervals, edges grouped by source."""
    size = len(cells.first)
    edges, ends = np.empty(3 * size, np.int32), np.zeros(size, np.int64)
    owner = np.full(cells.count, -1, np.int32)
    blocks = empty_bitset(cells.count)
    count = constraint_edges(cells.first, cells.last, blocks, owner, edges, ends)
    starts, targets = np.zeros(size + 2, np.int64), np.empty(count, np.int32)
    if count:
        transpose_edges(edges, ends, starts, targets)
    return ConstraintGraph(starts, targets, np.diff(ends, prepend=0).astype(np.int32))
