"""Covers by neighbourhoods (TKS Alg. 4.1): choose the best white candidate, grey its neighbours.

All candidates start white. The white candidate of largest gain is chosen, and its neighbours leave
the white ones, until none is left. The gain of p looks at its white neighbours q:

    maxdivrel   r(p)² / sum of r(q) d(p, q)      infinite if the sum is 0
    disc        how many there are

`Neighbourhoods` holds the lists of neighbours in flat arrays, one span per candidate:

    starts[i]         |-- counts[i] --|
    ids         ...   4   7   9   12  |  .  .       the others within alpha
    distances   ...  .1  .3  .3   .5  |  .  .       spare room: lists may shrink or grow in place

The sums over white neighbours are updated as candidates leave, so that a whole cover costs
O(edges), plus one look at the white ones for each choice. An updated sum is off in its last digits:
candidates that may be the best are summed again without error before they are compared.
"""

from typing import Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Bools, Float64s, Int64s
from tidings.compiled.exact_sum import PARTS, sum_add, sum_total
from tidings.compiled.jit import inner, kernel
from tidings.compiled.rounding import rounded

CLOSE: Final = 1e-8
"""Gains within this share of the largest are compared exactly."""
TINY: Final = 2e-12
"""Two units of the 12 decimals that gains are rounded to."""
LOST: Final = 0.01
"""A sum that fell to this share of its last exact value has lost two digits: it is summed again."""


class Neighbourhoods(NamedTuple):
    """Candidate i has the neighbours ids[starts[i] : starts[i] + counts[i]], at these distances."""

    starts: Int64s
    counts: Int64s
    ids: Int64s
    distances: Float64s


class Relevance(NamedTuple):
    """The rank of each candidate, its place by rank, and whether gains use ranks or counts."""

    ranks: Float64s
    places: Int64s
    by_rank: bool


class NeighbourSums(NamedTuple):
    """For each candidate the sum over its white neighbours, and its value when last summed."""

    current: Float64s
    summed: Float64s


class Gains(NamedTuple):
    """The gain of each candidate by its sum, and whether that has changed since."""

    values: Float64s
    stale: Bools
    sums: Float64s


@inner
def share(near: Neighbourhoods, relevance: Relevance, position: int) -> float:
    """Return what a neighbour adds to the sum: r(q) d(p, q), or 1 where neighbours are counted."""
    if relevance.by_rank:
        return relevance.ranks[near.ids[position]] * near.distances[position]
    return 1.0


@inner
def sum_quickly(near: Neighbourhoods, relevance: Relevance, white: Int64s, member: int) -> float:
    """Return the sum over the white neighbours of a member."""
    total = 0.0
    first = near.starts[member]
    for position in range(first, first + near.counts[member]):
        if white[near.ids[position]] >= 0:
            total += share(near, relevance, position)
    return total


@inner
def sum_exactly(
    near: Neighbourhoods, relevance: Relevance, white: Int64s, member: int, parts: Float64s
) -> float:
    """Return the sum over the white neighbours of a member, without error."""
    size = 0
    first = near.starts[member]
    for position in range(first, first + near.counts[member]):
        if white[near.ids[position]] >= 0:
            size = sum_add(parts, size, share(near, relevance, position))
    return sum_total(parts, size)


@inner
def gain_of(relevance: Relevance, member: int, around: float) -> float:
    """Return r(p)² / sum, infinite if the sum is 0; or the number of neighbours."""
    if not relevance.by_rank:
        return around
    rank = relevance.ranks[member]
    # rank * rank could overflow where the quotient does not.
    return rank * (rank / around) if around != 0.0 else np.inf


@inner
def contender_limit(most: float) -> float:
    """Return the gain from which a candidate may be the best, given the largest inexact gain."""
    # Sums err by a share of themselves, rounding by a constant: both are allowed for.
    return most - most * CLOSE - TINY if most < np.inf else most


@inner
def is_better(relevance: Relevance, member: int, gain: float, best: int, best_gain: float) -> bool:
    """Return whether an exact gain beats the best one so far; of ties, the higher rank does."""
    if gain != best_gain:
        return gain > best_gain
    return best < 0 or relevance.places[member] < relevance.places[best]


@inner
def best_white(
    near: Neighbourhoods,
    relevance: Relevance,
    members: Int64s,
    white: Int64s,
    gains: Gains,
    parts: Float64s,
) -> int:
    """Return the white member of largest gain; of ties the one of higher rank.

    `members` are the white ones; `white` holds the position of each among them, or -1.
    """
    # First pass: the largest gain by inexact sums. Only gains close to it are computed exactly.
    most = -1.0
    for member in members:
        if gains.stale[member]:
            gains.values[member] = gain_of(relevance, member, gains.sums[member])
            gains.stale[member] = False
        most = max(most, gains.values[member])
    limit = contender_limit(most)
    best, best_gain = -1, -1.0
    for member in members:
        if gains.values[member] < limit:
            continue
        around = gains.sums[member]
        # Counts are exact as they are, and so is a sum of 0: it is one of nothing else.
        if relevance.by_rank and around != 0.0:
            around = sum_exactly(near, relevance, white, member, parts)
        gain = rounded(gain_of(relevance, member, around))
        if is_better(relevance, member, gain, best, best_gain):
            best, best_gain = member, gain
    return best


@inner
def remove_white(members: Int64s, white: Int64s, size: int, member: int) -> int:
    """Remove a member from the white ones, the last of which takes its position.

    Returns how many are left.
    """
    last = members[size - 1]
    members[white[member]] = last
    white[last] = white[member]
    white[member] = -1
    return size - 1


@inner
def subtract_from_neighbours(
    near: Neighbourhoods,
    relevance: Relevance,
    white: Int64s,
    sums: NeighbourSums,
    stale: Bools,
    gone: int,
) -> None:
    """Subtract a member that has left the white ones from the sums of its neighbours."""
    first = near.starts[gone]
    for position in range(first, first + near.counts[gone]):
        other = near.ids[position]
        if white[other] >= 0:
            stale[other] = True
            sums.current[other] -= (
                relevance.ranks[gone] * near.distances[position] if relevance.by_rank else 1.0
            )


@inner
def restore_precision(
    near: Neighbourhoods, relevance: Relevance, white: Int64s, sums: NeighbourSums, gone: int
) -> None:
    """Sum again, around a member that left, where subtraction has cancelled digits."""
    current, summed = sums
    first = near.starts[gone]
    for position in range(first, first + near.counts[gone]):
        other = near.ids[position]
        if white[other] >= 0 and current[other] < summed[other] * LOST:
            current[other] = summed[other] = sum_quickly(near, relevance, white, other)


@kernel
def cover(near: Neighbourhoods, relevance: Relevance, candidates: Int64s, chosen: Int64s) -> int:
    """Choose among candidates until none is white; return how many were chosen."""
    members = candidates.copy()  # reordered as candidates leave
    white = np.full(len(near.starts), -1, np.int64)
    for position in range(len(members)):
        white[members[position]] = position
    sums = NeighbourSums(np.zeros(len(white)), np.zeros(len(white)))
    for member in members:
        sums.current[member] = sum_quickly(near, relevance, white, member)
        sums.summed[member] = sums.current[member]
    gains = Gains(np.zeros(len(white)), np.ones(len(white), np.bool_), sums.current)
    parts, gone = np.empty(PARTS), np.empty(len(members), np.int64)
    left, size = len(members), 0
    while left > 0:
        best = best_white(near, relevance, members[:left], white, gains, parts)
        chosen[size] = gone[0] = best
        size += 1
        # All leave before any sum changes, so that no sum of a leaving member is updated.
        left, leaving = remove_white(members, white, left, best), 1
        for position in range(near.starts[best], near.starts[best] + near.counts[best]):
            if white[near.ids[position]] >= 0:
                gone[leaving] = near.ids[position]
                left, leaving = remove_white(members, white, left, gone[leaving]), leaving + 1
        for member in gone[:leaving]:
            subtract_from_neighbours(near, relevance, white, sums, gains.stale, member)
        # Only after all subtractions: a fresh sum must not have one of them applied again.
        for member in gone[:leaving]:
            restore_precision(near, relevance, white, sums, member)
    return size
