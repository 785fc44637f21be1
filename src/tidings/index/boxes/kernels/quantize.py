"""Numbers as one-byte codes: the code of a number is how many cuts of its attribute are <= it.

    cuts of an attribute        c0      c1      c2           at most 254, ascending
    code                    0   |   1   |   2   |   3        255: missing

Codes keep order: an interval that contains a number contains its code, so comparing codes loses no
match. The few boxes that codes let through are compared again in float64.
"""

from typing import Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s, Int64s, UInt8s
from tidings.compiled.jit import inner, kernel

MAX_CUTS: Final = 254
NEVER: Final = 255
"""The code of a missing value, and of a low that no value reaches."""


class BoxBounds(NamedTuple):
    """Lows and highs, one row per box."""

    low: Float64s
    high: Float64s


class CodeCuts(NamedTuple):
    """A row of ascending cuts per attribute, and the number of cuts in each row."""

    numbers: Float64s
    counts: Int64s


class CodedEvents(NamedTuple):
    """Events for the kernels: a predicate [low, high] holds if low <= below and above <= high.

    For a point, `below` and `above` are equal.
    """

    below_codes: UInt8s
    above_codes: UInt8s
    """Flat, d + 1 codes per event, of which the last is 0."""
    below: Float64s
    above: Float64s
    shares: Float64s
    """The share in [0, 1] by which each attribute counts."""
    peaks: Float64s
    """The greatest share of each event."""
    ranged: bool
    """Whether some event is a range."""


class Liveness(NamedTuple):
    """The version of each place's death, and the version that is read; empty: all are alive."""

    died: Int32s
    version: int


@inner
def is_alive(liveness: Liveness, place: int) -> bool:
    """Return whether the box at a place is alive in the version that is read."""
    return len(liveness.died) == 0 or liveness.died[place] > liveness.version


@inner
def is_free(bounds: BoxBounds, id: int, attribute: int) -> bool:
    """Return whether a box leaves an attribute unconstrained."""
    return bounds.low[id, attribute] == -np.inf and bounds.high[id, attribute] == np.inf


@inner
def code_of(cuts: CodeCuts, attribute: int, number: float) -> int:
    """Return how many cuts of the attribute are <= number."""
    low, high = 0, cuts.counts[attribute]
    while low < high:
        middle = (low + high) >> 1
        if cuts.numbers[attribute, middle] <= number:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def code_rows(cuts: CodeCuts, rows: Float64s, out: UInt8s) -> None:
    """Write the codes of events; NaN is a missing value. `out` may have more columns."""
    for row in range(rows.shape[0]):
        for attribute in range(rows.shape[1]):
            number = rows[row, attribute]
            out[row, attribute] = NEVER if np.isnan(number) else code_of(cuts, attribute, number)


@kernel
def code_bounds(bounds: BoxBounds, ids: Int32s, cuts: CodeCuts, out: UInt8s) -> None:
    """Write a row of low and high codes per rank; an unconstrained attribute contains all codes."""
    for rank in range(len(ids)):
        for attribute in range(bounds.low.shape[1]):
            low, high = 2 * attribute, 2 * attribute + 1
            if is_free(bounds, ids[rank], attribute):
                # Up to NEVER, which is the code of a missing value: a free attribute contains that
                # too.
                out[rank, low], out[rank, high] = 0, NEVER
            else:
                out[rank, low] = code_of(cuts, attribute, bounds.low[ids[rank], attribute])
                out[rank, high] = code_of(cuts, attribute, bounds.high[ids[rank], attribute])
