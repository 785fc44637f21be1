"""The last events of an engine with their deliveries, so that they can be explained."""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.compiled.array_types import Int64s
from tidings.compiled.arrays import offsets
from tidings.engine.quality import KnownEvents
from tidings.engine.standing import (
    Offered,
    Recollection,
    RulesReplaced,
    reach,
    replay,
    replay_rules,
)
from tidings.errors import InvalidEvent, described
from tidings.feed.columnar.deliveries import DeliveryColumns
from tidings.model.records import Delivery, Event, Subscription
from tidings.policy import Policy, Subscriber
from tidings.rank.matcher import Matcher
from tidings.rules import Verdict
from tidings.window import Moment

_MOST_CHANGES: Final = 1_000
"""Changes of the rules of one subscriber that are remembered."""


class ColumnRows(NamedTuple):
    """The deliveries of one event: rows of columns that other events share."""

    columns: DeliveryColumns
    rows: Int64s

    def find(self, subscriber: str) -> Delivery | None:
        """Return the delivery to a subscriber."""
        names = self.columns.subscriber.take(pa.array(self.rows))
        rows = self.rows[pc.equal(names, subscriber).to_numpy(zero_copy_only=False)]
        return self.columns.take(rows).objects()[0] if len(rows) else None


class RememberedEvent(NamedTuple):
    """An event, its number from 1, the moment that it reached, and its deliveries by subscriber.

    `dropped` has the reasons of those that were dropped when they were due, `columns` the
    deliveries that are not objects.
    """

    event: Event
    number: int
    now: Moment
    deliveries: dict[str, Delivery]
    dropped: dict[str, str]
    columns: list[ColumnRows]

    def delivery(self, subscriber: str) -> Delivery | None:
        """Return the delivery to a subscriber."""
        if subscriber in self.deliveries:
            return self.deliveries[subscriber]
        deliveries = (rows.find(subscriber) for rows in self.columns)
        return next((delivery for delivery in deliveries if delivery is not None), None)


class SubscriberChange(NamedTuple):
    """A change of rules, or a pause: the events and the moment before it, and the subscriber."""

    number: int
    now: Moment
    before: Subscriber


class Memory:
    """The last events and their deliveries, without content, and when subscribers changed.

    A change is dated by the number of events before it. Changes before the first event, and those
    older than all remembered events, need not be kept. A memory is not `whole` if the windows hold
    events that it never knew, as after a restore.
    """

    def __init__(self, size: int, *, whole: bool = True) -> None:
        self.size = size
        self._is_whole = whole
        self._events: OrderedDict[str, RememberedEvent] = OrderedDict()
        self._total, self._first = 0, 1
        self._enrolled: dict[str, int] = {}
        self._added: dict[str, int] = {}
        self._changed: dict[str, int] = {}
        self._rule_changes: dict[str, list[SubscriberChange]] = {}

    def note(self, event: Event, now: Moment) -> None:
        """Remember an event, the next turn of a run; the oldest is forgotten when the run ends."""
        self._total += 1
        if event.id in self._events:  # an id that was forgotten may come again
            del self._events[event.id]
        bare = event if event.content_json is None else event.carrying(None)
        self._events[event.id] = RememberedEvent(bare, self._total, now, {}, {}, [])
        if self.size and not self._total % self.size:
            self._forget_old_changes()

    def end_run(self) -> None:
        """Forget the oldest events if there are too many; the next one has turn 0."""
        while len(self._events) > self.size:
            self._events.popitem(last=False)
        self._first = self._total + 1

    def forget(self, event: str) -> None:
        """Forget an event that no feed has accepted."""
        self._events.pop(event, None)

    def note_deliveries(self, deliveries: Iterable[Delivery]) -> None:
        """Remember deliveries of remembered events."""
        for delivery in deliveries:
            if delivery.event in self._events:
                bare = delivery.content_json is None
                self._events[delivery.event].deliveries[delivery.subscriber] = (
                    delivery if bare else replace(delivery, content_json=None)
                )

    def note_columns(self, columns: DeliveryColumns) -> None:
        """Remember deliveries of remembered events as columns."""
        bare = columns.to_remember()
        ends = offsets(np.bincount(bare.event, minlength=len(bare.events)))
        order = np.arange(len(bare))
        if (bare.event[1:] < bare.event[:-1]).any():  # windows deliver older events as well
            order = np.argsort(bare.event, kind="stable")
        for event, (first, last) in zip(bare.events, pairwise(ends.tolist()), strict=True):
            remembered = self._events.get(event)
            if remembered is not None and last > first:
                remembered.columns.append(ColumnRows(bare, order[first:last]))

    def note_dropped(self, deliveries: Iterable[Delivery], reason: str) -> None:
        """Remember why deliveries of remembered events were dropped."""
        for delivery in deliveries:
            if delivery.event in self._events:
                self._events[delivery.event].dropped[delivery.subscriber] = reason

    def note_enrolled(self, subscriber: str) -> None:
        """Record that a subscriber has a new window from now on."""
        self._rule_changes.pop(subscriber, None)
        if self._total:
            self._enrolled[subscriber] = self._total

    def note_added(self, subscriptions: Iterable[str]) -> None:
        """Record that subscriptions exist from now on."""
        if self._total:
            self._added.update((subscription, self._total) for subscription in subscriptions)

    def note_changed(self, subscriber: str, removed: str | None = None) -> None:
        """Record that the earlier subscriptions of a subscriber are no longer known.

        `removed` is the id of a subscription that it has no more.
        """
        if self._total:
            self._changed[subscriber] = self._total
        if removed is not None:
            self._added.pop(removed, None)

    def note_rules(self, before: Subscriber, now: Moment) -> None:
        """Record that a subscriber has other rules from a moment onwards, or is paused or resumed.

        Changes of rules are replayed, unless there are very many of them.
        """
        if not self._total:
            return
        changes = self._rule_changes.setdefault(before.id, [])
        changes.append(SubscriberChange(self._total, now, before))
        if len(changes) > _MOST_CHANGES:
            del self._rule_changes[before.id]
            self.note_changed(before.id)

    def has_rules(self, subscriber: Subscriber) -> bool:
        """Return whether a subscriber has rules, or has had some that are remembered."""
        return bool(subscriber.policy.rules) or subscriber.id in self._rule_changes

    def note_left(self, subscriber: str, subscriptions: Iterable[str]) -> None:
        """Forget a subscriber that has left, with its subscriptions."""
        self._enrolled.pop(subscriber, None)
        self._changed.pop(subscriber, None)
        self._rule_changes.pop(subscriber, None)
        for subscription in subscriptions:
            self._added.pop(subscription, None)

    def event(self, event: str) -> Event | None:
        """Return a remembered event, or None."""
        return self._events[event].event if event in self._events else None

    def lookup(self, turn: int) -> Callable[[str], Event | None]:
        """Return a function that looks up events as they were remembered at a turn of the run."""
        oldest = self._oldest(turn)

        def look(name: str) -> Event | None:
            remembered = self._events.get(name)
            return remembered.event if remembered and remembered.number >= oldest else None

        return look

    def known_events(self, columns: DeliveryColumns, turns: Int64s) -> KnownEvents:
        """Return the events of deliveries, and which were remembered when they were due."""
        remembered = [self._events.get(name) for name in columns.events]
        numbers = np.array([entry.number if entry else -1 for entry in remembered], np.int64)
        known = numbers[columns.event] >= np.maximum(self._oldest(0) + turns, 0)
        return KnownEvents([entry and entry.event for entry in remembered], known)

    def _oldest(self, turn: int) -> int:
        """Return the number of the oldest event that is remembered at a turn of the run."""
        return self._first + turn - self.size + 1

    def recall(self, event: str) -> Event:
        """Return a remembered event, or refuse its id."""
        remembered = self.event(event)
        if remembered is None:
            raise InvalidEvent(f"event {event!r} is not remembered; pass the whole event")
        return remembered

    def delivery(self, subscriber: str, event: str) -> Delivery | None:
        """Return the delivery of a remembered event, or None."""
        remembered = self._events.get(event)
        return remembered.delivery(subscriber) if remembered else None

    def dropped(self, subscriber: str, event: str) -> str | None:
        """Return why the delivery of a remembered event was dropped, or None."""
        remembered = self._events.get(event)
        return remembered.dropped.get(subscriber) if remembered else None

    def recollect(self, matcher: Matcher, subscriber: str, event: str, now: Moment) -> Recollection:
        """Return the outcome of a match."""
        remembered = self._events.get(event)
        if remembered is None:
            return _unknown("the event is not among those that this engine remembers")
        since = self._enrolled.get(subscriber, 0)
        if remembered.number <= since:
            return _unknown("the subscriber got its present window after the event")
        owner = matcher.subscribers[subscriber]
        offers, verdicts = list(self._offers(matcher, subscriber, since)), tuple[Verdict, ...]()
        try:
            if self.has_rules(owner):
                first, changes = self._replaced_rules(owner, since)
                verdicts = replay_rules(first, offers, event, now, changes)
            standing = None if verdicts else replay(owner.policy, offers, event, now)
        except Exception as error:  # noqa: BLE001 - user-defined parts may raise anything
            return _unknown(f"its windows cannot be replayed: {described(error)}")
        if standing is None and not verdicts:
            return _unknown("its matching subscriptions were added after the event")
        note = self._limitation(owner.policy, subscriber, remembered, offers)
        return Recollection(standing, verdicts, note)

    def _replaced_rules(
        self, owner: Subscriber, since: int
    ) -> tuple[Subscriber, list[RulesReplaced]]:
        """Return a subscriber as it was at an event, and what replaced its rules afterwards."""
        changes = self._rule_changes.get(owner.id, [])
        after = [*(change.before for change in changes), owner]
        numbers = [item.number for item in self._events.values() if item.number > since]
        return after[0], [
            RulesReplaced(bisect_right(numbers, change.number), change.now, subscriber)
            for change, subscriber in zip(changes, after[1:], strict=True)
        ]

    def _offers(self, matcher: Matcher, subscriber: str, since: int) -> Iterator[Offered]:
        """Yield the remembered events since a number, each matched by the subscriptions it met."""
        owner = Matcher([matcher.subscribers[subscriber]], index="scan")
        own = matcher.subscriptions_of(subscriber)
        later = sorted(own, key=self._added_at, reverse=True)
        for item in self._events.values():
            if item.number <= since:
                continue
            while later and self._added_at(later[-1]) < item.number:
                owner.add(later.pop())
            matches = owner.matches(item.event)
            yield Offered(matches[0] if matches else None, item.now)

    def _added_at(self, subscription: Subscription) -> int:
        return self._added.get(subscription.id, 0)

    def _limitation(
        self, policy: Policy, subscriber: str, target: RememberedEvent, offers: list[Offered]
    ) -> str | None:
        """Return why a replay may differ from what happened, or None if it cannot."""
        oldest, window = next(iter(self._events.values())), policy.window
        if self._changed.get(subscriber, 0) >= oldest.number:
            what = "subscriptions or rules" if policy.rules else "subscriptions"
            return f"its {what} have changed; this is by the present ones"
        enrolled = self._enrolled.get(subscriber)
        if enrolled is not None and enrolled + 1 >= oldest.number:
            return None
        if oldest.number == 1 and self._is_whole:
            return None
        if policy.rules:
            return "its rules may have counted older events, which are no longer remembered"
        size = reach(window)
        if size is not None and self._covers(size, window, target, offers):
            return None
        return "the window may have held older events, which are no longer remembered"

    def _covers(
        self, size: Any, window: Any, target: RememberedEvent, offers: list[Offered]
    ) -> bool:
        """Return whether everything a length before an event is remembered."""
        oldest, event = next(iter(self._events.values())), target.event
        if size.us is not None:
            return bool(oldest.event.published_us <= event.published_us - size.us)
        if getattr(window, "count", "matching") == "published":
            return bool(oldest.now.sequence <= target.now.sequence - size.count + 1)
        ids = [offer.match.event.id for offer in offers if offer.match is not None]
        return bool(ids.index(event.id) + 1 >= size.count)

    def _forget_old_changes(self) -> None:
        oldest = next(iter(self._events.values())).number
        for changes in (self._enrolled, self._added, self._changed):
            for name in [name for name, number in changes.items() if number < oldest - 1]:
                del changes[name]
        for name, changed in list(self._rule_changes.items()):
            recent = [change for change in changed if change.number >= oldest - 1]
            self._rule_changes[name] = recent
            if not recent:
                del self._rule_changes[name]


def _unknown(note: str) -> Recollection:
    return Recollection(None, (), note)
