"""The rule `different` for many subscribers; see `tidings.rules.different`."""

import math
from typing import NamedTuple

from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined, inner
from tidings.compiled.rounding import rounded
from tidings.diversify.kernels.distances import row_distance, weighted_distance
from tidings.feed.columnar.rules.kernels.layout import (
    AT,
    DETAIL,
    EVENT,
    FRONT,
    KEPT_READ,
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
    kept = arrays.kept
    if kept.state[KEPT_SLOT] != slot:
        kept.state[KEPT_SLOT], kept.state[KEPT_READ] = slot, 0
        kept.state[KEPT_TURN] += 1
        kept.least[0] = -math.inf
    return int64(kept.state[KEPT_TURN])


@inlined
def measured_gap(arrays: RuleArrays, slot: int, other: int) -> float:
    """Return the distance between two events, infinite if only the id of one is known."""
    rows, mine, theirs = arrays.features.rows, arrays.features.row[slot], arrays.features.row[other]
    if mine < 0 or theirs < 0:
        return math.inf
    if len(rows.weights) == 0:
        return float(rounded(row_distance(rows, mine, theirs)))
    return float(rounded(weighted_distance(rows, mine, theirs, arrays.partials)))


@inner
def measure_all(arrays: RuleArrays, slot: int) -> None:
    """Measure the gaps from an event to all others with features, and note the least."""
    kept, turn, least = arrays.kept, arrays.kept.state[KEPT_TURN], math.inf
    # Slots that no ring refers to any more do no harm: an event near to them is looked for in vain.
    for other in range(len(kept.turn)):
        if kept.turn[other] != turn:
            kept.turn[other], kept.gap[other] = turn, measured_gap(arrays, slot, other)
        if other != slot:
            least = min(least, kept.gap[other])
    kept.least[0] = least


@inlined
def is_near_none(arrays: RuleArrays, place: int, slot: int, at: int) -> bool:
    """Return whether no other event is nearer to one than a rule demands, whoever got it."""
    kept = arrays.kept
    # An event whose id was published again may be in rings itself, but only at a later time.
    is_new = kept.state[KEPT_SLOT] == slot and arrays.events.us[slot] == at
    return is_new and kept.least[0] >= arrays.codes.least[place]


@inlined
def count_near(arrays: RuleArrays, first: int, behind: int, least: float) -> int:
    """Return how many events in some cells are nearer than a distance; all gaps are measured."""
    near = 0
    for cell in range(first, behind):
        near += 1 if arrays.kept.gap[got_slot(arrays, cell)] < least else 0
    return near


@inlined
def nearest_got(arrays: RuleArrays, ring: int, slot: int, least: float) -> Nearest:
    """Return the nearest received event below a distance; of equally near ones, the last."""
    kept, rings = arrays.kept, arrays.rings
    size, best, nearest = int64(rings[ring, SIZE]), least, -1
    if size == 0:
        return Nearest(-1, best)
    turn, start = begin_gaps(arrays, slot), int64(rings[ring, RING])
    kept.state[KEPT_READ] += size
    if kept.least[0] == -math.inf and kept.state[KEPT_READ] > len(kept.turn):
        measure_all(arrays, slot)
    cell, behind = start + rings[ring, FRONT], start + ring_capacity(arrays, arrays.got.slabs, ring)
    if kept.least[0] > -math.inf:
        wrapped = max(0, cell + size - behind)
        near = count_near(arrays, cell, cell + size - wrapped, least)
        if near + count_near(arrays, start, start + wrapped, least) == 0:
            return Nearest(-1, best)
    # One loop without branches that depend on the ring: the CPU would guess them wrongly, which
    # takes longer than the comparisons.
    for nth in range(size):
        other = got_slot(arrays, cell)
        if kept.turn[other] != turn:
            kept.turn[other], kept.gap[other] = turn, measured_gap(arrays, slot, other)
        if kept.gap[other] <= best and kept.gap[other] < least:
            best, nearest = kept.gap[other], nth
        cell = cell + 1 if cell + 1 < behind else start
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
    slot, oldest = arrays.held.cell[cell, EVENT], arrays.held.cell[cell, AT] - codes.within[place]
    compared = is_compared(arrays, row * len(codes.kind) + place, slot)
    expire_got(arrays, ring, oldest)
    # An older event is neither compared nor remembered, as if the rule did not exist.
    if not compared:
        return True
    if codes.measured[place]:
        nearest = Nearest(arrays.gaps.nearest[place], arrays.gaps.gap[place])
    elif is_near_none(arrays, place, slot, arrays.held.cell[cell, AT]):
        return True
    else:
        nearest = nearest_got(arrays, ring, slot, codes.least[place])
    if nearest.place < 0 or nearest.gap >= codes.least[place]:
        return True
    other = ring_cell(arrays, arrays.got.slabs, ring, nearest.place)
    index = judge(arrays, output, place, cell, TOO_NEAR)
    output.verdicts[index, OTHER] = got_slot(arrays, other)
    output.verdicts[index, DETAIL] = got_us(arrays, other)
    output.figures[index] = nearest.gap
    return False
