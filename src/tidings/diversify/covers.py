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
from tidings.diversify.event_tokens import offsets
from tidings.diversify.kernels.cover import (
    Neighbourhoods,
    Relevance,
    count_near,
    cover,
    fitting_cover,
    list_near,
)
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
        members, chosen = np.arange(len(ranks)), np.empty(len(ranks), np.int64)
        if self.alpha is None:
            size = fitting_cover(sorted_neighbours(matrix), relevance, members, k, chosen)
        else:
            size = cover(neighbours_within(matrix, self.alpha), relevance, members, chosen)
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


def neighbours_within(matrix: DistanceMatrix, alpha: float) -> Neighbourhoods:
    """List for each candidate the others within alpha."""
    whole, members = as_submatrix(matrix)
    counts = np.empty(len(members), np.int64)
    count_near(whole, members, rounded(alpha), counts)
    starts = offsets(counts)
    ids, nearby = np.empty(starts[-1], np.int64), np.empty(starts[-1])
    list_near(whole, members, rounded(alpha), starts, ids, nearby)
    return Neighbourhoods(starts[:-1].copy(), counts, ids, nearby)


def sorted_neighbours(matrix: DistanceMatrix) -> Neighbourhoods:
    """List for each candidate all others, the nearest first."""
    whole, members = as_submatrix(matrix)
    square = whole[np.ix_(members, members)]
    count = len(members)
    np.fill_diagonal(square, np.inf)  # sorts the candidate itself behind all others
    ids = np.argsort(square, axis=1, kind="stable")
    nearest = np.take_along_axis(square, ids, axis=1)
    starts, counts = np.arange(count) * count, np.full(count, count - 1)
    return Neighbourhoods(starts, counts, ids.ravel(), nearest.ravel())


def most_relevant(chosen: Int64s, places: Int64s, k: int) -> Int64s:
    """Return the k chosen of highest rank, in order of choice."""
    if len(chosen) <= k:
        return chosen
    limit = np.sort(places[chosen])[k - 1]
    kept: Int64s = chosen[places[chosen] <= limit]
    return kept
