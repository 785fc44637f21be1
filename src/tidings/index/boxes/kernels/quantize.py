"""Numbers as codes of one byte: how many cuts of their attribute are not above them.

Order is kept, so an interval that contains a number contains its code: no match is left out, and
what the codes let through is looked at again in float64.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_types import Float64s, Int64s, UInt8s
from tidings.compiled.jit import inner, kernel

Bounds = tuple[Float64s, Float64s]
"""Lows and highs, a row each subscription."""
Asked = tuple[UInt8s, UInt8s, Float64s, Float64s, Float64s, Float64s, bool]
"""Events. A predicate [low, high] holds where low <= below and above <= high, which for a point are
both its number. The codes of `below` and `above`, flat, d + 1 an event of which the last is 0; the
numbers themselves; the share in [0, 1] by which each attribute counts; the greatest of each event;
and whether some event is a range."""
Alive = tuple[npt.NDArray[np.int32], int]
"""The version at which each place died, and the version that is seen; no stamps: all live."""
Cuts = tuple[Float64s, Int64s]
"""A row of ascending cuts for each attribute, and how many it has: at most 254."""

CUTS: Final = 254
NEVER: Final = 255
"""The code of a missing value, and of a low that nothing reaches."""


@inner
def code_of(cuts: Cuts, attribute: int, number: float) -> int:
    """Give how many cuts of the attribute are <= number."""
    numbers, counts = cuts
    low, high = 0, counts[attribute]
    while low < high:
        middle = (low + high) >> 1
        if numbers[attribute, middle] <= number:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def is_alive(alive: Alive, place: int) -> bool:
    """Say whether what stands at a place is there in the version that is seen."""
    return len(alive[0]) == 0 or alive[0][place] > alive[1]


@kernel
def code_rows(cuts: Cuts, rows: Float64s, out: UInt8s) -> None:
    """Code events, of which out may have more columns; NaN is a missing value."""
    for row in range(rows.shape[0]):
        for attribute in range(rows.shape[1]):
            number = rows[row, attribute]
            out[row, attribute] = NEVER if np.isnan(number) else code_of(cuts, attribute, number)


@inner
def is_free(bounds: Bounds, id: int, attribute: int) -> bool:
    """Say whether a subscription leaves an attribute unconstrained."""
    return bounds[0][id, attribute] == -np.inf and bounds[1][id, attribute] == np.inf
