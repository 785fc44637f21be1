"""Diversity-aware rank (PREF Alg. 1 with Def. 11): rank and distance to the chosen, mixed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tidings.compiled.array_types import Float64s, Int64s
from tidings.diversify.distance import Overlap, read_distance
from tidings.diversify.distance_matrix import Apart
from tidings.diversify.greedy import Growth
from tidings.diversify.kernels.greedy import NEAREST
from tidings.diversify.protocol import Candidate, Order
from tidings.model import validate


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
        validate.number("sigma", self.sigma, high=1)
        read_distance(self)

    def choose(self, candidates: Sequence[Candidate], k: int) -> list[int]:
        return self._growth.choose(self, candidates, k)

    def pick(self, ranks: Float64s, keys: Float64s, order: Order, apart: Apart, k: int) -> Int64s:
        return self._growth.pick(ranks, keys, order, apart, k)

    @property
    def _growth(self) -> Growth:
        return Growth(NEAREST, self.sigma)
