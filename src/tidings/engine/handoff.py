"""From events in order to what feeds deliver because of them: match, score, offer."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from tidings.compiled.array_types import Int32s
from tidings.engine.quality import Quality
from tidings.feed import Feeds
from tidings.feed.columnar.feeds import TableFeeds
from tidings.index.access import Access
from tidings.model.records import Delivery, Event, Subscription
from tidings.rank.bulk import Fanout
from tidings.rank.matcher import Matcher
from tidings.rank.matches import Matches
from tidings.window import Moment


class Step(NamedTuple):
    """The stream goes on to a moment, by an event or without one."""

    event: Event | None
    now: Moment


class Courier(Protocol):
    """Carries events from the matcher to the feeds; the ways differ, the deliveries do not."""

    def match(self, events: Sequence[Event]) -> "Matched":
        """Match events at once; no feed changes."""

    def forget(self, subscriber: str) -> None:
        """Forget a subscriber that is about to leave."""


class Matched(Protocol):
    """Events that were matched, to be offered in their order."""

    def offer(self, at: int, now: Moment) -> list[Delivery]:
        """Offer the event at a place to the feeds, and return what they deliver at once."""


def courier(matcher: Matcher, feeds: Feeds, quality: Quality) -> Courier:
    """Give the way between a matcher and feeds: arrays, if both have numbers."""
    if isinstance(feeds, TableFeeds) and matcher.numbered is not None:
        return ArrayCourier(*matcher.numbered, feeds, quality)
    return PlainCourier(matcher, feeds, quality)


class PlainCourier:
    """Makes an object for each match."""

    def __init__(self, matcher: Matcher, feeds: Feeds, quality: Quality) -> None:
        self._matcher, self._feeds, self._quality = matcher, feeds, quality

    def match(self, events: Sequence[Event]) -> Matched:
        """Return the events as they are; each is matched when it is offered."""
        return PlainMatched(self, events)

    def offer(self, event: Event, now: Moment) -> list[Delivery]:
        """Match one event and offer it."""
        matches = self._matcher.matches(event)
        self._quality.matched(matches)
        return self._feeds.offer_many([(match, now) for match in matches])

    def forget(self, subscriber: str) -> None:
        """Keep nothing of subscribers."""


class ArrayCourier:
    """Hands arrays from the fan-out to the table; only deliveries become objects.

    The two number subscribers and subscriptions each in its own way.
    """

    def __init__(self, index: Access, fanout: Fanout, feeds: TableFeeds, quality: Quality) -> None:
        self._fanout, self._feeds, self._quality = fanout, feeds, quality
        self._people = np.full(64, -1, np.int32)
        self._subscriptions = np.full(64, -1, np.int32)
        self._ids = [""] * 64
        index.listen(self)

    def came(self, numbers: Sequence[int], subscriptions: Sequence[Subscription]) -> None:
        """Hear of new subscriptions; the feeds get to know them when they match."""
        size = max(numbers, default=-1) + 1
        if size > len(self._ids):
            self._subscriptions = _longer(self._subscriptions, size)
            self._ids += [""] * (len(self._subscriptions) - len(self._ids))
        for number, each in zip(numbers, subscriptions, strict=True):
            self._ids[number] = each.id

    def went(self, numbers: Sequence[int]) -> None:
        """Hear of subscriptions that are gone: the feeds may forget them."""
        for called in self._subscriptions[numbers].tolist():
            if called >= 0:
                self._feeds.tables.matched.let_go(called)
        self._subscriptions[numbers] = -1
        for number in numbers:
            self._ids[number] = ""

    def forget(self, subscriber: str) -> None:
        """Forget the number that the feeds have for a subscriber, which is about to leave."""
        number = self._fanout.number(subscriber)
        if number is not None and number < len(self._people):
            self._people[number] = -1

    def match(self, events: Sequence[Event]) -> Matched:
        """Match all events in compiled passes."""
        return ArrayMatched(self, events, self._fanout.rank(events))

    def offer(self, wanted: Matches, at: int, event: Event, now: Moment) -> list[Delivery]:
        """Offer the event at a place of what is wanted."""
        matches = wanted.of_event(at)
        if not len(matches.ranks):
            return []
        matches = matches._replace(
            subscribers=self._named(matches.subscribers), matched=self._called(matches.matched)
        )
        slots, sequences = np.array([self._feeds.slot(event)]), np.array([now.sequence])
        self._quality.matched_rows(matches.ranks)
        made = self._feeds.offer_matches(matches, slots, sequences).objects()
        return sorted(made, key=lambda delivery: delivery.subscriber)

    def _named(self, owners: Int32s) -> Int32s:
        """Give the feeds' numbers of people."""
        if len(self._fanout.names) > len(self._people):
            self._people = _longer(self._people, len(self._fanout.names))
        for owner in owners[self._people[owners] < 0].tolist():
            self._people[owner] = self._feeds.number(self._fanout.names[owner])
        return self._people[owners]

    def _called(self, matched: Int32s) -> Int32s:
        """Give the feeds' numbers of subscriptions, held from the first match on."""
        new = np.unique(matched[self._subscriptions[matched] < 0]).tolist()
        for number in new:
            self._subscriptions[number] = self._feeds.tables.matched.hold(self._ids[number])
        self._quality.wanted(self._ids[number] for number in new)
        return self._subscriptions[matched]


class PlainMatched(NamedTuple):
    """Events that are matched one by one."""

    courier: PlainCourier
    events: Sequence[Event]

    def offer(self, at: int, now: Moment) -> list[Delivery]:
        """Match the event at a place, and offer it."""
        return self.courier.offer(self.events[at], now)


class ArrayMatched(NamedTuple):
    """Events with their matches in arrays."""

    courier: ArrayCourier
    events: Sequence[Event]
    wanted: Matches

    def offer(self, at: int, now: Moment) -> list[Delivery]:
        """Offer the event at a place."""
        return self.courier.offer(self.wanted, at, self.events[at], now)


def _longer(numbers: Int32s, size: int) -> Int32s:
    """Give numbers with at least so much room, and -1 where there was none."""
    grown = np.full(2 * size, -1, np.int32)
    grown[: len(numbers)] = numbers
    return grown
