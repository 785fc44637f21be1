"""The set of largest divrank (PREF Def. 10 and 11): the optimum that the heuristics aim at."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.diversify.distance import Overlap, read_distance
from tidings.diversify.greedy import MaxSum
from tidings.diversify.hashed_distances import DistanceMatrix, as_submatrix, distances
from tidings.diversify.kernels.optimal import BestSet, SetProblem, best_set
from tidings.diversify.memory_limits import check_dense, check_sets
from tidings.diversify.protocol import Candidate, TieOrder
from tidings.diversify.tie_order import by_rank, order_of, ranks_and_keys
from tidings.model import validate
from tidings.model.limits import TRUSTED


@dataclass(frozen=True)
class Optimal:
    """All sets of k except those that a bound rules out; for windows of some dozens.

    A choice from more than `most_sets` sets is refused.
    """

    sigma: float = 0.5
    distance: Any = Overlap()
    name: ClassVar[str] = "optimal"
    most_sets: ClassVar[int] = TRUSTED.optimal_sets

    def __post_init__(self) -> None:
        validate.number("sigma", self.sigma, high=1)
        read_distance(self)

    def bounded(self, most_sets: int) -> "Optimal":
        """Return the same diversifier with another bound on the sets of one choice."""
        if most_sets == self.most_sets:
            return self
        part = copy(self)
        object.__setattr__(part, "most_sets", most_sets)
        return part

    def choose(self, candidates: Sequence[Candidate], k: int) -> list[int]:
        check_sets(len(candidates), k, self.most_sets)
        check_dense(self.name, len(candidates))
        events = [candidate.event for candidate in candidates]
        ranks, keys = ranks_and_keys(candidates)
        matrix = distances(events, self.distance)
        chosen: list[int] = self.pick(ranks, keys, order_of(events), matrix, k).tolist()
        return chosen

    def pick(
        self, ranks: Float64s, keys: Float64s, order: TieOrder, matrix: DistanceMatrix, k: int
    ) -> Int64s:
        """Choose from arrays; at worst n over k sets, of which the bound leaves few."""
        if len(ranks) <= k:
            return by_rank(keys, order.newest)
        check_sets(len(ranks), k, self.most_sets)
        members = self._best_members(ranks, keys, order, matrix, k)
        return members[by_rank(keys[members], order.newest[members])]

    def _best_members(
        self, ranks: Float64s, keys: Float64s, order: TieOrder, matrix: DistanceMatrix, k: int
    ) -> Int64s:
        """Sort by `newest`, as the kernel expects, and start it from a greedy set."""
        newest = np.argsort(order.newest)
        whole, members = as_submatrix(matrix)
        square = whole[np.ix_(members[newest], members[newest])]
        ties = order.take(newest)
        ties = ties._replace(times=ties.times - ties.times.min())  # keeps sums of k within int64
        greedy = MaxSum(self.sigma).pick(ranks[newest], keys[newest], ties, square, k)
        best = BestSet(np.sort(greedy), np.empty(1))
        problem = SetProblem(square, ranks[newest], float(self.sigma))
        best_set(problem, ties, self._contributions(square, ranks[newest], k), best)
        return newest[best.members]

    def _contributions(self, square: Float64s, ranks: Float64s, k: int) -> Float64s:
        """Bound what each candidate adds: its rank and half of its m largest distances, m < k."""
        largest = -np.sort(-square, axis=1)[:, : k - 1]
        sums = np.concatenate((np.zeros((len(ranks), 1)), np.cumsum(largest, axis=1)), axis=1)
        pairs = max(k * (k - 1) // 2, 1)
        most = self.sigma * ranks[:, None] / k + (1 - self.sigma) * sums / (2 * pairs)
        return np.ascontiguousarray(most.T)
