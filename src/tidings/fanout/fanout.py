"""Ranks at fan-out: what one event means to each of many subscribers.

An index gives the numbers of the subscriptions that cover an event, or that it touches; records by
these numbers, made beforehand, turn them into a rank for each subscriber.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, Final, Protocol

import numpy as np

from tidings.fanout.graphs import SatisfiedGraph
from tidings.fanout.plainly import OneByOne
from tidings.fanout.specific import MostSpecific
from tidings.fanout.wanted import Wanted, joined
from tidings.fanout.way import Asked, Owner, Way
from tidings.fanout.weighed import HeaviestGroup
from tidings.kernels.weighing import Held
from tidings.model import Event, Subscription
from tidings.policy import Subscriber

NO_PARTS: Final = np.empty(0, np.int32)


class Asks(Protocol):
    """An index whose answers are numbers."""

    def matching_many(self, events: Sequence[Event]) -> Any: ...
    def touching_many(self, events: Sequence[Event]) -> Any: ...


class Numbered(Asks, Protocol):
    """One that tells when they come and go."""

    def listen(self, listener: Any) -> None: ...


class Fanout:
    """Every subscriber's rank of events: exactly what its own scorer says.

    Covers, weights and graphs are found again for a subscriber whose subscriptions or preferences
    have changed, before the next event is ranked.
    """

    def __init__(self, index: Numbered) -> None:
        self._index = index
        self._ways: tuple[Way, ...] = (
            MostSpecific(),
            HeaviestGroup(),
            SatisfiedGraph(),
            OneByOne(partial=False),
            OneByOne(partial=True),
        )
        self._way: dict[str, Way] = {}
        self._users: Counter[Way] = Counter()
        self.names: list[str] = []
        self._number: dict[str, int] = {}
        self._people: dict[str, Subscriber] = {}
        self._owned: dict[str, dict[int, Subscription]] = defaultdict(dict)
        self._owner: dict[int, str] = {}
        self._stale: set[str] = set()
        index.listen(self)

    def came(self, numbers: Sequence[int], subscriptions: Sequence[Subscription]) -> None:
        """Hear of new subscriptions."""
        for number, each in zip(numbers, subscriptions, strict=True):
            self._owned[each.subscriber][number] = each
            self._owner[number] = each.subscriber
            self._stale.add(each.subscriber)

    def went(self, numbers: Sequence[int]) -> None:
        """Hear of subscriptions that are no longer there."""
        for way in self._ways:
            way.clear(numbers)
        for number in numbers:
            owner = self._owner.pop(number)
            del self._owned[owner][number]
            self._stale.add(owner)

    def subscribe(self, subscriber: Subscriber) -> None:
        """Take a subscriber in, or what it has become."""
        if subscriber.id not in self._number:
            self._number[subscriber.id] = len(self.names)
            self.names.append(subscriber.id)
        self._people[subscriber.id] = subscriber
        self._stale.add(subscriber.id)

    def unsubscribe(self, subscriber: str) -> None:
        """Rank for a subscriber no longer; its number stays its own."""
        del self._people[subscriber]
        self._silence(subscriber)

    def rank(self, events: Sequence[Event]) -> Wanted:
        """Rank events for all who want them; subscribers are numbers of `names`."""
        return rank_all(self._index, self.ways(), events)

    def ways(self) -> list[Way]:
        """Give the ways in use, with all that changed laid."""
        self._refresh()
        return [way for way in self._ways if self._users[way]]

    @property
    def nbytes(self) -> int:
        """Bytes of all records."""
        return sum(way.nbytes for way in self._ways)

    def _refresh(self) -> None:
        """Lay what has changed since the last event, way by way."""
        changed = defaultdict[Way, list[Owner]](list)
        for name in sorted(self._stale & self._people.keys()):
            owner = Owner(self._number[name], self._people[name], self._owned[name])
            way = next(each for each in self._ways if each.takes(owner.scorer))
            if self._way.get(name) is not way:
                self._silence(name)
                self._way[name] = way
                self._users[way] += 1
            changed[way].append(owner)
        for way, owners in changed.items():
            way.lay(owners)
        self._stale.clear()

    def _silence(self, subscriber: str) -> None:
        """Take what a subscriber has out of the way that ranked it."""
        way = self._way.pop(subscriber, None)
        if way:
            self._users[way] -= 1
            way.clear(list(self._owned[subscriber]))


def rank_all(index: Asks, ways: Sequence[Way], events: Sequence[Event]) -> Wanted:
    """Rank events in some ways, by what an index finds."""
    asked = {look: _ask(index, events, look) for look in {way.partial for way in ways}}
    found = [way.rank(asked[way.partial]) for way in ways]
    return joined(found) if found else _nothing(len(events))


def _ask(index: Asks, events: Sequence[Event], partial: bool) -> Asked:
    if not partial:
        found = index.matching_many(events)
        held = Held(found.starts, found.numbers, np.empty(0, np.int64), NO_PARTS)
        return Asked(events, held, found.owners)
    holding = index.touching_many(events)
    found = holding.found
    held = Held(found.starts, found.numbers, holding.part_starts, holding.parts)
    return Asked(events, held, found.owners)


def _nothing(events: int) -> Wanted:
    none = np.zeros(1, np.int64)
    return Wanted(np.zeros(events + 1, np.int64), NO_PARTS, np.empty(0), none, NO_PARTS)
