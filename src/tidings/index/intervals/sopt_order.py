"""The order in which a SOPT-R-tree takes its intervals (RPS 3.2.1 and 3.2.2)."""

from dataclasses import dataclass

import numpy as np

from tidings.compiled.array_types import Int32s, Int64s
from tidings.index.intervals.elementary_cells import Cells, cells_of
from tidings.index.intervals.kernels.bitset import empty_bitset
from tidings.index.intervals.kernels.sopt_constraints import arrange, constraint_edges, turn_edges
from tidings.index.intervals.protocol import Ranked


@dataclass(frozen=True)
class Arrangement:
    """Ranks in an order that respects the constraint graph, and how many edges that has."""

    order: Int64s
    edges: int


def arranged(intervals: Ranked) -> Arrangement:
    """Arrange by Algorithm 1 over the graph of Algorithm 2, both with bitsets; O(n log n)."""
    order = np.empty(len(intervals), np.int64)
    cells = cells_of(intervals)
    starts, targets, coming = constraint_graph(cells)
    place = np.empty_like(cells.by_low)
    place[cells.by_low] = np.arange(len(place), dtype=np.int32)
    arrange((starts, targets, coming), (cells.by_low, place), empty_bitset(len(order)), order)
    return Arrangement(order, len(targets))


def constraint_graph(cells: Cells) -> tuple[Int64s, Int32s, Int32s]:
    """Give the edges by source, as starts and targets, and how many come in at each rank."""
    size = len(cells.first)
    edges, ends = np.empty(3 * size, np.int32), np.zeros(size, np.int64)
    owner = np.full(cells.count, -1, np.int32)
    blocks = empty_bitset(cells.count)
    count = constraint_edges((cells.first, cells.last), blocks, owner, edges, ends)
    starts, targets = np.zeros(size + 2, np.int64), np.empty(count, np.int32)
    if count:
        turn_edges(edges, ends, starts, targets)
    return starts, targets, np.diff(ends, prepend=0).astype(np.int32)
