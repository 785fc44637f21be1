"""Means as the plain form compares them: the sum is exact, the mean rounded to 12 decimals.

`math.fsum` to the last bit, so equal sets have equal means whatever the order of their members.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from tidings.kernels.policy import inner
from tidings.kernels.rounding import rounded

Floats = npt.NDArray[np.float64]

PARTIALS: Final = 64
"""More partial sums than doubles of all sizes can leave."""


@inner
def sum_add(partials: Floats, count: int, x: float) -> int:
    """Add to a sum kept in partials that do not overlap; give how many there are (Shewchuk)."""
    kept = 0
    for at in range(count):
        y = partials[at]
        if abs(x) < abs(y):
            x, y = y, x
        high = x + y
        low = y - (high - x)
        if low != 0.0:
            partials[kept] = low
            kept += 1
        x = high
    partials[kept] = x
    return kept + 1


@inner
def sum_total(partials: Floats, count: int) -> float:
    """Give the sum of the partials, rounded once, ties to even."""
    if count == 0:
        return 0.0
    at = count - 1
    high, low = partials[at], 0.0
    while at > 0:
        at -= 1
        x, y = high, partials[at]
        high = x + y
        low = y - (high - x)
        if low != 0.0:
            break
    if at > 0 and (
        (low < 0.0 and partials[at - 1] < 0.0) or (low > 0.0 and partials[at - 1] > 0.0)
    ):
        y = low * 2.0
        x = high + y
        if y == x - high:
            high = x
    return high


@inner
def mean_without(ranks: Floats, count: int, left_out: int, partials: Floats) -> float:
    """Give the rounded mean of all ranks but one (-1: of all)."""
    partial, members = 0, 0
    for at in range(count):
        if at != left_out:
            partial = sum_add(partials, partial, ranks[at])
            members += 1
    return rounded(sum_total(partials, partial) / members)
