"""Sums of floats that are rounded once, like `math.fsum` (Shewchuk 1997).

    parts   |low| < ... < |high|   partial sums without common bits; together they are exact

The order of additions cannot change a sum, so equal sums tie, whatever they are made of.
"""

from typing import Final

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.jit import inner, kernel
from tidings.compiled.rounding import rounded

PARTS: Final = 48
"""Room for partial sums: they have 53 bits each and do not overlap, so 2,100 exponents need 40."""


@inner
def sum_add(parts: Float64s, size: int, number: float) -> int:
    """Add a finite number to the partial sums; return their new count."""
    kept = 0
    for part in range(size):
        other = parts[part]
        # The error of a sum is exact only if the larger term comes first.
        if abs(number) < abs(other):
            number, other = other, number
        high = number + other
        # The rounding error of the sum, which is itself a float (two-sum).
        low = other - (high - number)
        if low != 0.0:
            parts[kept] = low
            kept += 1
        number = high
    parts[kept] = number
    return kept + 1


@inner
def sum_total(parts: Float64s, size: int) -> float:
    """Return the sum, rounded once, half to even."""
    if size == 0:
        return 0.0
    part = size - 1
    high, low = parts[part], 0.0
    while part > 0 and low == 0.0:
        part -= 1
        before = high
        high = before + parts[part]
        low = parts[part] - (high - before)
    # A tie between two floats is decided by the sign of the next smaller part.
    if part > 0 and (
        (low < 0.0 and parts[part - 1] < 0.0) or (low > 0.0 and parts[part - 1] > 0.0)
    ):
        twice = low * 2.0
        other = high + twice
        if twice == other - high:
            high = other
    return high


@inner
def mean_without(ranks: Float64s, count: int, left_out: int, parts: Float64s) -> float:
    """Return the mean of the first `count` ranks but one (-1: of all), rounded to 12 decimals."""
    size, members = 0, 0
    for rank in range(count):
        if rank != left_out:
            size = sum_add(parts, size, ranks[rank])
            members += 1
    return rounded(sum_total(parts, size) / members)


@kernel
def sum_by_group(groups: Int32s, numbers: Float64s, counts: Int64s) -> Float64s:
    """Return the sum of the numbers of each group, of which there are `counts`."""
    ends, ordered = np.cumsum(counts), np.empty(len(numbers))
    next_cells = ends - counts
    for i in range(len(numbers)):
        ordered[next_cells[groups[i]]] = numbers[i]
        next_cells[groups[i]] += 1
    sums, parts = np.zeros(len(counts)), np.empty(PARTS)
    for group in range(len(counts)):
        size = 0
        for i in range(ends[group] - counts[group], ends[group]):
            size = sum_add(parts, size, ordered[i])
        sums[group] = sum_total(parts, size)
    return sums
