"""MAXMIN, MAXSUM and MAXAVG (TKS 4.2.3.1), with relevance as facility dispersion (TKS 4.2.3.2).

Relevance enters through the weight of a pair, d'(p, q) = sigma * (r(p) + r(q)) / 2 + (1 - sigma) *
d(p, q), whose mean over all pairs of a set is its divrank (PREF Def. 10). Finding the best k is
NP-hard; these parts grow a set greedily from the best pair.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tidings.compiled.array_types import Float64s, Int64s
from tidings.diversify.distance import Overlap, read_distance
from tidings.diversify.greedy import GreedyGrowth
from tidings.diversify.hashed_distances import DistanceMatrix
from tidings.diversify.kernels.greedy import LEAST, MEAN, SUM
from tidings.diversify.protocol import Candidate, TieOrder
from tidings.model import validate


@dataclass(frozen=True)
class MaxMin:
    """MAXMIN: a large smallest pair weight among the chosen."""

    sigma: float = 0.5
    distance: Any = Overlap()
    name: ClassVar[str] = "maxmin"

    def __post_init__(self) -> None:
        _check(self)

    def choose(self, candidates: Sequence[Candidate], k: int) -> list[int]:
        return GreedyGrowth(LEAST, self.sigma).choose(self, candidates, k)

    def pick(
        self, ranks: Float64s, keys: Float64s, order: TieOrder, matrix: DistanceMatrix, k: int
    ) -> Int64s:
        return GreedyGrowth(LEAST, self.sigma).pick(ranks, keys, order, matrix, k)


@dataclass(frozen=True)
class MaxSum:
    """MAXSUM: a large sum of the pair weights of the chosen."""

    sigma: float = 0.5
    distance: Any = Overlap()
    name: ClassVar[str] = "maxsum"

    def __post_init__(self) -> None:
        _check(self)

    def choose(self, candidates: Sequence[Candidate], k: int) -> list[int]:
        return GreedyGrowth(SUM, self.sigma).choose(self, candidates, k)

    def pick(
        self, ranks: Float64s, keys: Float64s, order: TieOrder, matrix: DistanceMatrix, k: int
    ) -> Int64s:
        return GreedyGrowth(SUM, self.sigma).pick(ranks, keys, order, matrix, k)


@dataclass(frozen=True)
class MaxAvg:
    """MAXAVG: a large mean of the pair weights of the chosen; the same as MAXSUM for a fixed k."""

    sigma: float = 0.5
    distance: Any = Overlap()
    name: ClassVar[str] = "maxavg"

    def __post_init__(self) -> None:
        _check(self)

    def choose(self, candidates: Sequence[Candidate], k: int) -> list[int]:
        return GreedyGrowth(MEAN, self.sigma).choose(self, candidates, k)

    def pick(
        self, ranks: Float64s, keys: Float64s, order: TieOrder, matrix: DistanceMatrix, k: int
    ) -> Int64s:
        return GreedyGrowth(MEAN, self.sigma).pick(ranks, keys, order, matrix, k)


def _check(part: MaxMin | MaxSum | MaxAvg) -> None:
    validate.number("sigma", part.sigma, high=1)
    read_distance(part)
