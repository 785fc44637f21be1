"""Sums without error, as `math.fsum` has them (Shewchuk)."""

from typing import Final

import numpy as np
import numpy.typing as npt

from tidings.kernels.policy import inner

Floats = npt.NDArray[np.float64]

PARTIALS: Final = 64
"""More partial sums than doubles of all sizes can leave."""


@inner
def sum_add(partials: Floats, size: int, value: float) -> int:
    """Add to a sum that is kept as partial sums without overlap; give how many there are now."""
    kept = 0
    for at in range(size):
        other = partials[at]
        if abs(value) < abs(other):
            value, other = other, value
        high = value + other
        low = other - (high - value)
        if low != 0.0:
            partials[kept] = low
            kept += 1
        value = high
    partials[kept] = value
    return kept + 1


@inner
def sum_of(partials: Floats, size: int) -> float:
    """Give the sum, rounded once; a tie goes where the partial sums below it point."""
    if size == 0:
        return 0.0
    at = size - 1
    high, low = partials[at], 0.0
    while at > 0:
        before = high
        at -= 1
        high = before + partials[at]
        low = partials[at] - (high - before)
        if low != 0.0:
            break
    if at > 0 and ((low < 0 and partials[at - 1] < 0) or (low > 0 and partials[at - 1] > 0)):
        doubled = 2.0 * low
        if doubled == (high + doubled) - high:
            return high + doubled
    return high
