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
    FRONT,
    KEPT_SLOT,
    KEPT_TURN,
    OTHER,
    RING,
    SIZE,
    TOO_NEAR,
    RuleArrays,
    RuleOutput,
    judge,
)
from tidings.feed.columnar.rules.kernels.rings import (
    expire_got,
    got_slot,
    got_us,
    ring_capacity,
    ring_cell,
)


class Nearest(NamedTuple):
    """The place in a ring of the nearest event, -1 if there is none, and its distance."""

    place: int
    gap: float


@inlined
def begin_gaps(arrays: RuleArrays, slot: int) -> int:
    """Return the number of the gaps from an event, which makes those of others stale."""
    state = arrays.kept.state
    if state[KEPT_SLOT] != slot:
        state[KEPT_SLOT] = slot
        state[KEPT_TURN] += 1
    return int64(state[KEPT_TURN])


@inlined
def measured_gap(arrays: RuleArrays, slot: int, other: int) -> float:
    """Return the distance between two events, infinite if only the id of one is known."""
    rows, mine, theirs = arrays.features.rows, arrays.features.row[slot], arrays.features.row[other]
    if mine < 0 or theirs < 0:
        return math.inf
    if len(rows.weights) == 0:
        return float(rounded(row_distance(rows, mine, theirs)))
    return float(rounded(weighted_distance(rows, mine, theirs, arrays.partials)))


@inlined
def nearest_got(arrays: RuleArrays, ring: int, slot: int, oldest: int, least: float) -> Nearest:
    """Return the nearest received event below a distance; of equally near ones, the last.

    Events that were received by an instant are removed meanwhile.
    """
    kept, rings = arrays.kept, arrays.rings
    size, best, nearest, expired = int64(rings[ring, SIZE]), least, -1, 0
    if size == 0:
        return Nearest(-1, best)
    turn, start = begin_gaps(arrays, slot), int64(rings[ring, RING])
    capacity, front = ring_capacity(arrays, arrays.got.slabs, ring), int64(rings[ring, FRONT])
    cell, behind = start + front, start + capacity
    # One loop without branches that depend on the ring: the CPU would guess them wrongly, which
    # takes longer than the comparisons.
    for nth in range(size):
        other, us = got_slot(arrays, cell), got_us(arrays, cell)
        if kept.turn[other] != turn:
            kept.turn[other], kept.gap[other] = turn, measured_gap(arrays, slot, other)
        expired += 1 if us <= oldest else 0
        if kept.gap[other] <= best and kept.gap[other] < least and us > oldest:
            best, nearest = kept.gap[other], nth
        cell = cell + 1 if cell + 1 < behind else start
    front += expired
    rings[ring, FRONT] = front if front < capacity else front - capacity
    rings[ring, SIZE] = size - expired
    return Nearest(nearest - expired, best)


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
    slot, oldest = arrays.held.cell[cell, EVENT], arrays.held.cell[cell, AT] - codes.within[place]
    compared = is_compared(arrays, row * len(codes.kind) + place, slot)
    if not compared or codes.measured[place]:
        expire_got(arrays, ring, oldest)
    # An older event is neither compared nor remembered, as if the rule did not exist.
    if not compared:
        return True
    if codes.measured[place]:
        nearest = Nearest(arrays.gaps.nearest[place], arrays.gaps.gap[place])
    else:
        nearest = nearest_got(arrays, ring, slot, oldest, codes.least[place])
    if nearest.place < 0 or nearest.gap >= codes.least[place]:
        return True
    other = ring_cell(arrays, arrays.got.slabs, ring, nearest.place)
    index = judge(arrays, output, place, cell, TOO_NEAR)
    output.verdicts[index, OTHER] = got_slot(arrays, other)
    output.verdicts[index, DETAIL] = got_us(arrays, other)
    output.figures[index] = nearest.gap
    return False
