"""The rule `different` for many subscribers; see `tidings.rules.different`."""

import math
from typing import NamedTuple

from tidings.compiled.jit import inlined
from tidings.compiled.rounding import rounded
from tidings.diversify.kernels.distances import merged_distance, weighted_distance
from tidings.feed.columnar.rules.kernels.layout import (
    AT,
    DETAIL,
    EVENT,
    OTHER,
    SIZE,
    TOO_NEAR,
    RuleArrays,
    RuleOutput,
)
from tidings.feed.columnar.rules.kernels.rings import expire_got, got_cell
from tidings.feed.columnar.rules.kernels.verdicts import judge


class Nearest(NamedTuple):
    """The place in a ring of the nearest event, -1 if there is none, and its distance."""

    place: int
    gap: float


@inlined
def nearest_got(arrays: RuleArrays, line: int, slot: int) -> Nearest:
    """Return the nearest of what was got; of equally near ones, the last."""
    rows, row_of, best, nearest = arrays.features.rows, arrays.features.row, math.inf, -1
    if row_of[slot] < 0:  # only its id is known
        return Nearest(-1, best)
    for nth in range(arrays.counts[line, SIZE]):
        other = row_of[arrays.got.slot[got_cell(arrays, line, nth)]]
        if other < 0:
            continue
        if len(rows.weights) == 0:
            gap = rounded(merged_distance(rows, row_of[slot], other))
        else:
            gap = rounded(weighted_distance(rows, row_of[slot], other, arrays.partials))
        if gap <= best:
            best, nearest = gap, nth
    return Nearest(nearest, best)


@inlined
def offer_different(
    arrays: RuleArrays, output: RuleOutput, row: int, place: int, cell: int
) -> bool:
    """Offer an event; return whether it is far enough from all that was got."""
    line, codes = row * len(arrays.codes.kind) + place, arrays.codes
    expire_got(arrays, line, arrays.held.cell[cell, AT] - codes.within[place])
    if codes.measured[place]:
        nearest = Nearest(arrays.gaps.nearest[place], arrays.gaps.gap[place])
    else:
        nearest = nearest_got(arrays, line, arrays.held.cell[cell, EVENT])
    if nearest.place < 0 or nearest.gap >= codes.least[place]:
        return True
    other = got_cell(arrays, line, nearest.place)
    index = judge(arrays, output, row, place, cell, TOO_NEAR)
    output.verdicts[index, OTHER] = arrays.got.slot[other]
    output.verdicts[index, DETAIL] = arrays.got.us[other]
    output.figures[index] = nearest.gap
    return False
