"""MAXDIVREL (TKS Def. 4.2.10, Alg. 4.1): relevant events that represent their neighbourhoods."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tidings.compiled.array_types import Float64s, Int64s
from tidings.diversify.disc import GreedyCover, check_alpha, choose_cover
from tidings.diversify.distance import Overlap, read_distance
from tidings.diversify.distance_matrix import DistanceMatrix
from tidings.diversify.protocol import Candidate, TieOrder


@dataclass(frozen=True)
class MaxDivRel:
    """Always the white p of largest r(p)² / sum of r(q) d(p, q) over its white neighbours q.

    Without an alpha, the largest one that still yields k is used.
    """

    alpha: float | None = None
    distance: Any = Overlap()
    name: ClassVar[str] = "maxdivrel"
    sigma: ClassVar[float] = 0.5

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        read_distance(self)

    def choose(self, candidates: Sequence[Candidate], k: int) -> list[int]:
        return choose_cover(self, candidates, k)

    def pick(
        self, ranks: Float64s, keys: Float64s, order: TieOrder, matrix: DistanceMatrix, k: int
    ) -> Int64s:
        return GreedyCover(self.alpha, relevant=True).pick(ranks, keys, order, matrix, k)
