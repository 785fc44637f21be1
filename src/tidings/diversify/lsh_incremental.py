"""MAXDIVREL by hashing, incrementally (ILSH, TKS 5.2.6): the answer of BLSH, kept up to date."""

import numpy as np

from tidings.compiled.array_types import Int64s, UInt64s
from tidings.diversify.event_tokens import token_hashes
from tidings.diversify.kernels.lsh_incremental import State, arrive, enter, expire, top_voted
from tidings.diversify.kernels.skew_heap import Heap
from tidings.diversify.maxdivrel_lsh import salts
from tidings.errors import TidingsError
from tidings.model.records import Event


class Ilsh:
    """The buckets of L tables over a window whose events come and go.

    Events are known by slots, numbers from 0 that their owner gives out and uses again. An arrival
    or an expiry touches its own L buckets, O(L log n) amortised; `top` is O(k log k). Keys of
    freshness never change as time passes, so nothing is ever rescored.
    """

    def __init__(self, shape: tuple[int, int], seed: int = 0, room: int = 64) -> None:
        tables, rows = shape
        self._tables, self._room, self._alive = tables, room, set[int]()
        self._salts = (salts(tables * rows, seed), salts(tables, 0))
        self._state = _state(tables, room)

    def __len__(self) -> int:
        return len(self._alive)

    def arrive(self, slot: int, bands: UInt64s, key: float, order: tuple[int, int]) -> None:
        """Add an event by its L bands and the key that ranks it.

        `order` decides between equal keys: the publication time, newer first, and a number, smaller
        first, that may be any among events of different times.
        """
        self._take(slot, key, order)
        self._state[2][slot] = bands
        arrive(self._state, slot)

    def enter(self, slot: int, event: Event, key: float, order: tuple[int, int]) -> None:
        """Add an event, whose bands are found on the way; otherwise as `arrive`."""
        self._take(slot, key, order)
        enter(self._state, slot, token_hashes(event), self._salts)

    def _take(self, slot: int, key: float, order: tuple[int, int]) -> None:
        if slot in self._alive:
            raise TidingsError(f"slot {slot} is taken")
        if slot >= self._room:
            self._grow(slot + 1)
        keys, times, names = self._state[4]
        keys[slot] = key
        times[slot], names[slot] = order
        self._alive.add(slot)

    def expire(self, slot: int) -> None:
        """Take an event out."""
        if slot not in self._alive:
            raise TidingsError(f"slot {slot} is free")
        self._alive.remove(slot)
        expire(self._state, slot)

    def top(self, k: int) -> list[int]:
        """Give the k slots of most votes, then higher key, then newer; all, if fewer than k."""
        _, _, _, votes, (keys, times, names) = self._state
        if len(self._alive) < k:
            slots = np.array(sorted(self._alive), np.int64)
            ordered = slots[np.lexsort((names[slots], -times[slots], -keys[slots]))]
        else:
            chosen = np.empty(k, np.int64)
            size = top_voted(votes, self._state[4], chosen, np.empty(k + 2, np.int64))
            ordered = chosen[:size]
        found: list[int] = ordered.tolist()
        return found

    def votes(self, slot: int) -> int:
        """Give how many buckets an event has won."""
        return int(self._state[3][0][slot])

    @property
    def buckets(self) -> int:
        """How many buckets hold an event."""
        return int(np.count_nonzero(self._state[0][1] >= 0))

    def _grow(self, wanted: int) -> None:
        """Make room for twice as many slots; who is there arrives again."""
        _, _, bands, _, rank = self._state
        self._room = max(wanted, 2 * self._room)
        self._state = _state(self._tables, self._room)
        _, _, own, _, ranks = self._state
        for before, after in zip((bands, *rank), (own, *ranks), strict=True):
            after[: len(before)] = before
        for slot in sorted(self._alive):
            arrive(self._state, slot)


def _state(tables: int, room: int) -> State:
    size = 16
    while size < 2 * room * tables:
        size *= 2
    votes = (np.zeros(room, np.int64), _free(tables + 1), _heap(room))
    rank = (np.zeros(room), np.zeros(room, np.int64), np.zeros(room, np.int64))
    table = (np.zeros(size, np.uint64), _free(size))
    return (table, _heap(room * tables), np.zeros((room, tables), np.uint64), votes, rank)


def _heap(size: int) -> Heap:
    return np.full((size, 3), -1, np.int64)


def _free(size: int) -> Int64s:
    return np.full(size, -1, np.int64)
