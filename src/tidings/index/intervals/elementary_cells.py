"""The line cut into cells, wherever an interval begins or ends: one answer per cell."""

from dataclasses import dataclass

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s
from tidings.index.intervals.kernels.cells import cut_cells
from tidings.index.intervals.protocol import Ranked


@dataclass(frozen=True)
class Cells:
    """At most 2n + 1 elementary segments (RPS 2.1.2).

    An interval begins at its low and is over at the next number after its high, so that a cell is
    [start, next start): points have theirs without being listed, and cell c begins at
    `starts[c - 1]`. No interval reaches cell 0, and one with high = +inf is never over.
    """

    starts: Float64s
    first: Int32s
    last: Int32s
    """By rank: the first and the last cell of the interval."""

    by_low: Int32s
    by_high: Int32s
    """The ranks by where they begin, and by where they end."""

    @property
    def count(self) -> int:
        """How many cells there are."""
        return len(self.starts) + 1


def cells_of(intervals: Ranked) -> Cells:
    """Cut the line at the intervals' ends; O(n log n)."""
    low, high, size = intervals.low, intervals.high, len(intervals)
    by_low, by_high = (np.argsort(each).astype(np.int32) for each in (low, high))
    starts = np.empty(2 * size, np.float64)
    first, last = np.empty((2, size), np.int32)
    count = cut_cells((low, high), (by_low, by_high), starts, first, last)
    return Cells(starts[:count], first, last, by_low, by_high)
