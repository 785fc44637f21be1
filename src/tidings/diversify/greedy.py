"""Sets grown greedily from the best pair, compiled: divrank, maxmin, maxsum and maxavg."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.diversify.hashed_distances import (
    DistanceMatrix,
    Submatrix,
    as_submatrix,
    from_events,
    from_matrix,
    has_kernel,
)
from tidings.diversify.kernels.distances import DistanceSource, source_arrays
from tidings.diversify.kernels.greedy import grow
from tidings.diversify.plain.diversifiers import PLAIN
from tidings.diversify.protocol import Candidate, Diversifier, TieOrder
from tidings.diversify.tie_order import by_rank, order_of, ranks_and_keys


@dataclass(frozen=True)
class GreedyGrowth:
    """Greedy growth by one of the rules of `kernels.greedy`."""

    rule: int
    sigma: float

    def choose(self, part: Diversifier, candidates: Sequence[Candidate], k: int) -> list[int]:
        """Choose among candidates; O(n²) at worst, and far less where ranks differ."""
        if not has_kernel(part.distance):
            return PLAIN[part.name](part, candidates, k)
        ranks, keys = ranks_and_keys(candidates)
        order = order_of([candidate.event for candidate in candidates])
        if k == 1 or len(ranks) <= 1:
            return _as_list(by_rank(keys, order.newest)[:k])
        descending = by_rank(ranks, order.newest)
        source = from_events([candidates[i].event for i in descending.tolist()], part.distance)
        return _as_list(self._grow(source, ranks, order, descending, k))

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


def _as_list(places: Int64s) -> list[int]:
    indexes: list[int] = places.tolist()
    return indexes
