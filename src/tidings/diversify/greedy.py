"""Sets grown greedily from the best pair: divrank, maxmin, maxsum and maxavg.

divrank is PREF Alg. 1 with Def. 11; MAXMIN, MAXSUM and MAXAVG are TKS 4.2.3.1, with relevance as
facility dispersion (TKS 4.2.3.2). Relevance enters through the weight of a pair,

    d'(p, q) = sigma * (r(p) + r(q)) / 2 + (1 - sigma) * d(p, q),

whose mean over all pairs of a set is its divrank (PREF Def. 10). Finding the best k is NP-hard.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.diversify.distance import Overlap, read_distance
from tidings.diversify.hashed_distances import (
    DistanceMatrix,
    Submatrix,
    as_submatrix,
    from_events,
    from_matrix,
    has_kernel,
)
from tidings.diversify.kernels.distances import DistanceSource, source_arrays
from tidings.diversify.kernels.greedy import LEAST, MEAN, NEAREST, SUM, grow
from tidings.diversify.plain.diversifiers import PLAIN
from tidings.diversify.protocol import Candidate, TieOrder
from tidings.diversify.tie_order import by_rank, order_of, ranks_and_keys
from tidings.model import validate


@dataclass(frozen=True)
class GreedyDiversifier:
    """Greedy growth; subclasses name one of the rules of `kernels.greedy`."""

    sigma: float = 0.5
    distance: Any = Overlap()
    name: ClassVar[str]
    rule: ClassVar[int]

    def __post_init__(self) -> None:
        validate.number("sigma", self.sigma, high=1)
        read_distance(self)

    def choose(self, candidates: Sequence[Candidate], k: int) -> list[int]:
        """Choose among candidates; O(n²) at worst, and far less where ranks differ."""
        if not has_kernel(self.distance):
            return PLAIN[self.name](self, candidates, k)
        ranks, keys = ranks_and_keys(candidates)
        order = order_of([candidate.event for candidate in candidates])
        if k == 1 or len(ranks) <= 1:
            return by_rank(keys, order.newest)[:k].tolist()  # type: ignore[no-any-return]
        descending = by_rank(ranks, order.newest)
        source = from_events([candidates[i].event for i in descending.tolist()], self.distance)
        return self._grow(source, ranks, order, descending, k).tolist()  # type: ignore[no-any-return]

    def pick(
        self, ranks: Float64s, keys: Float64s, order: TieOrder, matrix: DistanceMatrix, k: int
    ) -> Int64s:
        """Choose from arrays; the matrix holds distances between 0 and 1."""
        if k == 1 or len(ranks) <= 1:
            return by_rank(keys, order.newest)[:k]
        descending = by_rank(ranks, order.newest)
        whole, members = as_submatrix(matrix)
        source = from_matrix(Submatrix(whole, members[descending]))
        return self._grow(source, ranks, order, descending, k)

    def _grow(
        self, source: DistanceSource, ranks: Float64s, order: TieOrder, descending: Int64s, k: int
    ) -> Int64s:
        """Run the kernel, which expects candidates in descending order of rank."""
        chosen, ties = np.empty(min(k, len(ranks)), np.int64), order.take(descending)
        arrays = source_arrays(source)
        grow(arrays, ranks[descending], ties, float(self.sigma), self.rule, chosen)
        return descending[chosen]


class DivRank(GreedyDiversifier):
    """The pair of largest divrank, then always the largest sigma * rank + (1 - sigma) * distance.

    The distance to the chosen is the distance to the nearest of them. With sigma = 1 only ranks
    count, with sigma = 0 only distances.
    """

    name = "divrank"
    rule = NEAREST


class MaxMin(GreedyDiversifier):
    """MAXMIN: a large smallest pair weight among the chosen."""

    name = "maxmin"
    rule = LEAST


class MaxSum(GreedyDiversifier):
    """MAXSUM: a large sum of the pair weights of the chosen."""

    name = "maxsum"
    rule = SUM


class MaxAvg(GreedyDiversifier):
    """MAXAVG: a large mean of the pair weights of the chosen; the same as MAXSUM for a fixed k."""

    name = "maxavg"
    rule = MEAN
