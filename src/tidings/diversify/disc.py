"""Choosing by neighbourhoods (TKS Def. 4.2.8 and 4.2.9): dissimilar to each other, near to all.

The chosen are independent (more than alpha apart) and dominating (every candidate is within alpha
of a chosen one).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.diversify.distance import Overlap, read_distance
from tidings.diversify.distance_matrix import Apart, among, distances
from tidings.diversify.event_tokens import starting
from tidings.diversify.kernels.cover import Near, count_near, cover, fitting_cover, list_near
from tidings.diversify.memory_limits import check_dense
from tidings.diversify.protocol import Candidate, Diversifier, Order
from tidings.diversify.tie_order import best_places, by_rank, order_of, ranks_and_keys
from tidings.model import validate
from tidings.model.values import rounded


@dataclass(frozen=True)
class Disc:
    """DisC diversity: always the candidate with the most uncovered neighbours.

    Without an alpha, the largest that still yields k.
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

    def pick(self, ranks: Float64s, keys: Float64s, order: Order, apart: Apart, k: int) -> Int64s:
        return Covering(self.alpha, relevant=False).pick(ranks, keys, order, apart, k)


def check_alpha(alpha: float | None) -> None:
    """Check the radius of a neighbourhood: above 0, or left open."""
    if alpha is not None:
        validate.positive("alpha", alpha)


def choose_cover(part: Diversifier, candidates: Sequence[Candidate], k: int) -> list[int]:
    """Cover all candidates, then keep the k most relevant of the cover; O(n²) distances."""
    check_dense(part.name, len(candidates))
    events = [each.event for each in candidates]
    found = part.pick(
        *ranks_and_keys(candidates), order_of(events), distances(events, part.distance), k
    )
    chosen: list[int] = found.tolist()
    return chosen


@dataclass(frozen=True)
class Covering:
    """Choose by covers of `alpha`, or of the largest that yields k; by relevance or by counts."""

    alpha: float | None
    relevant: bool

    def pick(self, ranks: Float64s, keys: Float64s, order: Order, apart: Apart, k: int) -> Int64s:
        """Choose from arrays; without an alpha, a cover for each different distance at worst."""
        if len(ranks) < k:
            return by_rank(keys, order.newest)
        check_dense("maxdivrel" if self.relevant else "disc", len(ranks))
        worth = (ranks, best_places(keys, order.newest), self.relevant)
        members, chosen = np.arange(len(ranks)), np.empty(len(ranks), np.int64)
        if self.alpha is None:
            size = fitting_cover(sorted_near(apart), worth, members, k, chosen)
        else:
            size = cover(near_within(apart, self.alpha), worth, members, chosen)
        return most_relevant(chosen[:size], worth[1], k)


def near_within(apart: Apart, alpha: float) -> Near:
    """List for each candidate the others within alpha."""
    matrix, members = among(apart)
    counts = np.empty(len(members), np.int64)
    count_near(matrix, members, rounded(alpha), counts)
    starts = starting(counts)
    near = (starts[:-1].copy(), counts, np.empty(starts[-1], np.int64), np.empty(starts[-1]))
    list_near(matrix, members, rounded(alpha), near)
    return near


def sorted_near(apart: Apart) -> Near:
    """List for each candidate all others, the nearest first."""
    matrix, members = among(apart)
    square = matrix[np.ix_(members, members)]
    count = len(members)
    np.fill_diagonal(square, np.inf)  # itself, sorted behind the others
    ids = np.argsort(square, axis=1, kind="stable")
    away = np.take_along_axis(square, ids, axis=1)
    starts, counts = np.arange(count) * count, np.full(count, count - 1)
    return (starts, counts, ids.ravel(), away.ravel())


def most_relevant(chosen: Int64s, best: Int64s, k: int) -> Int64s:
    """Keep the k chosen of highest rank, in order of choice."""
    if len(chosen) <= k:
        return chosen
    limit = np.sort(best[chosen])[k - 1]
    kept: Int64s = chosen[best[chosen] <= limit]
    return kept
