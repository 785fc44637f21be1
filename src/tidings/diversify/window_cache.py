"""Choices from windows that overlap: what was found out about events is kept while they stay."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np

from tidings.compiled.array_types import Int64s
from tidings.diversify.distance import set_divrank
from tidings.diversify.distance_matrix import Submatrix
from tidings.diversify.event_hashes import EventHashes
from tidings.diversify.event_tokens import has_kernel
from tidings.diversify.lsh_incremental import Ilsh
from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.diversify.plain.registry import PLAIN
from tidings.diversify.protocol import Candidate, Diversifier
from tidings.diversify.registry import DIVERSIFIERS
from tidings.diversify.tie_order import order_of, ranks_and_keys
from tidings.model.values import rounded

FEW: Final = 8
"""Up to so many candidates, the plain form is as quick, and no kernel has to be loaded for it."""
MOST: Final = 4_000
"""From more candidates nothing is kept, since the distances of all pairs would take a GB."""
SLACK: Final = 16
"""How many events more than twice the last choice are kept."""
_OURS: Final = frozenset(DIVERSIFIERS.values())


class Keeper(Protocol):
    """The choices of one diversifier over one window, as it moves; identical to `choose`."""

    def choose(self, candidates: Sequence[Candidate], k: int) -> list[int]:
        """Give the indexes of at most k candidates, in order of choice."""

    def divrank(self, candidates: Sequence[Candidate]) -> float:
        """Give sigma * mean rank + (1 - sigma) * div(L) of a set (PREF Def. 10)."""


def keep(part: Diversifier) -> Keeper:
    """Give what a window asks in the place of a diversifier."""
    if type(part) is MaxDivRelLsh:
        return KeptVotes(part)
    if part.name == "none" or type(part) not in _OURS or not has_kernel(part.distance):
        return Anew(part)
    return KeptDistances(part)


class Anew:
    """Keeps nothing: for ranks alone, and for distances that only their makers know."""

    def __init__(self, part: Diversifier) -> None:
        self._part = part

    def choose(self, candidates: Sequence[Candidate], k: int) -> list[int]:
        """Ask the diversifier."""
        return self._part.choose(candidates, k)

    def divrank(self, candidates: Sequence[Candidate]) -> float:
        """Take every distance; none where ranks alone count."""
        if candidates and self._part.sigma == 1:
            return rounded(math.fsum(each.rank for each in candidates) / len(candidates))
        return set_divrank(candidates, self._part.sigma, self._part.distance)


class KeptDistances:
    """Takes the distance of each pair once, when the second of them arrives.

    Events are known by their ids. Those that were not asked for lately are let go.
    """

    def __init__(self, part: Diversifier) -> None:
        self._part = part
        self._crowd = EventHashes(part.distance)
        self._slots: dict[str, int] = {}
        self._apart = np.zeros((0, 0))

    def choose(self, candidates: Sequence[Candidate], k: int) -> list[int]:
        """Choose by the matrix that is kept; O(n) distances for each new candidate."""
        if len(candidates) <= FEW:
            return PLAIN[self._part.name](self._part, candidates, k)
        if len(candidates) > MOST:
            return self._part.choose(candidates, k)
        slots = self._admit(candidates)
        ranks, keys = ranks_and_keys(candidates)
        order = order_of([each.event for each in candidates])
        chosen = self._part.pick(ranks, keys, order, Submatrix(self._apart, slots), k)
        found: list[int] = chosen.tolist()
        return found

    def divrank(self, candidates: Sequence[Candidate]) -> float:
        """Give the divrank of a set by the matrix that is kept."""
        if len(candidates) <= FEW or len(candidates) > MOST:
            return set_divrank(candidates, self._part.sigma, self._part.distance)
        slots, sigma = self._admit(candidates), self._part.sigma
        mean = math.fsum(each.rank for each in candidates) / len(candidates)
        square = self._apart[np.ix_(slots, slots)]
        pairs = square[np.triu_indices(len(slots), 1)].tolist()
        div = math.fsum(pairs) / len(pairs) if pairs else 0.0
        return rounded(sigma * mean + (1 - sigma) * div)

    def _admit(self, candidates: Sequence[Candidate]) -> Int64s:
        """Give the slots of candidates, whose distances are known then."""
        new = [each.event for each in candidates if each.event.id not in self._slots]
        if new and len(self._slots) > 2 * len(candidates) + SLACK:
            self._let_go({each.event.id for each in candidates})
        for event in new:
            others = np.array(list(self._slots.values()), np.int64)
            slot = self._slots[event.id] = self._crowd.add(event)
            self._make_room()
            row = self._crowd.row(slot, others)
            self._apart[slot, others] = self._apart[others, slot] = row
        return np.array([self._slots[each.event.id] for each in candidates], np.int64)

    def _let_go(self, wanted: set[str]) -> None:
        for name in self._slots.keys() - wanted:
            self._crowd.remove(self._slots.pop(name))

    def _make_room(self) -> None:
        size, room = len(self._apart), self._crowd.capacity
        if room > size:
            grown = np.zeros((room, room))
            grown[:size, :size] = self._apart
            self._apart = grown


class KeptVotes:
    """Keeps the buckets of `maxdivrel-lsh` up to date (ILSH): a change touches its own only."""

    def __init__(self, part: MaxDivRelLsh) -> None:
        self._part = part
        self._anew = Anew(part)
        self._clear()

    def choose(self, candidates: Sequence[Candidate], k: int) -> list[int]:
        """Let those who are gone leave, those who are new enter, and ask for the votes."""
        if len(candidates) <= FEW:
            return PLAIN[self._part.name](self._part, candidates, k)
        places = {each.event.id: place for place, each in enumerate(candidates)}
        for name in self._slots.keys() - places.keys():
            self._leave(name)
        new = [each for each in candidates if each.event.id not in self._slots]
        if not all(self._enter(each) for each in new):
            self._clear()
            for each in sorted(candidates, key=lambda one: one.event.id):
                self._enter(each)
        return [places[self._names[slot]] for slot in self._votes.top(k)]

    def divrank(self, candidates: Sequence[Candidate]) -> float:
        """Take every distance."""
        return self._anew.divrank(candidates)

    def _clear(self) -> None:
        self._votes = Ilsh(self._part.shape, self._part.seed)
        self._slots: dict[str, int] = {}
        self._names: list[str] = []
        self._free: list[int] = []
        self._times: dict[str, int] = {}
        self._alike: Counter[int] = Counter()
        self._last: dict[int, tuple[str, int]] = {}

    def _enter(self, candidate: Candidate) -> bool:
        """Let a candidate enter, unless its place among those of its time is before the last.

        Equal times are ordered by id, and numbers are given out in that order.
        """
        event = candidate.event
        last, number = self._last.get(event.published_us, ("", 0))
        if event.id <= last:
            return False
        self._last[event.published_us] = (event.id, number + 1)
        self._times[event.id] = event.published_us
        self._alike[event.published_us] += 1
        slot = self._free.pop() if self._free else len(self._names)
        self._names[slot : slot + 1] = [event.id]
        self._slots[event.id] = slot
        self._votes.enter(slot, event, candidate.key, (event.published_us, number + 1))
        return True

    def _leave(self, name: str) -> None:
        slot = self._slots.pop(name)
        self._votes.expire(slot)
        self._free.append(slot)
        time = self._times.pop(name)
        self._alike[time] -= 1
        if not self._alike[time]:
            del self._alike[time], self._last[time]
