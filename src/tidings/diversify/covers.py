"""Diversity by covers: DisC (TKS Def. 4.2.8 and 4.2.9) and MAXDIVREL (TKS Alg. 4.1).

The chosen are independent (more than alpha apart) and dominating (every candidate is within alpha
of a chosen one).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.diversify.distance import Overlap, read_distance
from tidings.diversify.distance_matrix import DistanceMatrix, as_submatrix, distances
from tidings.diversify.kernels.cover import Relevance
from tidings.diversify.kernels.dense_cover import cover_within, fitting_dense_cover
from tidings.diversify.memory_limits import check_dense
from tidings.diversify.protocol import Candidate, TieOrder
from tidings.diversify.tie_order import by_rank, order_of, rank_places, ranks_and_keys
from tidings.model import validate
from tidings.model.values import rounded


@dataclass(frozen=True)
class CoverDiversifier:
    """Greedy covers, cut to the k most relevant; subclasses say what a candidate gains.

    Without an alpha, the largest one that still yields k is used.
    """

    alpha: float | None = None
    distance: Any = Overlap()
    name: ClassVar[str]
    sigma: ClassVar[float] = 0.5
    gains_relevance: ClassVar[bool]

    def __post_init__(self) -> None:
        if self.alpha is not None:
            validate.positive("alpha", self.alpha)
        read_distance(self)

    def choose(self, candidates: Sequence[Candidate], k: int) -> list[int]:
        """Return the places of the chosen; O(n²) distances."""
        check_dense(self.name, len(candidates))
        events = [candidate.event for candidate in candidates]
        chosen: list[int] = self.pick(
            *ranks_and_keys(candidates), order_of(events), distances(events, self.distance), k
        ).tolist()
        return chosen

    def pick(
        self, ranks: Float64s, keys: Float64s, order: TieOrder, matrix: DistanceMatrix, k: int
    ) -> Int64s:
        """Choose from arrays; without an alpha, one cover per distinct distance at worst."""
        if len(ranks) < k:
            return by_rank(keys, order.newest)
        check_dense(self.name, len(ranks))
        relevance = Relevance(ranks, rank_places(keys, order.newest), self.gains_relevance)
        square, chosen = as_square(matrix), np.empty(len(ranks), np.int64)
        if self.alpha is None:
            size = fitting_dense_cover(square, relevance, k, chosen)
        else:
            size = cover_within(square, relevance, rounded(self.alpha), chosen)
        return most_relevant(chosen[:size], relevance.places, k)


class Disc(CoverDiversifier):
    """Always the candidate with the most uncovered neighbours (TKS Def. 4.2.8)."""

    name = "disc"
    gains_relevance = False


class MaxDivRel(CoverDiversifier):
    """Always the white p of largest r(p)² / sum of r(q) d(p, q) over its white neighbours q.

    The chosen events represent their neighbourhoods (TKS Def. 4.2.10, Alg. 4.1).
    """

    name = "maxdivrel"
    gains_relevance = True


def as_square(matrix: DistanceMatrix) -> Float64s:
    """Return a matrix of the candidates only."""
    whole, members = as_submatrix(matrix)
    if len(members) == len(whole) and (members == np.arange(len(whole))).all():
        return whole
    return whole[np.ix_(members, members)]


def most_relevant(chosen: Int64s, places: Int64s, k: int) -> Int64s:
    """Return the k chosen of highest rank, in order of choice."""
    if len(chosen) <= k:
        return chosen
    limit = np.sort(places[chosen])[k - 1]
    kept: Int64s = chosen[places[chosen] <= limit]
    return kept
