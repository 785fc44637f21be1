"""Neighbourhoods kept across windows: MAXDIVREL and DisC without taking a distance twice."""

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.diversify.disc import Disc, most_relevant
from tidings.diversify.event_hashes import Crowd
from tidings.diversify.kernels.cover import cover
from tidings.diversify.kernels.neighbour_lists import join_lists, leave_lists, mark_near
from tidings.diversify.maxdivrel import MaxDivRel
from tidings.diversify.protocol import Order
from tidings.diversify.tie_order import best_places, by_rank
from tidings.errors import InvalidPolicy, TidingsError
from tidings.model.records import Event
from tidings.model.values import rounded


class Neighbours:
    """The lists of who is within alpha of whom, as events come and go.

    An arrival takes its distances to the others once, O(n); an expiry touches its neighbours'
    lists only; a choice is one greedy pass over the lists (TKS Alg. 4.1), O(edges).
    """

    def __init__(self, part: MaxDivRel | Disc) -> None:
        if part.alpha is None:
            raise InvalidPolicy("neighbourhoods that are kept need an alpha")
        self._relevant = part.name == "maxdivrel"
        self._alpha, self._crowd = rounded(part.alpha), Crowd(part.distance)
        self._alive = np.empty(0, np.int64)
        self._lists = (np.empty((0, 0), np.int64), np.empty((0, 0)))
        self._counts = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._alive)

    def arrive(self, event: Event) -> int:
        """Take an event in; give its slot, which is used again when the event has left."""
        slot = self._crowd.add(event)
        apart = self._crowd.row(slot, self._alive)
        near = np.empty(len(apart), np.bool_)
        mark_near(apart, self._alpha, near)
        others = self._alive[near]
        self._make_room(others)
        join_lists((*self._lists, self._counts), slot, others, apart[near])
        self._alive = np.append(self._alive, slot)
        return slot

    def expire(self, slot: int) -> None:
        """Let an event go."""
        if slot not in self._alive:
            raise TidingsError(f"slot {slot} is free")
        leave_lists((*self._lists, self._counts), slot)
        self._crowd.remove(slot)
        self._alive = self._alive[self._alive != slot]

    def neighbours(self, slot: int) -> dict[int, float]:
        """Give who is near an event, and how far away."""
        size = self._counts[slot]
        ids, apart = (each[slot, :size].tolist() for each in self._lists)
        return dict(zip(ids, apart, strict=True))

    def pick(self, slots: Int64s, ranks: Float64s, keys: Float64s, order: Order, k: int) -> Int64s:
        """Choose among the given slots, whose ranks, keys and order stand in the same order.

        Gives places in `slots`, as `MaxDivRel.pick` would, without its distances.
        """
        if len(slots) < k:
            return by_rank(keys, order.newest)
        rank, best, place = (np.zeros(len(self._counts), each) for each in ("f8", "i8", "i8"))
        rank[slots], best[slots] = ranks, best_places(keys, order.newest)
        place[slots] = np.arange(len(slots))
        ids, apart = self._lists
        starts = np.arange(len(ids)) * ids.shape[1]
        near = (starts, self._counts, ids.ravel(), apart.ravel())
        chosen = np.empty(len(slots), np.int64)
        size = cover(near, (rank, best, self._relevant), slots, chosen)
        return place[most_relevant(chosen[:size], best, k)]

    def _make_room(self, others: Int64s) -> None:
        """Grow with the crowd, and see that a new one fits into its neighbours' lists."""
        rows, width = self._lists[0].shape
        wanted = max(len(others), 1 + int(self._counts[others].max(initial=0)))
        if rows >= self._crowd.room and width >= wanted:
            return
        shape = (self._crowd.room, max(width, 2 * wanted if width < wanted else 0))
        grown = (np.empty(shape, np.int64), np.empty(shape))
        for before, after in zip(self._lists, grown, strict=True):
            after[:rows, :width] = before
        counts = np.zeros(self._crowd.room, np.int64)
        counts[:rows] = self._counts
        self._lists, self._counts = grown, counts
