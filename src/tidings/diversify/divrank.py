"""Diversity-aware rank (PREF Alg. 1 with Def. 11): a mix of rank and distance to the chosen."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tidings.compiled.array_types import Float64s, Int64s
from tidings.diversify.distance import Overlap, read_distance
from tidings.diversify.greedy import GreedyGrowth
from tidings.diversify.hashed_distances import DistanceMatrix
from tidings.diversify.kernels.greedy import NEAREST
from tidings.diversify.protocol import Candidate, TieOrder
from tidings.model import validate


@dataclass(frozen=True)
class DivRank:
    """The pair of largest divrank, then always the largest sigma * rank + (1 - sigma) * distance.

    The distance to the chosen is the distance to the nearest of them. With sigma = 1 only ranks
    count, with sigma = 0 only distances.
    """

    sigma: float = 0.5
    distance: Any = Overlap()
    name: ClassVar[str] = "divrank"

    def __post_init__(self) -> None:
        validate.number("sigma", self.sigma, high=1)
        read_distance(self)

    def choose(self, candidates: Sequence[Candidate], k: int) -> list[int]:
        return self._growth.choose(self, candidates, k)

    def pick(
        self, ranks: Float64s, keys: Float64s, order: TieOrder, matrix: DistanceMatrix, k: int
    ) -> Int64s:
        return self._growth.pick(ranks, keys, order, matrix, k)

    @property
    def _growth(self) -> GreedyGrowth:
        return GreedyGrowth(NEAREST, self.sigma)
