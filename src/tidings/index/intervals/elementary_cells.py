"""Elementary cells: the line, cut wherever an interval begins or ends (RPS 2.1.2).

    intervals      [-----A-----]
                          [----B----]
    cells       0  |  1   |  2 |  3 | 4

All points of a cell stab the same intervals.
"""

from dataclasses import dataclass

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s
from tidings.index.intervals.kernels.cells import SortedEnds, cut_cells
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
