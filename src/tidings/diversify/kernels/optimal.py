"""The set of largest divrank (PREF Def. 10): all sets of k but those that a bound rules out."""

from typing import Final

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.compiled.exact_sum import PARTS, sum_add, sum_total
from tidings.compiled.jit import inner, kernel
from tidings.compiled.rounding import rounded

Ties = tuple[Int64s, Int64s, Int64s]
Case = tuple[Float64s, Float64s, float]
"""Distances between all candidates, their ranks, and sigma."""
Best = tuple[Int64s, Float64s]
"""The best set so far, its candidates ascending, and its value."""

DOUBT: Final = 1e-9
"""Quick sums are off by less, in parts of the largest rank or 1; nearer ones are added exactly."""


@inner
def set_value(case: Case, chosen: Int64s, parts: Float64s) -> float:
    """Give sigma * mean rank + (1 - sigma) * mean distance, sums without error."""
    matrix, ranks, sigma = case
    size, k = 0, len(chosen)
    for each in chosen:
        size = sum_add(parts, size, ranks[each])
    mean = sum_total(parts, size) / k
    size = 0
    for one in range(k):
        for other in range(one):
            size = sum_add(parts, size, matrix[chosen[one], chosen[other]])
    pairs = k * (k - 1) // 2
    div = sum_total(parts, size) / pairs if pairs > 0 else 0.0
    return rounded(sigma * mean + (1 - sigma) * div)


@kernel
def set_before(ties: Ties, one: Int64s, other: Int64s) -> bool:
    """Tell whether a set goes before one of the same value (PREF Def. 12).

    Later as a whole, then newer members, then smaller ids. Candidates are ascending by `newest`,
    so their times descend.
    """
    _, times, names = ties
    later = 0
    for each in range(len(one)):
        later += times[one[each]] - times[other[each]]
    if later != 0:
        return later > 0
    for each in range(len(one)):
        if times[one[each]] != times[other[each]]:
            return times[one[each]] > times[other[each]]
    mine, yours = np.sort(names[one]), np.sort(names[other])
    for each in range(len(one)):
        if mine[each] != yours[each]:
            return mine[each] < yours[each]
    return False


@kernel
def consider(case: Case, ties: Ties, chosen: Int64s, best: Best, parts: Float64s) -> None:
    """Keep a set if it is better than the best so far."""
    value = set_value(case, chosen, parts)
    if value > best[1][0] or (value == best[1][0] and set_before(ties, chosen, best[0])):
        best[0][:] = chosen
        best[1][0] = value


@inner
def bounded(links: Float64s, most: Float64s, first: int, kept: Float64s) -> float:
    """Give what some of the candidates from `first` on can add at most, as many as `kept` holds.

    Each adds its links to the chosen, its own rank, and half of its largest distances to others.
    """
    size, wanted = 0, len(kept)
    for each in range(first, len(links)):
        value = links[each] + most[each]
        if size == wanted and value <= kept[0]:
            continue
        at = size if size < wanted else 0
        if size < wanted:
            size += 1
            while at > 0 and kept[at - 1] > value:
                kept[at] = kept[at - 1]
                at -= 1
        else:
            while at + 1 < wanted and kept[at + 1] < value:
                kept[at] = kept[at + 1]
                at += 1
        kept[at] = value
    return kept[:size].sum()


@kernel
def best_set(case: Case, ties: Ties, most: Float64s, best: Best) -> int:
    """Find the best set, starting from that in `best`; give how many sets were added up.

    Candidates are ascending by `newest`. `most[m]` holds for each candidate its share of the rank
    and half of its m largest distances, both weighed as in the divrank. The walk takes candidates
    in order, and back, as combinations come; `links[d]` holds what each adds to the first d.
    """
    matrix, ranks, sigma = case
    count, k = len(ranks), len(best[0])
    pairs = max(k * (k - 1) // 2, 1)
    doubt = DOUBT * max(1.0, ranks.max())
    chosen, parts, kept = np.arange(k), np.empty(PARTS), np.empty(k)
    links, value = np.zeros((k, count)), np.zeros(k + 1)
    depth, looked = 0, 0
    best[1][0] = set_value(case, best[0], parts)
    chosen[0] = -1
    while depth >= 0:
        chosen[depth] += 1
        wanted = k - depth
        if chosen[depth] > count - wanted:
            depth -= 1
            continue
        if depth == k - 1:
            for last in range(chosen[depth], count):
                total = value[depth] + links[depth, last] + sigma * ranks[last] / k
                if total + doubt >= best[1][0]:
                    chosen[depth] = last
                    looked += 1
                    consider(case, ties, chosen, best, parts)
            depth -= 1
            continue
        added = chosen[depth]
        reach = bounded(links[depth], most[wanted - 1], added, kept[:wanted])
        if value[depth] + reach + doubt < best[1][0]:
            depth -= 1
            continue
        value[depth + 1] = value[depth] + links[depth, added] + sigma * ranks[added] / k
        for each in range(added + 1, count):
            away = (1 - sigma) * matrix[added, each] / pairs
            links[depth + 1, each] = links[depth, each] + away
        depth += 1
        chosen[depth] = added
    return looked
