"""Diversity-aware rank (PREF Alg. 1 with Def. 11): rank and distance to the chosen, mixed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tidings import checks
from tidings.diversify.distance import Overlap, read_distance
from tidings.diversify.greedy import Rule, grow, pair_rank
from tidings.diversify.protocol import Candidate


@dataclass(frozen=True)
class DivRank:
    """Start with the pair of largest divrank, then add by sigma * rank + (1 - sigma) * distance.

    The distance to the chosen is that to the nearest of them. sigma = 1 looks at ranks only,
    sigma = 0 at distances only.
    """

    sigma: float = 0.5
    distance: Any = Overlap()
    name: ClassVar[str] = "divrank"

    def __post_init__(self) -> None:
        checks.number("sigma", self.sigma, high=1)
        read_distance(self)

    def choose(self, candidates: Sequence[Candidate], k: int) -> list[int]:
        """Choose greedily; O(n²) distances for the pair, O(n) more for each next one."""
        rule = Rule(
            link=lambda one, other: float(self.distance.between(one.event, other.event)),
            combine=min,
            value=lambda each, nearest, _: self.sigma * each.rank + (1 - self.sigma) * nearest,
        )
        return grow(candidates, k, pair_rank(self.sigma, self.distance), rule)
