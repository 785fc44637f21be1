"""DisC diversity (TKS Def. 4.2.8 and 4.2.9): choices that cover all candidates.

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
from tidings.diversify.protocol import Candidate, Diversifier, TieOrder
from tidings.diversify.tie_order import by_rank, order_of, rank_places, ranks_and_keys
from tidings.model import validate
from tidings.model.values import rounded


@dataclass(frozen=True)
class Disc:
    """Always the candidate with the most uncovered neighbours.

    Without an alpha, the largest one that still yields k is used.
    """

    alpha: float | None = None
    distance: Any = Overlap()
    name: ClassVar[str] = "disc"
    sigma: ClassVar[float] = 0.5

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        read_distance(self)

    def choose(self, candidates: Sequence[Candidate], k: int) -> list[int]:
        return choose_cover(self, candidates, k)

    def pick(
        self, ranks: Float64s, keys: Float64s, order: TieOrder, matrix: DistanceMatrix, k: int
    ) -> Int64s:
        return GreedyCover(self.alpha, relevant=False).pick(ranks, keys, order, matrix, k)


def check_alpha(alpha: float | None) -> None:
    """Check the radius of a neighbourhood: above 0, or left open."""
    if alpha is not None:
        validate.positive("alpha", alpha)


def choose_cover(part: Diversifier, candidates: Sequence[Candidate], k: int) -> list[int]:
    """Cover all candidates, then keep the k most relevant of the cover; O(n²) distances."""
    check_dense(part.name, len(candidates))
    events = [candidate.event for candidate in candidates]
    chosen: list[int] = part.pick(
        *ranks_and_keys(candidates), order_of(events), distances(events, part.distance), k
    ).tolist()
    return chosen


@dataclass(frozen=True)
class GreedyCover:
    """Covers of `alpha`, or of the largest alpha that yields k; gains by relevance or by counts."""

    alpha: float | None
    relevant: bool

    def pick(
        self, ranks: Float64s, keys: Float64s, order: TieOrder, matrix: DistanceMatrix, k: int
    ) -> Int64s:
        """Choose from arrays; without an alpha, one cover per distinct distance at worst."""
        if len(ranks) < k:
            return by_rank(keys, order.newest)
        check_dense("maxdivrel" if self.relevant else "disc", len(ranks))
        relevance = Relevance(ranks, rank_places(keys, order.newest), self.relevant)
        members, chosen = np.arange(len(ranks)), np.empty(len(ranks), np.int64)
        if self.alpha is None:
            size = fitting_cover(sorted_neighbours(matrix), relevance, members, k, chosen)
        else:
            size = cover(neighbours_within(matrix, self.alpha), relevance, members, chosen)
        return most_relevant(chosen[:size], relevance.places, k)


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
