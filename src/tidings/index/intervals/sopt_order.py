"""The order in which a SOPT-R-tree packs its intervals (RPS 3.2.1 and 3.2.2)."""

from dataclasses import dataclass

import numpy as np

from tidings.compiled.array_types import Int64s
from tidings.index.intervals.elementary_cells import ElementaryCells, cells_of
from tidings.index.intervals.kernels.bitset import empty_bitset
from tidings.index.intervals.kernels.cells import (
    ConstraintGraph,
    arrange,
    constraint_edges,
    transpose_edges,
)
from tidings.index.intervals.protocol import RankedIntervals


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
