"""Covers by neighbourhoods (TKS Alg. 4.1): always the white one of largest gain, then its rest.

The sums over white neighbours are kept up to date, so a whole cover costs O(edges) and, for each
chosen one, a look at those still white. A kept sum is off by some last digits: those that may be
the best are added up anew without error before they are compared.
"""

from typing import Final

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.compiled.exact_sum import PARTS, sum_add, sum_total
from tidings.compiled.jit import inner, kernel
from tidings.compiled.rounding import rounded

Near = tuple[Int64s, Int64s, Int64s, Float64s]
"""Member i has the neighbours ids[starts[i] : starts[i] + counts[i]], and how far they are."""
Worth = tuple[Float64s, Int64s, bool]
"""Of each member the rank and its place by rank; and whether gains look at ranks, not counts."""
Sums = tuple[Float64s, Float64s]
"""The sums over white neighbours, and what each was when it was last added up."""

CLOSE: Final = 1e-8
TINY: Final = 2e-12
LOST: Final = 0.01
"""A kept sum that fell to this share of what it was has lost two digits: it is added up anew."""


@inner
def share(near: Near, worth: Worth, place: int) -> float:
    """Give what a neighbour adds to the sum: r(q) d(p, q), or 1 where neighbours are counted."""
    return worth[0][near[2][place]] * near[3][place] if worth[2] else 1.0


@inner
def add_up(near: Near, worth: Worth, white: Int64s, member: int) -> float:
    """Add up the white neighbours of a member, quickly."""
    total = 0.0
    first = near[0][member]
    for place in range(first, first + near[1][member]):
        if white[near[2][place]] >= 0:
            total += share(near, worth, place)
    return total


@inner
def add_exactly(near: Near, worth: Worth, white: Int64s, member: int, parts: Float64s) -> float:
    """Add up the white neighbours of a member without error."""
    size = 0
    first = near[0][member]
    for place in range(first, first + near[1][member]):
        if white[near[2][place]] >= 0:
            size = sum_add(parts, size, share(near, worth, place))
    return sum_total(parts, size)


@inner
def gain_of(worth: Worth, member: int, around: float) -> float:
    """Give r(p)² / sum, infinite where there is nothing around; or the count of neighbours."""
    if not worth[2]:
        return around
    rank = worth[0][member]
    return rank * (rank / around) if around != 0.0 else np.inf


@inner
def best_white(
    near: Near, worth: Worth, members: Int64s, white: Int64s, sums: Float64s, parts: Float64s
) -> int:
    """Give the white member of largest gain; of ties the one of higher rank.

    `members` are the white ones; `white` holds the place of each among them, or -1.
    """
    most = -1.0
    for member in members:
        most = max(most, gain_of(worth, member, sums[member]))
    limit = most - most * CLOSE - TINY if most < np.inf else most
    best, best_gain = -1, -1.0
    for member in members:
        if gain_of(worth, member, sums[member]) < limit:
            continue
        around = add_exactly(near, worth, white, member, parts) if worth[2] else sums[member]
        gain = rounded(gain_of(worth, member, around))
        first = best < 0 or worth[1][member] < worth[1][best]
        if gain > best_gain or (gain == best_gain and first):
            best, best_gain = member, gain
    return best


@inner
def leave_white(members: Int64s, white: Int64s, size: int, member: int) -> int:
    """Take a member out of the white ones; give how many are left."""
    last = members[size - 1]
    members[white[member]] = last
    white[last] = white[member]
    white[member] = -1
    return size - 1


@inner
def forget(near: Near, worth: Worth, white: Int64s, sums: Sums, gone: int) -> None:
    """Take one that is not white any more out of the sums of its neighbours."""
    first = near[0][gone]
    for place in range(first, first + near[1][gone]):
        other = near[2][place]
        if white[other] >= 0:
            sums[0][other] -= worth[0][gone] * near[3][place] if worth[2] else 1.0


@inner
def renew(near: Near, worth: Worth, white: Int64s, sums: Sums, gone: int) -> None:
    """Add up anew what lost digits, after all who left were taken out."""
    kept, whole = sums
    first = near[0][gone]
    for place in range(first, first + near[1][gone]):
        other = near[2][place]
        if white[other] >= 0 and kept[other] < whole[other] * LOST:
            kept[other] = whole[other] = add_up(near, worth, white, other)


@kernel
def cover(near: Near, worth: Worth, given: Int64s, chosen: Int64s) -> int:
    """Choose among the given members until none is white; give how many were chosen."""
    members = given.copy()
    white = np.full(len(near[0]), -1, np.int64)
    for place in range(len(members)):
        white[members[place]] = place
    sums = (np.zeros(len(white)), np.zeros(len(white)))
    for member in members:
        sums[0][member] = sums[1][member] = add_up(near, worth, white, member)
    parts, gone = np.empty(PARTS), np.empty(len(members), np.int64)
    left, size = len(members), 0
    while left > 0:
        best = best_white(near, worth, members[:left], white, sums[0], parts)
        chosen[size] = gone[0] = best
        size += 1
        left, many = leave_white(members, white, left, best), 1
        for place in range(near[0][best], near[0][best] + near[1][best]):
            if white[near[2][place]] >= 0:
                gone[many] = near[2][place]
                left, many = leave_white(members, white, left, gone[many]), many + 1
        for each in gone[:many]:
            forget(near, worth, white, sums, each)
        for each in gone[:many]:
            renew(near, worth, white, sums, each)
    return size


@kernel
def fitting_cover(near: Near, worth: Worth, given: Int64s, k: int, chosen: Int64s) -> int:
    """Choose with the largest alpha that yields k, or else with 0; give how many were chosen.

    `near` lists all others, the nearest first. Every alpha at which the cover can change is tried,
    since a smaller one may yield less: the lists lose their last level each time.
    """
    starts, counts, _, apart = near
    while True:
        size = cover(near, worth, given, chosen)
        level = 0.0
        for member in given:
            if counts[member] > 0:
                level = max(level, rounded(apart[starts[member] + counts[member] - 1]))
        if size >= k or level == 0.0:
            return size
        for member in given:
            while counts[member] > 0:
                if rounded(apart[starts[member] + counts[member] - 1]) < level:
                    break
                counts[member] -= 1


@kernel
def count_near(matrix: Float64s, members: Int64s, alpha: float, counts: Int64s) -> None:
    """Count for each member those within alpha, both rounded to 12 decimals."""
    for one in range(len(members)):
        counts[one] = 0
        for other in range(len(members)):
            if other != one and rounded(matrix[members[one], members[other]]) <= alpha:
                counts[one] += 1


@kernel
def list_near(matrix: Float64s, members: Int64s, alpha: float, near: Near) -> None:
    """Write the neighbours that `count_near` counted."""
    starts, _, ids, apart = near
    for one in range(len(members)):
        place = starts[one]
        for other in range(len(members)):
            away = matrix[members[one], members[other]]
            if other != one and rounded(away) <= alpha:
                ids[place], apart[place] = other, away
                place += 1
