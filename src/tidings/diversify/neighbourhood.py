"""Choosing by neighbourhoods (TKS Def. 4.2.8 and 4.2.9): dissimilar to each other, near to all.

The chosen are independent (more than alpha apart) and dominating (every candidate is within alpha
of a chosen one).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

from tidings import checks
from tidings.diversify.distance import Overlap, read_distance
from tidings.diversify.protocol import Candidate, Distance, best_first, ranked
from tidings.values import rounded

Apart = dict[tuple[int, int], float]
Gain = Callable[[int, set[int], Apart], float]


@dataclass(frozen=True)
class Disc:
    """DisC diversity: always the candidate with the most uncovered neighbours.

    Without an alpha, the largest that still yields k.
    """

    alpha: float | None = None
    distance: Any = Overlap()
    name: ClassVar[str] = "disc"
    sigma: ClassVar[float] = 0.5

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        read_distance(self)

    def choose(self, candidates: Sequence[Candidate], k: int) -> list[int]:
        """Cover all candidates, then keep the k most relevant of the cover."""
        return choose_cover(candidates, k, self, lambda _, neighbours, __: len(neighbours))


def check_alpha(alpha: float | None) -> None:
    """Check the radius of a neighbourhood: above 0, or left open."""
    if alpha is not None:
        checks.positive("alpha", alpha)


def choose_cover(candidates: Sequence[Candidate], k: int, part: Any, gain: Gain) -> list[int]:
    """Choose a cover for `part.alpha` (or the alpha that fits k), cut to the k most relevant."""
    if len(candidates) < k:
        return ranked(candidates)
    apart = distances(candidates, part.distance)
    chosen = (
        _fitting_cover(candidates, k, apart, gain)
        if part.alpha is None
        else cover(candidates, part.alpha, apart, gain)
    )
    kept = sorted(chosen, key=lambda i: best_first(candidates[i]))[:k]
    return [i for i in chosen if i in kept]


def distances(candidates: Sequence[Candidate], distance: Distance) -> Apart:
    """Give the distance of every pair, both ways round."""
    apart = {}
    for i, j in combinations(range(len(candidates)), 2):
        apart[i, j] = apart[j, i] = distance.between(candidates[i].event, candidates[j].event)
    return apart


def cover(candidates: Sequence[Candidate], alpha: float, apart: Apart, gain: Gain) -> list[int]:
    """Colour all candidates (TKS Alg. 4.1): choose the white one of largest gain, grey its rest.

    `gain` sees the white neighbours; of equal gains the higher rank, then the newer.
    """
    white = set(range(len(candidates)))
    near: dict[int, set[int]] = {i: set() for i in white}
    for (i, j), d in apart.items():
        if rounded(d) <= rounded(alpha):
            near[i].add(j)
    chosen: list[int] = []
    while white:
        best = min(white, key=lambda i: _order(candidates[i], gain(i, near[i] & white, apart)))
        chosen.append(best)
        white -= {best, *near[best]}
    return chosen


def _order(candidate: Candidate, gain: float) -> tuple[float, tuple[float, int, str]]:
    return (-rounded(gain), best_first(candidate))


def _fitting_cover(candidates: Sequence[Candidate], k: int, apart: Apart, gain: Gain) -> list[int]:
    """Try every alpha at which the cover can change, largest first, until k are chosen."""
    for alpha in sorted({0.0, *map(rounded, apart.values())}, reverse=True):
        chosen = cover(candidates, alpha, apart, gain)
        if len(chosen) >= k:
            break
    return chosen
