"""Ranks at fan-out: what one event means to each of many subscribers.

An index gives the numbers of the subscriptions that cover an event, or that it touches; records by
these numbers, made beforehand, turn them into a rank for each subscriber.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import numpy as np

from tidings.model.records import Event, Subscription
from tidings.policy import Subscriber
from tidings.rank.bulk.graph_ranker import SatisfiedGraph
from tidings.rank.bulk.kernels.relaxed import Held
from tidings.rank.bulk.preference_ranker import MostSpecific
from tidings.rank.bulk.protocol import Asked, Owner, Unranked, Way
from tidings.rank.bulk.python_ranker import OneByOne
from tidings.rank.bulk.relaxed_ranker import HeaviestGroup
from tidings.rank.matches import Matches, joined

NO_PARTS: Final = np.empty(0, np.int32)
SetAside = Callable[[str, Exception], None]
"""What is called with a subscriber that is ranked for no longer, and with the reason."""
Otherwise = Callable[[Owner, Exception], None]
"""What is called with an owner that cannot be laid, and with the reason."""


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
    have changed, before the next event is ranked. A subscriber whose scorer fails is set aside: it
    is not ranked for until it is subscribed anew, and `set_aside` is called with the error.
    """

    def __init__(self, index: Numbered, set_aside: SetAside | None = None) -> None:
        self._index = index
        self._tell = set_aside or _raise
        self._aside: set[str] = set()
        self._one_by_one = [OneByOne(partial=partial) for partial in (False, True)]
        self._ways: tuple[Way, ...] = (
            MostSpecific(),
            HeaviestGroup(),
            SatisfiedGraph(),
            *self._one_by_one,
        )
        self._way: dict[str, Way] = {}
        self._users: Counter[Way] = Counter()
        self.names: list[str] = []
        self._number: dict[str, int] = {}
        self._free: list[int] = []
        self._people: dict[str, Subscriber] = {}
        self._owned: dict[str, dict[int, Subscription]] = {}
        self._owner: dict[int, str] = {}
        self._stale: set[str] = set()
        index.listen(self)

    def came(self, numbers: Sequence[int], subscriptions: Sequence[Subscription]) -> None:
        """Hear of new subscriptions."""
        for number, each in zip(numbers, subscriptions, strict=True):
            self._owned.setdefault(each.subscriber, {})[number] = each
            self._owner[number] = each.subscriber
            self._stale.add(each.subscriber)

    def went(self, numbers: Sequence[int]) -> None:
        """Hear of subscriptions that are no longer there."""
        for way in self._ways:
            way.clear(numbers)
        for number in numbers:
            owner = self._owner.pop(number)
            owned = self._owned[owner]
            del owned[number]
            self._stale.add(owner)
            if not owned:
                del self._owned[owner]
                if owner not in self._people:
                    self._stale.discard(owner)

    def subscribe(self, subscriber: Subscriber) -> None:
        """Take a subscriber in, or what it has become."""
        if subscriber.id not in self._number:
            self._number[subscriber.id] = self._next(subscriber.id)
        self._people[subscriber.id] = subscriber
        self._stale.add(subscriber.id)
        self._aside.discard(subscriber.id)

    def unsubscribe(self, subscriber: str) -> None:
        """Stop ranking for a subscriber; its number is given to one who comes later."""
        del self._people[subscriber]
        self._silence(subscriber)
        self._aside.discard(subscriber)
        self._stale.discard(subscriber)
        self._free.append(self._number.pop(subscriber))

    def number(self, subscriber: str) -> int | None:
        """Return the number of a subscriber, while it is there."""
        return self._number.get(subscriber)

    def _next(self, subscriber: str) -> int:
        if self._free:
            number = self._free.pop()
            self.names[number] = subscriber
            return number
        self.names.append(subscriber)
        return len(self.names) - 1

    def rank(self, events: Sequence[Event], unranked: list[Unranked] | None = None) -> Matches:
        """Rank events for all who want them; subscribers are numbers of `names`.

        Where `unranked` is given, a scorer that fails is noted there, and nobody is set aside.
        """
        self._refresh(falls_back=unranked is not None)
        found = rank_all(self._index, self._used(), events, unranked)
        for way in self._one_by_one:
            for owner, error in [*way.failed.items()]:
                self._set_aside(self.names[owner], error)
        return found

    def ways(self) -> list[Way]:
        """Give the ways in use, with all that changed laid."""
        self._refresh()
        return self._used()

    def _used(self) -> list[Way]:
        return [way for way in self._ways if self._users[way]]

    @property
    def nbytes(self) -> int:
        """Bytes of all records."""
        return sum(way.nbytes for way in self._ways)

    def _refresh(self, *, falls_back: bool = False) -> None:
        """Lay what has changed since the last event, way by way.

        An owner that cannot be laid is set aside. If it falls back, it is asked one by one instead:
        if its scorer fails there as well, then for each of its matches.
        """
        otherwise = self._fall_back if falls_back else self._set_owner_aside
        changed = defaultdict[Way, list[Owner]](list)
        for name in sorted((self._stale & self._people.keys()) - self._aside):
            owner = Owner(self._number[name], self._people[name], self._owned.get(name, {}))
            way = next(each for each in self._ways if each.takes(owner.scorer))
            if self._way.get(name) is not way:
                self._silence(name)
                self._way[name] = way
                self._users[way] += 1
            changed[way].append(owner)
        for way, owners in changed.items():
            self._lay(way, owners, otherwise)
        self._stale.clear()

    def _lay(self, way: Way, owners: list[Owner], otherwise: Otherwise) -> None:
        """Lay owners together; if that fails, one by one, to find the one that it is about."""
        try:
            way.lay(owners)
        except Exception as error:  # noqa: BLE001 - a scorer may call any function of a user
            if len(owners) == 1:
                otherwise(owners[0], error)
            else:
                for owner in owners:
                    self._lay(way, [owner], otherwise)

    def _fall_back(self, owner: Owner, error: Exception) -> None:
        if isinstance(error, MemoryError):
            raise error
        name = owner.subscriber.id
        self._silence(name)
        self._way[name] = self._one_by_one[owner.scorer.partial]
        self._users[self._way[name]] += 1
        self._way[name].lay([owner])

    def _set_owner_aside(self, owner: Owner, error: Exception) -> None:
        self._set_aside(owner.subscriber.id, error)

    def _set_aside(self, subscriber: str, error: Exception) -> None:
        self._aside.add(subscriber)
        self._silence(subscriber)
        self._tell(subscriber, error)

    def _silence(self, subscriber: str) -> None:
        """Take what a subscriber has out of the way that ranked it."""
        way = self._way.pop(subscriber, None)
        if way:
            self._users[way] -= 1
            way.clear(list(self._owned.get(subscriber, ())))
            way.forget(self._number[subscriber])


def _raise(_subscriber: str, error: Exception) -> None:
    raise error


def rank_all(
    index: Asks,
    ways: Sequence[Way],
    events: Sequence[Event],
    unranked: list[Unranked] | None = None,
) -> Matches:
    """Rank events in some ways, by what an index finds."""
    asked = {
        look: _ask(index, events, look)._replace(unranked=unranked)
        for look in {way.partial for way in ways}
    }
    found = [way.rank(asked[way.partial]) for way in ways]
    return joined(found) if found else Matches.empty(len(events))


def _ask(index: Asks, events: Sequence[Event], partial: bool) -> Asked:
    if not partial:
        found = index.matching_many(events)
        held = Held(found.starts, found.numbers, np.empty(0, np.int64), NO_PARTS)
        return Asked(events, held, found.owners)
    holding = index.touching_many(events)
    found = holding.found
    held = Held(found.starts, found.numbers, holding.part_starts, holding.parts)
    return Asked(events, held, found.owners)
