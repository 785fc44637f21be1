"""The set of largest divrank by brute force (PREF Def. 11): the judge of the heuristics."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

from tidings import checks
from tidings.diversify.distance import Overlap, read_distance, set_divrank
from tidings.diversify.protocol import Candidate, best_first


@dataclass(frozen=True)
class Optimal:
    """Look at all sets of k; for small windows only, since there are n over k of them."""

    sigma: float = 0.5
    distance: Any = Overlap()
    name: ClassVar[str] = "optimal"

    def __post_init__(self) -> None:
        checks.number("sigma", self.sigma, high=1)
        read_distance(self)

    def choose(self, candidates: Sequence[Candidate], k: int) -> list[int]:
        """Give the best set, its members by rank.

        Of ties (PREF Def. 12): the larger sum of publication times, then the newer members, then
        the smaller ids.
        """
        best = min(
            combinations(range(len(candidates)), min(k, len(candidates))),
            key=lambda indexes: self._order([candidates[i] for i in indexes]),
        )
        return sorted(best, key=lambda i: best_first(candidates[i]))

    def _order(self, chosen: Sequence[Candidate]) -> tuple[float, int, list[int], list[str]]:
        times = sorted(-each.event.published_us for each in chosen)
        ids = sorted(each.event.id for each in chosen)
        return (-set_divrank(chosen, self.sigma, self.distance), sum(times), times, ids)
