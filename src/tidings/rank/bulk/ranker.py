"""Ranks events for all subscribers at once.

An index returns the numbers of the subscriptions that cover an event, or that it touches. Records
by these numbers, prepared beforehand, turn them into one rank per subscriber: one rank method for
each family of scorers, and Python for user-defined ones.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from tidings.compiled.array_file import Reader, Writer
from tidings.errors import InvalidPolicy
from tidings.index.access.query import FoundHits
from tidings.index.access.snapshot import Listener
from tidings.model.records import Event, Subscription
from tidings.policy import Subscriber
from tidings.rank.bulk.methods import GraphMethod, PreferenceMethod, PythonMethod, RelaxedMethod
from tidings.rank.bulk.protocol import IndexExtent, Owner, RankMethod, RankRequest, Unranked
from tidings.rank.matches import Matches, joined

WRITTEN: Final[dict[str, Any]] = {
    "specific": PreferenceMethod,
    "weighed": RelaxedMethod,
    "graph": GraphMethod,
}
"""The rank methods that files can hold, by their names there."""

SetAside = Callable[[str, Exception], None]
"""Called with a subscriber that is no longer ranked, and the error of its scorer."""
OnFailure = Callable[[Owner, Exception], None]
"""Called with an owner that a rank method cannot take, and the error."""


class HitIndex(Protocol):
    """An index whose answers are columns of numbers."""

    def matching_many(self, events: Sequence[Event]) -> FoundHits: ...
    def touching_many(self, events: Sequence[Event]) -> FoundHits: ...


class ListenedIndex(HitIndex, Protocol):
    """One that also reports when numbers are added and removed."""

    def listen(self, listener: Listener) -> None: ...


class BulkRanker:
    """Ranks events for every subscriber, exactly as its own scorer does.

    Covers, weights and graphs of a subscriber whose subscriptions or preferences changed are
    computed again before the next event is ranked. A subscriber whose scorer fails is set aside: it
    is not ranked until it subscribes again, and `set_aside` is called with the error.
    """

    def __init__(self, index: ListenedIndex, set_aside: SetAside | None = None) -> None:
        self._index = index
        self._on_set_aside = set_aside or _raise
        self._aside: set[str] = set()
        self._python = [PythonMethod(partial=partial) for partial in (False, True)]
        self._methods: tuple[RankMethod, ...] = (
            PreferenceMethod(),
            RelaxedMethod(),
            GraphMethod(),
            *self._python,
        )
        self._method: dict[str, RankMethod] = {}
        self._users: Counter[RankMethod] = Counter()
        self.names: list[str] = []
        """The subscribers by number."""
        self._numbers: dict[str, int] = {}
        self._free: list[int] = []
        self._subscribers: dict[str, Subscriber] = {}
        self._owned: dict[str, dict[int, Subscription]] = {}
        self._owner: dict[int, str] = {}
        self._stale: set[str] = set()
        index.listen(self)

    def on_added(self, numbers: Sequence[int], subscriptions: Sequence[Subscription]) -> None:
        """Handle new subscriptions of the index."""
        owners = [subscription.subscriber for subscription in subscriptions]
        for owner in dict.fromkeys(owners):
            self._owned.setdefault(owner, {})
        for number, owner, subscription in zip(numbers, owners, subscriptions, strict=True):
            self._owned[owner][number] = subscription
        self._owner.update(zip(numbers, owners, strict=True))
        self._stale.update(owners)

    def on_removed(self, numbers: Sequence[int]) -> None:
        """Handle subscriptions that left the index."""
        for method in self._methods:
            method.remove(numbers)
        for number in numbers:
            owner = self._owner.pop(number)
            owned = self._owned[owner]
            del owned[number]
            self._stale.add(owner)
            if not owned:
                del self._owned[owner]
                if owner not in self._subscribers:
                    self._stale.discard(owner)

    def subscribe(self, subscriber: Subscriber) -> None:
        """Add a subscriber, or replace it."""
        if subscriber.id not in self._numbers:
            self._numbers[subscriber.id] = self._next_number(subscriber.id)
        self._subscribers[subscriber.id] = subscriber
        self._stale.add(subscriber.id)
        self._aside.discard(subscriber.id)

    def unsubscribe(self, subscriber: str) -> None:
        """Stop ranking for a subscriber; its number is reused."""
        del self._subscribers[subscriber]
        self._silence(subscriber)
        self._aside.discard(subscriber)
        self._stale.discard(subscriber)
        self._free.append(self._numbers.pop(subscriber))

    def number(self, subscriber: str) -> int | None:
        """Return the number of a subscriber; None if there is none."""
        return self._numbers.get(subscriber)

    def _next_number(self, subscriber: str) -> int:
        if self._free:
            number = self._free.pop()
            self.names[number] = subscriber
            return number
        self.names.append(subscriber)
        return len(self.names) - 1

    def rank(self, events: Sequence[Event], unranked: list[Unranked] | None = None) -> Matches:
        """Return the matches of events; subscribers are numbers of `names`.

        Where `unranked` is a list, failures of scorers are appended to it, and no subscriber is set
        aside.
        """
        self._refresh(falls_back=unranked is not None)
        matches = rank_events(self._index, self._used(), events, unranked)
        for method in self._python:
            for owner, error in [*method.failed.items()]:
                self._set_aside(self.names[owner], error)
        return matches

    def methods(self) -> list[RankMethod]:
        """Return the rank methods in use, with all changes written."""
        self._refresh()
        return self._used()

    def _used(self) -> list[RankMethod]:
        return [method for method in self._methods if self._users[method]]

    @property
    def nbytes(self) -> int:
        """Bytes of all records."""
        return sum(method.nbytes for method in self._methods)

    def _refresh(self, *, falls_back: bool = False) -> None:
        """Write the changes since the last event, method by method.

        An owner that a method cannot take is set aside. With `falls_back`, Python ranks it instead:
        if its scorer fails there as well, then for each of its matches.
        """
        on_failure = self._fall_back if falls_back else self._set_owner_aside
        changed = defaultdict[RankMethod, list[Owner]](list)
        for name in sorted((self._stale & self._subscribers.keys()) - self._aside):
            subscriber = self._subscribers[name]
            owner = Owner(self._numbers[name], subscriber, self._owned.get(name, {}))
            method = next(method for method in self._methods if method.supports(owner.scorer))
            if self._method.get(name) is not method:
                self._silence(name)
                self._method[name] = method
                self._users[method] += 1
            changed[method].append(owner)
        for method, owners in changed.items():
            self._update(method, owners, on_failure)
        self._stale.clear()

    def _update(self, method: RankMethod, owners: list[Owner], on_failure: OnFailure) -> None:
        """Write owners together; if that fails, one by one, to find the one that caused it."""
        try:
            method.update(owners)
        except Exception as error:  # noqa: BLE001 - a scorer may call any function of a user
            if len(owners) == 1:
                on_failure(owners[0], error)
            else:
                for owner in owners:
                    self._update(method, [owner], on_failure)

    def _fall_back(self, owner: Owner, error: Exception) -> None:
        if isinstance(error, MemoryError):
            raise error
        name = owner.subscriber.id
        self._silence(name)
        self._method[name] = self._python[owner.scorer.partial]
        self._users[self._method[name]] += 1
        self._method[name].update([owner])

    def ignore(self, subscriber: str) -> None:
        """Rank no more for a subscriber whose scorer has failed, until it subscribes again."""
        self._aside.add(subscriber)
        self._silence(subscriber)

    def _set_owner_aside(self, owner: Owner, error: Exception) -> None:
        self._set_aside(owner.subscriber.id, error)

    def _set_aside(self, subscriber: str, error: Exception) -> None:
        self.ignore(subscriber)
        self._on_set_aside(subscriber, error)

    def _silence(self, subscriber: str) -> None:
        """Remove a subscriber from the method that ranked it."""
        method = self._method.pop(subscriber, None)
        if method:
            self._users[method] -= 1
            method.remove(list(self._owned.get(subscriber, ())))
            method.forget(self._numbers[subscriber])


def _raise(_subscriber: str, error: Exception) -> None:
    raise error


def rank_events(
    index: HitIndex,
    methods: Sequence[RankMethod],
    events: Sequence[Event],
    unranked: list[Unranked] | None = None,
) -> Matches:
    """Return the matches that some rank methods make of the hits of an index."""
    requests = {}
    for partial in {method.partial for method in methods}:
        hits, table = index.touching_many(events) if partial else index.matching_many(events)
        requests[partial] = RankRequest(events, hits, table, unranked)
    parts = [method.rank(requests[method.partial]) for method in methods]
    return joined(parts) if parts else Matches.empty(len(events))


def write_methods(
    writer: Writer, methods: Sequence[RankMethod], subscriptions: int, owners: int
) -> None:
    """Write the records of rank methods to a file, for this many subscriptions and owners."""
    names = {kind: name for name, kind in WRITTEN.items()}
    for method in methods:
        if type(method) not in names:
            raise InvalidPolicy(
                f"{type(method).__name__} ranks by Python functions, which a file cannot hold"
            )
        written: Any = method
        written.write(writer.within(names[type(method)]), subscriptions, owners)
    writer.value("names", [names[type(method)] for method in methods])


def read_methods(reader: Reader, extent: IndexExtent) -> list[RankMethod]:
    """Return the rank methods of a file; each occurs at most once."""
    names = reader.value("names")
    right = isinstance(names, list) and all(isinstance(name, str) for name in names)
    right = right and {*names} <= WRITTEN.keys() and len({*names}) == len(names)
    reader.require(right, "names", f"are not among {', '.join(WRITTEN)}")
    return [WRITTEN[name].read(reader.within(name), extent) for name in names]
