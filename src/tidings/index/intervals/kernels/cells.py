"""Cuts the line into elementary cells, wherever an interval begins or ends."""

from typing import NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s
from tidings.compiled.jit import kernel


class SortedEnds(NamedTuple):
    """Lows and highs by rank, and the ranks sorted by either."""

    low: Float64s
    high: Float64s
    by_low: Int32s
    by_high: Int32s


@kernel
def cut_cells(ends: SortedEnds, starts: Float64s, first: Int32s, last: Int32s) -> int:
    """Merge sorted lows and highs into the starts of the cells; return how many there are.

    Cell c begins at starts[c - 1]; first[rank] and last[rank] are the cells of an interval. O(n).
    """
    low, high, by_low, by_high = ends.low, ends.high, ends.by_low, ends.by_high
    count, begun = 0, 0
    for rank in by_high:
        while begun < len(low) and low[by_low[begun]] <= high[rank]:
            start = low[by_low[begun]]
            if count == 0 or starts[count - 1] != start:
                starts[count] = start
                count += 1
            first[by_low[begun]] = count
            begun += 1
        last[rank] = count
        if high[rank] < np.inf:
            # Cells are half-open: a closed interval ends at the next float after its high. If
            # another one ended there already, the newest cell is the one after this interval.
            end = np.nextafter(high[rank], np.inf)
            if starts[count - 1] == end:
                last[rank] = count - 1
            else:
                starts[count] = end
                count += 1
    return count
