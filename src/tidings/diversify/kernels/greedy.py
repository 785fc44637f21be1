"""Greedy growth of a diverse set (PREF Alg. 1 with Prop. 1): the best pair, then one by one.

The weight of a pair is d'(p, q) = sigma * (r(p) + r(q)) / 2 + (1 - sigma) * d(p, q) (PREF Def. 10).
Then always the candidate of largest value is added, by one of four rules over the chosen set S:

    NEAREST   sigma * r(p) + (1 - sigma) * min d(p, q)     divrank (PREF Def. 11)
    LEAST     min d'(p, q)                                 MAXMIN
    SUM       sum d'(p, q)                                 MAXSUM
    MEAN      sum d'(p, q) / |S|                           MAXAVG

`links[p]` holds the min or sum so far, so that a step costs O(n) distances (Prop. 1).

Candidates stand in descending order of rank, newer ones first. No pair is worth more than its mean
rank at distance 1, so most pairs of low ranks are ruled out without taking their distance:

    rank     0.9  0.8  0.7 | 0.2  0.1
    row 0         d    d   | -    -         `high` moves left as the best pair improves
    row 1              d   | -    -
"""

from typing import Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.compiled.jit import inner, kernel
from tidings.compiled.rounding import rounded
from tidings.diversify.kernels.distances import DistanceSource, SourceArrays, fill_row
from tidings.diversify.kernels.token_rows import InvertedLists
from tidings.diversify.protocol import TieOrder

NEAREST: Final = 0
LEAST: Final = 1
SUM: Final = 2
MEAN: Final = 3

SLACK: Final = 1e-11
"""More than rounding to 12 decimals can change: bounds that are this close decide nothing."""


class PairScratch(NamedTuple):
    """Scratch buffers of `best_pair`, one number per candidate.

    `equal` and `distances` belong to one row; `latest[i]` is the newest time from i on.
    """

    equal: Int64s
    distances: Float64s
    latest: Int64s


@inner
def pair_weight(sigma: float, one: float, other: float, distance: float) -> float:
    """Return the divrank of a pair of ranks at a distance (PREF Def. 10)."""
    return sigma * ((one + other) / 2) + (1 - sigma) * distance


@inner
def cannot_win(sigma: float, one: float, other: float, best: float) -> bool:
    """Return whether a pair of such ranks is worth less than the best at any distance."""
    return pair_weight(sigma, one, other, 1.0) + SLACK < best


@inner
def pair_before(ties: TieOrder, one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Return whether a pair precedes another of the same weight (SEMANTICS 5).

    The larger sum of publication times wins, then the newer member, then the smaller ids.
    """
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
    source: DistanceSource, ranks: Float64s, ties: TieOrder, sigma: float, scratch: PairScratch
) -> tuple[int, int]:
    """Return the pair of largest weight, the older member first."""
    equal, distances, latest = scratch
    _, times, names = ties
    latest[len(ranks) - 1] = times[len(ranks) - 1]
    for row in range(len(ranks) - 2, -1, -1):
        latest[row] = max(times[row], latest[row + 1])
    # `best` is the rounded weight of `pair`, `most` the largest weight met before rounding.
    best, most, later, pair, high = -1.0, -1.0, times[0] + times[1], (0, 1), len(ranks)
    for row in range(len(ranks) - 1):
        # Ranks fall with the row: a column ruled out once stays ruled out.
        while high > row + 1 and cannot_win(sigma, ranks[row], ranks[high - 1], best):
            high -= 1
        if high <= row + 1:
            break
        farthest = pair_weight(sigma, ranks[row], ranks[row + 1], 1.0)
        if farthest <= most and times[row] + latest[row + 1] < later:
            continue  # no pair of this row weighs more, and all of them are older
        fill_row(source, row, (row + 1, high), equal, distances)
        for other in range(row + 1, high):
            weight = pair_weight(sigma, ranks[row], ranks[other], distances[other])
            less = (weight + SLACK < best) | (times[row] + times[other] < later)
            if (weight <= most) & less:  # rounds to no more than the best, and loses the tie
                continue
            most = max(most, weight)
            weight = rounded(weight)
            if weight > best or (weight == best and pair_before(ties, (row, other), pair)):
                best, pair, later = weight, (row, other), times[row] + times[other]
    one, two = pair
    older = times[one] < times[two] or (times[one] == times[two] and names[one] < names[two])
    return (one, two) if older else (two, one)


@inner
def combine_links(rule: int, before: float, link: float) -> float:
    """Add the link to one more chosen candidate, in O(1) (PREF Prop. 1)."""
    return min(before, link) if rule <= LEAST else before + link


@inner
def candidate_value(rule: int, sigma: float, rank: float, links: float, size: int) -> float:
    """Return the value of a candidate, from its links to the `size` chosen ones."""
    # Rounded, so that values that are equal in exact arithmetic tie.
    if rule == NEAREST:
        return rounded(sigma * rank + (1 - sigma) * links)
    return rounded(links / size if rule == MEAN else links)


@kernel
def grow(
    arrays: SourceArrays,
    ranks: Float64s,
    ties: TieOrder,
    sigma: float,
    rule: int,
    chosen: Int64s,
) -> None:
    """Choose len(chosen) candidates, at least two; O(n²) for the pair, O(n) for each one after.

    `arrays` are the `source_arrays` of the distances.
    """
    source = DistanceSource(arrays[0], arrays[1], InvertedLists(*arrays[2]))
    count = len(ranks)
    scratch = PairScratch(np.empty(count, np.int64), np.empty(count), np.empty(count, np.int64))
    chosen[0], chosen[1] = best_pair(source, ranks, ties, sigma, scratch)
    free = np.ones(count, np.bool_)
    links = np.full(count, np.inf) if rule <= LEAST else np.zeros(count)
    # The first pass only adds the links to the older member of the pair.
    for size in range(1, len(chosen) + 1):
        added = chosen[size - 1]
        free[added] = False
        fill_row(source, added, (0, count), scratch.equal, scratch.distances)
        best, winner = -1.0, -1
        for candidate in range(count):
            if not free[candidate]:
                continue
            link = scratch.distances[candidate]
            if rule != NEAREST:
                link = pair_weight(sigma, ranks[candidate], ranks[added], link)
            links[candidate] = combine_links(rule, links[candidate], link)
            value = candidate_value(rule, sigma, ranks[candidate], links[candidate], size)
            newer = winner < 0 or ties.newest[candidate] < ties.newest[winner]
            if value > best or (value == best and newer):
                best, winner = value, candidate
        if 2 <= size < len(chosen):
            chosen[size] = winner
