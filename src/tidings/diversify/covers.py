"""Diversity by covers: DisC (TKS Def. 4.2.8 and 4.2.9) and MAXDIVREL (TKS Alg. 4.1).

The chosen are independent (more than alpha apart) and dominating (every candidate is within alpha
of a chosen one).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, ClassVar, Final

import numpy as np

from tidings.compiled.array_types import AnyArray, Float64s, Int64s
from tidings.diversify.distance import Overlap, read_distance
from tidings.diversify.hashed_distances import (
    DistanceMatrix,
    HashRows,
    as_submatrix,
    distances,
    has_kernel,
    hash_events,
    inverted_lists,
)
from tidings.diversify.kernels.cover import Relevance
from tidings.diversify.kernels.dense_cover import cover_within, fitting_dense_cover
from tidings.diversify.kernels.sparse_cover import (
    MOST_KEYS,
    count_shared_pairs,
    level_cover,
    near_cover_within,
)
from tidings.diversify.memory_limits import check_dense
from tidings.diversify.protocol import Candidate, TieOrder
from tidings.diversify.tie_order import (
    by_rank,
    newest_first,
    order_of,
    rank_places,
    ranks_and_keys,
)
from tidings.model import validate
from tidings.model.values import rounded

LEAST: Final = 64
"""Fewer candidates are chosen from a matrix, which takes as long."""
SHARED: Final = 1.0
"""Lists pay while rows meet less often in them than this share of a matrix has cells."""

SMALLEST: Final = 1e-290
"""A smaller rank may vanish when it is multiplied by a distance, but not in a sum of ranks."""


@dataclass(frozen=True)
class CoverDiversifier:
    """Greedy covers, cut to the k most relevant; subclasses define the gain of a candidate.

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
        events = [*map(attrgetter("event"), candidates)]
        ranks, keys = ranks_and_keys(candidates)
        if len(events) >= max(k, LEAST) and has_kernel(self.distance):
            rows = hash_events(events, self.distance)
            places = rank_places(keys, newest_first(events))
            relevance = Relevance(ranks, places, self.gains_relevance)
            chosen = np.empty(len(ranks), np.int64)
            size = self._cover_rows(rows, relevance, k, chosen)
            if size >= 0:
                return most_relevant(chosen[:size], places, k).tolist()  # type: ignore[no-any-return]
        matrix = distances(events, self.distance)
        return self.pick(ranks, keys, order_of(events), matrix, k).tolist()  # type: ignore[no-any-return]

    def _cover_rows(self, rows: HashRows, relevance: Relevance, k: int, chosen: Int64s) -> int:
        """Choose without distances; return how many, or -1 if a matrix of distances is due."""
        sizes = np.diff(rows.starts)
        if len(rows.weights) or sizes.max() > MOST_KEYS:
            return -1
        alpha = -1.0 if self.alpha is None else rounded(self.alpha)
        lists: tuple[AnyArray, ...] = (*inverted_lists(rows),)
        # Events without attributes share none, and yet they are near one another.
        if 0.0 <= alpha < 1.0 and sizes.all():
            pairs = count_shared_pairs(lists)
            if pairs <= SHARED * len(sizes) ** 2:
                return near_cover_within(lists, relevance, alpha, chosen)
        small = relevance.by_rank and ((ranks := relevance.ranks) > 0.0) & (ranks < SMALLEST)
        return -1 if np.any(small) else level_cover(lists, relevance, alpha, k, chosen)

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
    relevant: Int64s = chosen[places[chosen] <= limit]
    return relevant
