"""Cutting the line into cells, wherever an interval begins or ends."""

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s
from tidings.compiled.jit import kernel


@kernel
def cut_cells(
    bounds: tuple[Float64s, Float64s],
    sorted_by: tuple[Int32s, Int32s],
    starts: Float64s,
    first: Int32s,
    last: Int32s,
) -> int:
    """Merge lows and highs, each in ascending order, to the cells' starts; give how many.

    Cell c begins at starts[c - 1]; an interval is over at the next number after its high. O(n).
    """
    low, high = bounds
    by_low, by_high = sorted_by
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
            over = np.nextafter(high[rank], np.inf)
            if starts[count - 1] == over:
                last[rank] = count - 1
            else:
                starts[count] = over
                count += 1
    return count
