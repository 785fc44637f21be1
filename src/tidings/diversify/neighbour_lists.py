"""Neighbourhoods maintained across windows: MAXDIVREL and DisC that take each distance once."""

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.diversify.covers import CoverDiversifier, most_relevant
from tidings.diversify.hashed_distances import EventHashes
from tidings.diversify.kernels.cover import Neighbourhoods, Relevance, cover
from tidings.diversify.kernels.neighbour_lists import (
    PaddedLists,
    join_lists,
    leave_lists,
    mark_near,
)
from tidings.diversify.protocol import TieOrder
from tidings.diversify.tie_order import by_rank, rank_places
from tidings.errors import InvalidPolicy, TidingsError
from tidings.model.records import Event
from tidings.model.values import rounded


class Neighbours:
    """For each event the list of events within alpha, as events come and go.

    An arrival takes its distances to the others once, O(n); an expiry changes only the lists of its
    neighbours; a choice is one greedy pass over the lists (TKS Alg. 4.1), O(edges).
    """

    def __init__(self, part: CoverDiversifier) -> None:
        if part.alpha is None:
            raise InvalidPolicy("neighbour lists need an alpha")
        self._relevant = part.gains_relevance
        self._alpha, self._hashes = rounded(part.alpha), EventHashes(part.distance)
        self._alive = np.empty(0, np.int64)
        self._lists = PaddedLists(
            np.empty((0, 0), np.int64), np.empty((0, 0)), np.zeros(0, np.int64)
        )

    def __len__(self) -> int:
        return len(self._alive)

    def arrive(self, event: Event) -> int:
        """Add an event and return its slot, which is reused once the event has left."""
        slot = self._hashes.add(event)
        distances = self._hashes.row(slot, self._alive)
        near = np.empty(len(distances), np.bool_)
        mark_near(distances, self._alpha, near)
        neighbours = self._alive[near]
        self._reserve(neighbours)
        join_lists(self._lists, slot, neighbours, distances[near])
        self._alive = np.append(self._alive, slot)
        return slot

    def expire(self, slot: int) -> None:
        """Remove an event."""
        if slot not in self._alive:
            raise TidingsError(f"slot {slot} is free")
        leave_lists(self._lists, slot)
        self._hashes.remove(slot)
        self._alive = self._alive[self._alive != slot]

    def neighbours(self, slot: int) -> dict[int, float]:
        """Return the distance of each neighbour of an event, by slot."""
        ids, distances, counts = self._lists
        size = counts[slot]
        return dict(zip(ids[slot, :size].tolist(), distances[slot, :size].tolist(), strict=True))

    def pick(
        self, slots: Int64s, ranks: Float64s, keys: Float64s, order: TieOrder, k: int
    ) -> Int64s:
        """Choose among slots, whose ranks, keys and order are parallel arrays.

        Returns places in `slots`, as `MaxDivRel.pick` would, without its distances.
        """
        if len(slots) < k:
            return by_rank(keys, order.newest)
        ids, distances, counts = self._lists
        rank, rank_place = np.zeros(len(counts)), np.zeros(len(counts), np.int64)
        rank[slots], rank_place[slots] = ranks, rank_places(keys, order.newest)
        place = np.zeros(len(counts), np.int64)
        place[slots] = np.arange(len(slots))
        starts = np.arange(len(ids)) * ids.shape[1]
        near = Neighbourhoods(starts, counts, ids.ravel(), distances.ravel())
        chosen = np.empty(len(slots), np.int64)
        size = cover(near, Relevance(rank, rank_place, self._relevant), slots, chosen)
        return place[most_relevant(chosen[:size], rank_place, k)]

    def _reserve(self, neighbours: Int64s) -> None:
        """Grow the lists to hold all slots, and one more neighbour for each of `neighbours`."""
        ids, distances, counts = self._lists
        rows, width = ids.shape
        needed = max(len(neighbours), 1 + int(counts[neighbours].max(initial=0)))
        capacity = self._hashes.capacity
        if rows >= capacity and width >= needed:
            return
        shape = (capacity, max(width, 2 * needed if width < needed else 0))
        grown = PaddedLists(
            np.empty(shape, np.int64), np.empty(shape), np.zeros(capacity, np.int64)
        )
        grown.ids[:rows, :width] = ids
        grown.distances[:rows, :width] = distances
        grown.counts[:rows] = counts
        self._lists = grown
