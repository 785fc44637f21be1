"""Sums without any error but the last rounding, as `math.fsum` gives them (Shewchuk).

The order of additions cannot decide: values that tie do so whatever they are made of.
"""

from typing import Final

from tidings.compiled.array_types import Float64s
from tidings.compiled.jit import inner

PARTS: Final = 48
"""Partial sums do not overlap and have 53 bits each, so that of 2,100 exponents 40 are enough."""


@inner
def sum_add(parts: Float64s, size: int, number: float) -> int:
    """Add a finite number to the partial sums; give how many they are now."""
    kept = 0
    for each in range(size):
        other = parts[each]
        if abs(number) < abs(other):
            number, other = other, number
        high = number + other
        low = other - (high - number)
        if low != 0.0:
            parts[kept] = low
            kept += 1
        number = high
    parts[kept] = number
    return kept + 1


@inner
def sum_total(parts: Float64s, size: int) -> float:
    """Give the sum, rounded once; halves to even, looking at what lies below."""
    if size == 0:
        return 0.0
    at = size - 1
    high, low = parts[at], 0.0
    while at > 0 and low == 0.0:
        at -= 1
        before = high
        high = before + parts[at]
        low = parts[at] - (high - before)
    if at > 0 and ((low < 0.0 and parts[at - 1] < 0.0) or (low > 0.0 and parts[at - 1] > 0.0)):
        twice = low * 2.0
        other = high + twice
        if twice == other - high:
            high = other
    return high
