"""Sets that grow greedily from the best pair, compiled: divrank, maxmin, maxsum and maxavg."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.diversify.distance_matrix import Among, Apart, among, from_events, from_matrix
from tidings.diversify.event_tokens import known
from tidings.diversify.kernels.distances import Source
from tidings.diversify.kernels.greedy import grow
from tidings.diversify.plain.registry import PLAIN
from tidings.diversify.protocol import Candidate, Diversifier, Order
from tidings.diversify.tie_order import by_rank, order_of, ranks_and_keys


@dataclass(frozen=True)
class Growth:
    """Grow a set by one of the rules of `kernels.grow`."""

    rule: int
    sigma: float

    def choose(self, part: Diversifier, candidates: Sequence[Candidate], k: int) -> list[int]:
        """Choose among candidates; O(n²) at worst, and far less where ranks differ."""
        if not known(part.distance):
            return PLAIN[part.name](part, candidates, k)
        ranks, keys = ranks_and_keys(candidates)
        order = order_of([each.event for each in candidates])
        if k == 1 or len(ranks) <= 1:
            return _listed(by_rank(keys, order.newest)[:k])
        falling = by_rank(ranks, order.newest)
        source = from_events([candidates[i].event for i in falling.tolist()], part.distance)
        return _listed(self._grown(source, ranks, order, falling, k))

    def pick(self, ranks: Float64s, keys: Float64s, order: Order, apart: Apart, k: int) -> Int64s:
        """Choose from arrays; `apart` holds distances between 0 and 1."""
        if k == 1 or len(ranks) <= 1:
            return by_rank(keys, order.newest)[:k]
        falling = by_rank(ranks, order.newest)
        matrix, members = among(apart)
        source = from_matrix(Among(matrix, members[falling]))
        return self._grown(source, ranks, order, falling, k)

    def _grown(
        self, source: Source, ranks: Float64s, order: Order, falling: Int64s, k: int
    ) -> Int64s:
        chosen = np.empty(min(k, len(ranks)), np.int64)
        grow(source, ranks[falling], order.at(falling), float(self.sigma), self.rule, chosen)
        return falling[chosen]


def _listed(places: Int64s) -> list[int]:
    found: list[int] = places.tolist()
    return found
