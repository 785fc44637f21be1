"""The rule `different` for many subscribers; see `tidings.rules.different`."""

import math
from typing import NamedTuple

from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined
from tidings.compiled.rounding import rounded
from tidings.diversify.kernels.distances import row_distance, weighted_distance
from tidings.feed.columnar.rules.kernels.layout import (
    AT,
    DETAIL,
    EVENT,
    KEPT_ROW,
    KEPT_TURN,
    OTHER,
    RING,
    SIZE,
    TOO_NEAR,
    RuleArrays,
    RuleOutput,
)
from tidings.feed.columnar.rules.kernels.rings import expire_got, ring_capacity, ring_cell
from tidings.feed.columnar.rules.kernels.verdicts import judge


class Nearest(NamedTuple):
    """The place in a ring of the nearest event, -1 if there is none, and its distance."""

    place: int
    gap: float


@inlined
def begin_gaps(arrays: RuleArrays, mine: int) -> int:
    """Return the number of the gaps from a row of features, which makes those of others stale."""
    state = arrays.kept.state
    if state[KEPT_ROW] != mine:
        state[KEPT_ROW] = mine
        state[KEPT_TURN] += 1
    return int64(state[KEPT_TURN])


@inlined
def kept_gap(arrays: RuleArrays, turn: int, mine: int, other: int) -> float:
    """Return the distance between two rows of features, measured once in a turn."""
    kept, rows = arrays.kept, arrays.features.rows
    if kept.turn[other] != turn:
        kept.turn[other] = turn
        if len(rows.weights) == 0:
            kept.gap[other] = rounded(row_distance(rows, mine, other))
        else:
            kept.gap[other] = rounded(weighted_distance(rows, mine, other, arrays.partials))
    return kept.gap[other]


@inlined
def nearest_got(arrays: RuleArrays, ring: int, slot: int) -> Nearest:
    """Return the nearest received event; of equally near ones, the last."""
    row_of, slots, best, nearest = arrays.features.row, arrays.got.slot, math.inf, -1
    mine, size = row_of[slot], arrays.rings[ring, SIZE]
    if mine < 0 or size == 0:  # only its id is known
        return Nearest(-1, best)
    turn = begin_gaps(arrays, mine)
    cell = ring_cell(arrays, arrays.got.slabs, ring, 0)
    # Written out, since the place of the ring would be read again for each entry.
    behind = int64(arrays.rings[ring, RING]) + ring_capacity(arrays, arrays.got.slabs, ring)
    for nth in range(size):
        other = row_of[slots[cell]]
        if other >= 0:
            gap = kept_gap(arrays, turn, mine, other)
            if gap <= best:
                best, nearest = gap, nth
        cell += 1
        if cell == behind:
            cell = int64(arrays.rings[ring, RING])
    return Nearest(nearest, best)


@inlined
def is_compared(arrays: RuleArrays, line: int, slot: int) -> bool:
    """Return whether an event was published after the rule was added."""
    return arrays.events.us[slot] > arrays.end[line]


@inlined
def offer_different(
    arrays: RuleArrays, output: RuleOutput, row: int, place: int, cell: int
) -> bool:
    """Offer an event; return whether it is far enough from all received events."""
    codes, ring = arrays.codes, row * arrays.chain.ringed + place
    expire_got(arrays, ring, arrays.held.cell[cell, AT] - codes.within[place])
    # An older event is neither compared nor remembered, as if the rule did not exist.
    if not is_compared(arrays, row * len(codes.kind) + place, arrays.held.cell[cell, EVENT]):
        return True
    if codes.measured[place]:
        nearest = Nearest(arrays.gaps.nearest[place], arrays.gaps.gap[place])
    else:
        nearest = nearest_got(arrays, ring, arrays.held.cell[cell, EVENT])
    if nearest.place < 0 or nearest.gap >= codes.least[place]:
        return True
    other = ring_cell(arrays, arrays.got.slabs, ring, nearest.place)
    index = judge(arrays, output, place, cell, TOO_NEAR)
    output.verdicts[index, OTHER] = arrays.got.slot[other]
    output.verdicts[index, DETAIL] = arrays.got.us[other]
    output.figures[index] = nearest.gap
    return False
