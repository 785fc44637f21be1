"""A stable sort for kernels.

`np.sort` and `np.argsort` inside a kernel take 2 to 3 s to compile for each type of keys.
"""

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.compiled.jit import inner, nested


@inner
def merge_runs(
    keys: Int64s | Float64s, order: Int64s, merged: Int64s, start: int, middle: int, stop: int
) -> None:
    """Merge two sorted runs of `order`; of equal keys those of the first run come first."""
    one, other = start, middle
    for cell in range(start, stop):
        if other == stop or (one < middle and not keys[order[other]] < keys[order[one]]):
            merged[cell] = order[one]
            one += 1
        else:
            merged[cell] = order[other]
            other += 1


@nested
def stable_order(keys: Int64s | Float64s) -> Int64s:
    """Return the positions of keys in ascending order; equal ones stay as they are."""
    size, width = len(keys), 1
    order, merged = np.empty(size, np.int64), np.empty(size, np.int64)
    for position in range(size):
        order[position] = position
    # Bottom-up: no recursion, and the two buffers swap roles instead of being copied.
    while width < size:
        for start in range(0, size, 2 * width):
            middle, stop = min(start + width, size), min(start + 2 * width, size)
            merge_runs(keys, order, merged, start, middle, stop)
        order, merged = merged, order
        width *= 2
    return order
