"""Greedy growth of a diverse set (PREF Alg. 1 with Prop. 1): the best pair, then one by one.

Candidates stand in descending order of rank, newer ones first, so that pairs which cannot be the
best are not looked at: none is worth more than its mean rank at the distance 1.
"""

from typing import Final

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.compiled.jit import inner, kernel
from tidings.compiled.rounding import rounded
from tidings.diversify.kernels.distances import Source, fill_row

Ties = tuple[Int64s, Int64s, Int64s]
"""Of each candidate the place by newer, the time, and a number that sorts as its id does."""

Room = tuple[Int64s, Float64s, Int64s]
"""Where a row's equal marks and distances are written, and the latest time from a place on."""

NEAREST: Final = 0
"""sigma * rank + (1 - sigma) * distance to the nearest (PREF Def. 11)."""
LEAST: Final = 1
"""The smallest pair weight (MAXMIN)."""
SUM: Final = 2
"""The sum of the pair weights (MAXSUM)."""
MEAN: Final = 3
"""Their mean (MAXAVG)."""

SLACK: Final = 1e-11
"""What rounding to 12 decimals can change, and more."""


@inner
def pair_weight(sigma: float, one: float, other: float, apart: float) -> float:
    """Give the divrank of a pair (PREF Def. 10)."""
    return sigma * ((one + other) / 2) + (1 - sigma) * apart


@inner
def pair_before(ties: Ties, one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Tell whether a pair goes before one of the same value: later, newer member, smaller ids."""
    _, times, names = ties
    (a, b), (c, d) = one, other
    if times[a] + times[b] != times[c] + times[d]:
        return times[a] + times[b] > times[c] + times[d]
    if max(times[a], times[b]) != max(times[c], times[d]):
        return max(times[a], times[b]) > max(times[c], times[d])
    if min(names[a], names[b]) != min(names[c], names[d]):
        return min(names[a], names[b]) < min(names[c], names[d])
    return max(names[a], names[b]) < max(names[c], names[d])


@inner
def best_pair(
    source: Source, ranks: Float64s, ties: Ties, sigma: float, room: Room
) -> tuple[int, int]:
    """Give the pair of largest weight, the older first."""
    equal, apart, latest = room
    _, times, names = ties
    latest[len(ranks) - 1] = times[len(ranks) - 1]
    for row in range(len(ranks) - 2, -1, -1):
        latest[row] = max(times[row], latest[row + 1])
    best, most, later, pair, high = -1.0, -1.0, times[0] + times[1], (0, 1), len(ranks)
    for row in range(len(ranks) - 1):
        while high > row + 1 and cannot_win(sigma, ranks[row], ranks[high - 1], best):
            high -= 1
        if high <= row + 1:
            break
        farthest = pair_weight(sigma, ranks[row], ranks[row + 1], 1.0)
        if farthest <= most and times[row] + latest[row + 1] < later:
            continue  # all pairs of this row are worth no more, and are older
        fill_row(source, row, (row + 1, high), equal, apart)
        for other in range(row + 1, high):
            weight = pair_weight(sigma, ranks[row], ranks[other], apart[other])
            less = (weight + SLACK < best) | (times[row] + times[other] < later)
            if (weight <= most) & less:  # it rounds to no more than the best, and is less or older
                continue
            most = max(most, weight)
            weight = rounded(weight)
            if weight > best or (weight == best and pair_before(ties, (row, other), pair)):
                best, pair, later = weight, (row, other), times[row] + times[other]
    one, two = pair
    older = times[one] < times[two] or (times[one] == times[two] and names[one] < names[two])
    return (one, two) if older else (two, one)


@inner
def cannot_win(sigma: float, one: float, other: float, best: float) -> bool:
    """Tell whether a pair of such ranks is worth less than the best, however far apart."""
    return pair_weight(sigma, one, other, 1.0) + SLACK < best


@inner
def combined(rule: int, before: float, link: float) -> float:
    """Add a link to those before: O(1) for each candidate and step (PREF Prop. 1)."""
    return min(before, link) if rule <= LEAST else before + link


@inner
def value_of(rule: int, sigma: float, rank: float, links: float, size: int) -> float:
    """Give what is compared, from the links to the `size` chosen ones."""
    if rule == NEAREST:
        return rounded(sigma * rank + (1 - sigma) * links)
    return rounded(links / size if rule == MEAN else links)


@kernel
def grow(
    source: Source, ranks: Float64s, ties: Ties, sigma: float, rule: int, chosen: Int64s
) -> None:
    """Choose as many as `chosen` has room for, two at least; O(n²) for the pair, O(n) for each."""
    count = len(ranks)
    room = (np.empty(count, np.int64), np.empty(count), np.empty(count, np.int64))
    chosen[0], chosen[1] = best_pair(source, ranks, ties, sigma, room)
    free = np.ones(count, np.bool_)
    links = np.full(count, np.inf) if rule <= LEAST else np.zeros(count)
    for size in range(1, len(chosen) + 1):
        added = chosen[size - 1]
        free[added] = False
        fill_row(source, added, (0, count), room[0], room[1])
        best, next_one = -1.0, -1
        for each in range(count):
            if not free[each]:
                continue
            link = room[1][each]
            if rule != NEAREST:
                link = pair_weight(sigma, ranks[each], ranks[added], link)
            links[each] = combined(rule, links[each], link)
            value = value_of(rule, sigma, ranks[each], links[each], size)
            newer = next_one < 0 or ties[0][each] < ties[0][next_one]
            if value > best or (value == best and newer):
                best, next_one = value, each
        if 2 <= size < len(chosen):
            chosen[size] = next_one
