"""Covers by neighbourhoods (TKS Alg. 4.1): independent and dominating, for disc and maxdivrel."""

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

from tidings.diversify.distance import checked_distance
from tidings.diversify.protocol import Candidate, Distance, best_first, ranked
from tidings.model.values import rounded

PairDistances = dict[tuple[int, int], float]
Gain = Callable[[int, set[int], PairDistances], float]


def disc(part: Any, candidates: Sequence[Candidate], k: int) -> list[int]:
    """Choose by the number of white neighbours (TKS Def. 4.2.8)."""
    return choose_cover(candidates, k, part, lambda _, neighbours, __: len(neighbours))


def maxdivrel(part: Any, candidates: Sequence[Candidate], k: int) -> list[int]:
    """Choose by r(p)² / sum of r(q) d(p, q) over the white neighbours q (TKS Alg. 4.1)."""

    def gain(i: int, neighbours: set[int], distances: PairDistances) -> float:
        rank = candidates[i].rank
        around = math.fsum(candidates[j].rank * distances[i, j] for j in neighbours)
        return rank * (rank / around) if around else math.inf

    return choose_cover(candidates, k, part, gain)


def choose_cover(candidates: Sequence[Candidate], k: int, part: Any, gain: Gain) -> list[int]:
    """Choose a cover for `part.alpha` (or the alpha that fits k), cut to the k most relevant."""
    if len(candidates) < k:
        return ranked(candidates)
    distances = pair_distances(candidates, part.distance)
    chosen = (
        _fitting_cover(candidates, k, distances, gain)
        if part.alpha is None
        else cover(candidates, part.alpha, distances, gain)
    )
    kept = sorted(chosen, key=lambda i: best_first(candidates[i]))[:k]
    return [i for i in chosen if i in kept]


def pair_distances(candidates: Sequence[Candidate], distance: Distance) -> PairDistances:
    """Return the distance of every pair, in both directions."""
    distances = {}
    for i, j in combinations(range(len(candidates)), 2):
        value = checked_distance(distance, candidates[i].event, candidates[j].event)
        distances[i, j] = distances[j, i] = value
    return distances


def cover(
    candidates: Sequence[Candidate], alpha: float, distances: PairDistances, gain: Gain
) -> list[int]:
    """Colour all candidates (TKS Alg. 4.1): choose the white one of largest gain, grey its rest.

    `gain` sees the white neighbours; of equal gains the higher rank wins, then the newer.
    """
    white = set(range(len(candidates)))
    near: dict[int, set[int]] = {i: set() for i in white}
    for (i, j), distance in distances.items():
        if rounded(distance) <= rounded(alpha):
            near[i].add(j)
    chosen: list[int] = []
    while white:
        best = min(white, key=lambda i: _order(candidates[i], gain(i, near[i] & white, distances)))
        chosen.append(best)
        white -= {best, *near[best]}
    return chosen


def _order(candidate: Candidate, gain: float) -> tuple[float, tuple[float, int, str]]:
    return (-rounded(gain), best_first(candidate))


def _fitting_cover(
    candidates: Sequence[Candidate], k: int, distances: PairDistances, gain: Gain
) -> list[int]:
    """Try every alpha at which the cover can change, largest first, until k are chosen."""
    for alpha in sorted({0.0, *map(rounded, distances.values())}, reverse=True):
        chosen = cover(candidates, alpha, distances, gain)
        if len(chosen) >= k:
            break
    return chosen
