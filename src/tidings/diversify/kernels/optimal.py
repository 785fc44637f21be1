"""The set of k candidates of largest divrank (PREF Def. 10), by branch and bound.

    value(S) = sigma * mean of r(p) + (1 - sigma) * mean of d(p, q) over the pairs of S

Sets are walked as combinations: candidates in ascending order, depth first. With d of k chosen, a
candidate's contribution to the final value is known up to its distances to later ones, of which at
most the k - d - 1 largest count, half each, since both ends of a pair claim it. The sum of the
k - d largest such bounds, added to the value so far, rules out whole subtrees:

    depth 0   c0
    depth 1   c0 c1            value[1] + bound(c1, c2, ...) < best: go back
    depth 2   c0 c1 c2         the last level is a loop over all remaining candidates
"""

from typing import Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.compiled.exact_sum import PARTS, sum_add, sum_total
from tidings.compiled.jit import inner, kernel
from tidings.compiled.rounding import rounded
from tidings.diversify.protocol import TieOrder

DOUBT: Final = 1e-9
"""Quick sums err by less, relative to the largest rank or 1; closer ones are summed exactly."""


class SetProblem(NamedTuple):
    """The distances between all candidates, their ranks, and sigma."""

    distances: Float64s
    ranks: Float64s
    sigma: float


class BestSet(NamedTuple):
    """The best set so far, its candidates ascending, and its value in an array of one."""

    members: Int64s
    value: Float64s


@inner
def set_value(problem: SetProblem, chosen: Int64s, parts: Float64s) -> float:
    """Return sigma * mean rank + (1 - sigma) * mean distance, summed without error."""
    distances, ranks, sigma = problem
    size, k = 0, len(chosen)
    for member in chosen:
        size = sum_add(parts, size, ranks[member])
    mean = sum_total(parts, size) / k
    size = 0
    for one in range(k):
        for other in range(one):
            size = sum_add(parts, size, distances[chosen[one], chosen[other]])
    pairs = k * (k - 1) // 2
    diversity = sum_total(parts, size) / pairs if pairs > 0 else 0.0
    return rounded(sigma * mean + (1 - sigma) * diversity)


@kernel
def set_before(ties: TieOrder, one: Int64s, other: Int64s) -> bool:
    """Return whether a set precedes another of the same value (PREF Def. 12).

    The larger sum of publication times wins, then the newer members, then the smaller ids.
    Candidates are ascending by `newest`, so their times descend.
    """
    _, times, names = ties
    later = 0
    for position in range(len(one)):
        later += times[one[position]] - times[other[position]]
    if later != 0:
        return later > 0
    for position in range(len(one)):
        if times[one[position]] != times[other[position]]:
            return times[one[position]] > times[other[position]]
    names_of_one, names_of_other = np.sort(names[one]), np.sort(names[other])
    for position in range(len(one)):
        if names_of_one[position] != names_of_other[position]:
            return names_of_one[position] < names_of_other[position]
    return False


@kernel
def consider(
    problem: SetProblem, ties: TieOrder, chosen: Int64s, best: BestSet, parts: Float64s
) -> None:
    """Make a set the best one if it is better."""
    value = set_value(problem, chosen, parts)
    if value > best.value[0] or (value == best.value[0] and set_before(ties, chosen, best.members)):
        best.members[:] = chosen
        best.value[0] = value


@inner
def upper_bound(links: Float64s, most: Float64s, first: int, largest: Float64s) -> float:
    """Return the most that len(largest) of the candidates from `first` on can add.

    Each adds its links to the chosen, its own rank, and half of its largest distances to others.
    The largest bounds are kept in ascending order in `largest`, which is short.
    """
    size, wanted = 0, len(largest)
    for candidate in range(first, len(links)):
        value = links[candidate] + most[candidate]
        if size == wanted and value <= largest[0]:
            continue
        position = size if size < wanted else 0
        if size < wanted:
            size += 1
            while position > 0 and largest[position - 1] > value:
                largest[position] = largest[position - 1]
                position -= 1
        else:
            while position + 1 < wanted and largest[position + 1] < value:
                largest[position] = largest[position + 1]
                position += 1
        largest[position] = value
    return largest[:size].sum()


@kernel
def best_set(problem: SetProblem, ties: TieOrder, most: Float64s, best: BestSet) -> int:
    """Find the best set, starting from that in `best`; return how many sets were summed exactly.

    Candidates are ascending by `newest`. `most[m]` holds for each candidate its share of the rank
    and half of its m largest distances, both weighted as in the divrank. `links[d]` holds what each
    candidate adds to the first d chosen, and `value[d]` what those are worth themselves.
    """
    distances, ranks, sigma = problem
    count, k = len(ranks), len(best.members)
    pairs = max(k * (k - 1) // 2, 1)
    doubt = DOUBT * max(1.0, ranks.max())
    chosen, parts, largest = np.arange(k), np.empty(PARTS), np.empty(k)
    links, value = np.zeros((k, count)), np.zeros(k + 1)
    depth, examined = 0, 0
    best.value[0] = set_value(problem, best.members, parts)
    chosen[0] = -1  # incremented to 0 by the first step
    while depth >= 0:
        chosen[depth] += 1
        wanted = k - depth
        if chosen[depth] > count - wanted:  # too few candidates are left
            depth -= 1
            continue
        if depth == k - 1:
            # Nothing follows the last member, so its value is exact up to `doubt`: no bound.
            for last in range(chosen[depth], count):
                total = value[depth] + links[depth, last] + sigma * ranks[last] / k
                if total + doubt >= best.value[0]:
                    chosen[depth] = last
                    examined += 1
                    consider(problem, ties, chosen, best, parts)
            depth -= 1
            continue
        added = chosen[depth]
        reach = upper_bound(links[depth], most[wanted - 1], added, largest[:wanted])
        if value[depth] + reach + doubt < best.value[0]:
            # Later candidates at this depth have even fewer behind them: the bound only falls.
            depth -= 1
            continue
        value[depth + 1] = value[depth] + links[depth, added] + sigma * ranks[added] / k
        for candidate in range(added + 1, count):
            distance = (1 - sigma) * distances[added, candidate] / pairs
            links[depth + 1, candidate] = links[depth, candidate] + distance
        depth += 1
        chosen[depth] = added
    return examined
