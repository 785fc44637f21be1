"""Covers of candidates whose distances are all in a matrix; `cover` has the algorithm.

    matrix[p]   0.0  0.4  0.8  0.5      the neighbours of p are the others up to `reach`

No list of neighbours is written or sorted: a row of the matrix is read where a list would be, many
numbers at once. The largest distance within reach comes with the same pass, so that the next
smaller alpha is known when a cover turns out too small. The loops after that also read cells that
are the numbers of levels, with a table of what they share; see `sparse_cover`.
"""

from typing import Any, NamedTuple

import numpy as np

from tidings.compiled.array_types import AnyArray, Float64s, Int64s
from tidings.compiled.exact_sum import PARTS, sum_add, sum_total
from tidings.compiled.jit import inlined, inner, kernel, nested
from tidings.compiled.rounding import rounded
from tidings.diversify.kernels.cover import (
    LOST,
    NeighbourSums,
    Relevance,
    contender_limit,
    gain_of,
    is_better,
    remove_white,
)


class Whites(NamedTuple):
    """The white candidates, and for each candidate its position among them, or -1."""

    members: Int64s
    position: Int64s


class NearCells(NamedTuple):
    """Distances or levels of all pairs, and up to which cell pairs are near.

    Where the cells are levels, `shares` has their distances, or 1 where neighbours are counted, and
    0 beyond reach; else it is None.
    """

    cells: AnyArray
    shares: Float64s | None
    reach: float


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
    # A loop for each case: without a test of the weight inside, both are vectorized.
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


@inlined
def share(shares: Float64s | None, cell: Any, reach: float, by_rank: bool) -> Any:
    """Return the distance in a cell, or 1 where neighbours are counted; 0 beyond reach.

    Without a branch, which could not be predicted.
    """
    if shares is None:
        return (cell if by_rank else 1.0) if cell <= reach else 0.0
    return shares[cell]


@inner
def sum_white(
    near: NearCells,
    relevance: Relevance,
    members: Int64s,
    member: int,
    parts: Float64s,
) -> float:
    """Return the sum of r(q) d(p, q) over the white neighbours of a member, without error."""
    size = 0
    for other in members:
        cell = near.cells[member, other]
        if other != member and cell <= near.reach:
            distance = share(near.shares, cell, near.reach, relevance.by_rank)
            size = sum_add(parts, size, relevance.ranks[other] * distance)
    return sum_total(parts, size)


@inner
def best_of_whites(
    near: NearCells,
    relevance: Relevance,
    members: Int64s,
    sums: Float64s,
    parts: Float64s,
) -> int:
    """Return the white member of largest gain; of ties the one of higher rank."""
    # As in `cover.best_white`, but all gains are computed: no list says whose sums have changed.
    most = -1.0
    for member in members:
        most = max(most, gain_of(relevance, member, sums[member]))
    limit = contender_limit(most)
    best, best_gain = -1, -1.0
    for member in members:
        if gain_of(relevance, member, sums[member]) < limit:
            continue
        around = sums[member]
        # Counts are exact as they are, and so is a sum of 0: it is one of nothing else.
        if relevance.by_rank and around != 0.0:
            around = sum_white(near, relevance, members, member, parts)
        gain = rounded(gain_of(relevance, member, around))
        if is_better(relevance, member, gain, best, best_gain):
            best, best_gain = member, gain
    return best


@inner
def sum_again(
    near: NearCells,
    relevance: Relevance,
    members: Int64s,
    member: int,
) -> float:
    """Return the sum over the white neighbours of a member, or how many there are."""
    total = 0.0
    for other in members:
        part = share(near.shares, near.cells[member, other], near.reach, relevance.by_rank)
        weight = relevance.ranks[other] if relevance.by_rank else 1.0
        total += weight * part if other != member else 0.0
    return total


@inner
def subtract(
    near: NearCells,
    relevance: Relevance,
    members: Int64s,
    gone: Int64s,
    sums: NeighbourSums,
) -> None:
    """Subtract removed members from the sums of white ones; sum again where digits were lost."""
    current, summed = sums
    fewer = len(members) < len(gone)  # then there is less to sum than to subtract
    for leaver in gone[: 0 if fewer else len(gone)]:
        weight, row = relevance.ranks[leaver] if relevance.by_rank else 1.0, near.cells[leaver]
        for member in members:
            part = share(near.shares, row[member], near.reach, relevance.by_rank)
            current[member] -= weight * part
    for member in members:
        if fewer or (relevance.by_rank and current[member] < summed[member] * LOST):
            total = sum_again(near, relevance, members, member)
            current[member] = summed[member] = total


@inner
def remove_neighbours(
    row: AnyArray, reach: float, whites: Whites, left: int, gone: Int64s
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


@nested
def cover_by_sums(
    near: NearCells,
    relevance: Relevance,
    current: Float64s,
    chosen: Int64s,
) -> int:
    """Choose among all candidates until none is white, and return how many were chosen.

    `current` has for each the sum over its neighbours, all of which are white; it is written to.
    """
    count = len(near.cells)
    whites = Whites(np.arange(count), np.arange(count))
    sums = NeighbourSums(current, current.copy())
    parts, gone = np.empty(PARTS), np.empty(count, np.int64)
    left, size = count, 0
    while left > 0:
        members = whites.members[:left]
        best = best_of_whites(near, relevance, members, current, parts)
        chosen[size] = gone[0] = best
        size += 1
        left = remove_white(whites.members, whites.position, left, best)
        left, leaving = remove_neighbours(near.cells[best], near.reach, whites, left, gone)
        members = whites.members[:left]
        subtract(near, relevance, members, gone[:leaving], sums)
    return size


@kernel
def dense_cover(
    matrix: Float64s, relevance: Relevance, reach: float, chosen: Int64s
) -> tuple[int, float]:
    """Choose among all candidates until none is white.

    Return how many were chosen, and the largest distance within reach, -1 if there is none.
    """
    count = len(matrix)
    current, farthest = np.zeros(count), np.full(count, -1.0)
    for member in range(count):
        weight = relevance.ranks[member] if relevance.by_rank else -1.0
        # Two ranges leave the member itself out, without a test for each cell.
        for first, stop in ((0, member), (member + 1, count)):
            add_row(matrix[member], weight, reach, first, stop, current)
            keep_farthest(matrix[member], reach, first, stop, farthest)
    size = cover_by_sums(NearCells(matrix, None, reach), relevance, current, chosen)
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
    grow as alpha falls. The largest distance is not tried for a k above 1: it yields one.
    """
    largest = rounded(matrix.max())
    reach = reach_below(largest) if k > 1 and largest > 0.0 else np.inf
    while True:
        size, farthest = dense_cover(matrix, relevance, reach, chosen)
        level = rounded(farthest)
        if size >= k or level <= 0.0:
            return size
        reach = reach_below(level)
