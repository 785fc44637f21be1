"""Covers of candidates whose distances are all in a matrix; `cover` has the algorithm.

    matrix[p]   0.0  0.4  0.8  0.5      the neighbours of p are the others up to `reach`

No list of neighbours is written or sorted: a row of the matrix is read where a list would be, many
numbers at once. The largest distance within reach comes with the same pass, so that the next
smaller alpha is known when a cover turns out too small.
"""

from typing import NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.compiled.exact_sum import PARTS, sum_add, sum_total
from tidings.compiled.jit import inner, kernel
from tidings.compiled.rounding import rounded
from tidings.diversify.kernels.cover import (
    CLOSE,
    LOST,
    TINY,
    NeighbourSums,
    Relevance,
    gain_of,
    remove_white,
)


class Whites(NamedTuple):
    """The white candidates, and for each candidate its position among them, or -1."""

    members: Int64s
    position: Int64s


@inner
def reach_of(alpha: float) -> float:
    """Return the largest distance that is at most alpha when both have 12 decimals."""
    reach = alpha + 5e-13
    while rounded(reach) > alpha:
        reach = np.nextafter(reach, -np.inf)
    while rounded(np.nextafter(reach, np.inf)) <= alpha:
        reach = np.nextafter(reach, np.inf)
    return reach


@inner
def reach_below(level: float) -> float:
    """Return the largest distance that is below a level when it has 12 decimals, as that has."""
    reach = min(level - 5e-13, np.nextafter(level, -np.inf))
    while rounded(reach) >= level:
        reach = np.nextafter(reach, -np.inf)
    while rounded(np.nextafter(reach, np.inf)) < level:
        reach = np.nextafter(reach, np.inf)
    return reach


@inner
def add_row(
    row: Float64s, weight: float, reach: float, first: int, stop: int, sums: Float64s
) -> None:
    """Add a candidate to the sums of its neighbours from `first` on; a weight of -1 counts it."""
    if weight < 0:
        for other in range(first, stop):
            sums[other] += 1.0 if row[other] <= reach else 0.0
    else:
        for other in range(first, stop):
            sums[other] += weight * row[other] if row[other] <= reach else 0.0


@inner
def keep_farthest(row: Float64s, reach: float, first: int, stop: int, farthest: Float64s) -> None:
    """Keep the largest distances within reach."""
    for other in range(first, stop):
        within = row[other] if row[other] <= reach else -1.0
        farthest[other] = max(farthest[other], within)


@inner
def sum_white(
    matrix: Float64s,
    relevance: Relevance,
    reach: float,
    members: Int64s,
    member: int,
    parts: Float64s,
) -> float:
    """Return the sum of r(q) d(p, q) over the white neighbours of a member, without error."""
    size = 0
    for other in members:
        if other != member and matrix[member, other] <= reach:
            size = sum_add(parts, size, relevance.ranks[other] * matrix[member, other])
    return sum_total(parts, size)


@inner
def best_of_whites(
    matrix: Float64s,
    relevance: Relevance,
    reach: float,
    members: Int64s,
    sums: Float64s,
    parts: Float64s,
) -> int:
    """Return the white member of largest gain; of ties the one of higher rank."""
    most = -1.0
    for member in members:
        most = max(most, gain_of(relevance, member, sums[member]))
    limit = most - most * CLOSE - TINY if most < np.inf else most
    best, best_gain = -1, -1.0
    for member in members:
        if gain_of(relevance, member, sums[member]) < limit:
            continue
        around = sums[member]
        if relevance.by_rank:  # counts are exact as they are
            around = sum_white(matrix, relevance, reach, members, member, parts)
        gain = rounded(gain_of(relevance, member, around))
        first = best < 0 or relevance.places[member] < relevance.places[best]
        if gain > best_gain or (gain == best_gain and first):
            best, best_gain = member, gain
    return best


@inner
def subtract(
    matrix: Float64s,
    relevance: Relevance,
    reach: float,
    members: Int64s,
    gone: Int64s,
    sums: NeighbourSums,
) -> None:
    """Subtract what has left from the sums of the white ones; sum again what has lost digits."""
    current, summed = sums
    for left in gone:
        weight = relevance.ranks[left] if relevance.by_rank else -1.0
        for member in members:
            distance = matrix[left, member]
            if distance <= reach:
                current[member] -= weight * distance if relevance.by_rank else 1.0
    for member in members:
        if relevance.by_rank and current[member] < summed[member] * LOST:
            total = 0.0
            for other in members:
                if other != member and matrix[member, other] <= reach:
                    total += relevance.ranks[other] * matrix[member, other]
            current[member] = summed[member] = total


@inner
def remove_neighbours(
    row: Float64s, reach: float, whites: Whites, left: int, gone: Int64s
) -> tuple[int, int]:
    """Remove the white neighbours of the last chosen; return how many are left, and have gone."""
    leaving, position = 1, 0
    while position < left:
        member = whites.members[position]
        if row[member] <= reach:
            gone[leaving] = member
            leaving += 1
            left = remove_white(whites.members, whites.position, left, member)
        else:
            position += 1
    return left, leaving


@kernel
def dense_cover(
    matrix: Float64s, relevance: Relevance, reach: float, chosen: Int64s
) -> tuple[int, float]:
    """Choose among all candidates until none is white.

    Return how many were chosen, and the largest distance within reach, -1 if there is none.
    """
    count = len(matrix)
    whites = Whites(np.arange(count), np.arange(count))
    sums = NeighbourSums(np.zeros(count), np.zeros(count))
    farthest = np.full(count, -1.0)
    for member in range(count):
        weight = relevance.ranks[member] if relevance.by_rank else -1.0
        for first, stop in ((0, member), (member + 1, count)):
            add_row(matrix[member], weight, reach, first, stop, sums.current)
            keep_farthest(matrix[member], reach, first, stop, farthest)
    sums.summed[:] = sums.current
    parts, gone = np.empty(PARTS), np.empty(count, np.int64)
    left, size = count, 0
    while left > 0:
        members = whites.members[:left]
        best = best_of_whites(matrix, relevance, reach, members, sums.current, parts)
        chosen[size] = gone[0] = best
        size += 1
        left = remove_white(whites.members, whites.position, left, best)
        left, leaving = remove_neighbours(matrix[best], reach, whites, left, gone)
        subtract(matrix, relevance, reach, whites.members[:left], gone[:leaving], sums)
    return size, farthest.max() if count else -1.0


@kernel
def cover_within(matrix: Float64s, relevance: Relevance, alpha: float, chosen: Int64s) -> int:
    """Choose with an alpha, of 12 decimals; return how many were chosen."""
    size, _ = dense_cover(matrix, relevance, reach_of(alpha), chosen)
    return size


@kernel
def fitting_dense_cover(matrix: Float64s, relevance: Relevance, k: int, chosen: Int64s) -> int:
    """Choose with the largest alpha that yields k, or else with 0; return how many were chosen.

    Every alpha at which the cover can change is tried, since the size of a greedy cover need not
    grow as alpha falls.
    """
    reach = np.inf
    while True:
        size, farthest = dense_cover(matrix, relevance, reach, chosen)
        level = rounded(farthest)
        if size >= k or level <= 0.0:
            return size
        reach = reach_below(level)
