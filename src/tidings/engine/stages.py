"""The stages in sequence: match, score, offer to windows, choose.

    events -> Matcher -> matches -> Feeds -> deliveries

Matches travel as objects, or, if both the index and the feeds number their rows, as arrays, many
events at once; the deliveries are the same.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, Protocol

import numpy as np

from tidings.compiled.array_types import Int32s
from tidings.compiled.arrays import distinct, grown
from tidings.engine.memory import Memory
from tidings.engine.quality import Quality
from tidings.errors import TidingsError, clipped, described
from tidings.feed import Feeds
from tidings.feed.columnar.cohort_arrays import OfferedEvents
from tidings.feed.columnar.deliveries import NOTHING_DUE, DeliveryColumns, DuePage
from tidings.feed.columnar.feeds import PreparedOffers, TableFeeds
from tidings.feed.columnar.kernels.layout import ORDER
from tidings.feed.policy_key import same_feed
from tidings.index.access import Access
from tidings.model.dead_letter import Culprit, Failure, bisect, try_call
from tidings.model.records import Event, Subscription
from tidings.policy import DEFAULT_POLICY, PAUSED, Policy, Subscriber
from tidings.rank.bulk import BulkRanker
from tidings.rank.matcher import Matcher, Refusal
from tidings.rank.matches import Matches
from tidings.window import Moment

NAMED: Final = 5
"""Events of a run that the message of a failure names."""


class Step(NamedTuple):
    """One step of the stream: the moment that it reaches, and the event that is due, if any."""

    event: Event | None
    now: Moment


class StepRun(NamedTuple):
    """Consecutive steps that are taken at once, since nothing is due between them.

    `moments` are those of the events, `now` is that of the last step. Without `matches`, an event
    is matched when it is offered; there is at most one then.
    """

    steps: int
    events: Sequence[Event]
    moments: Sequence[Moment]
    matches: Matches | None
    now: Moment

    def of_events(self, places: range) -> "StepRun":
        """Return the same run with only some consecutive events."""
        first, stop = places.start, places.stop
        matches = self.matches and self.matches.of_events(first, stop)
        return self._replace(
            events=self.events[first:stop], moments=self.moments[first:stop], matches=matches
        )


class StageFailure(NamedTuple):
    """The reason why a stage failed, in an unforeseen way, after windows had changed."""

    reason: str


class OfferedPart(NamedTuple):
    """Some events of a run, by their places, and the deliveries that they cause at once.

    If a stage failed for them in an unforeseen way, there is an error instead.
    """

    places: range
    due: DuePage
    error: TidingsError | None = None


class Handoff(Protocol):
    """The path of matches from the matcher to the feeds."""

    def match(self, events: Sequence[Event]) -> Matches | None:
        """Return the matches of events, or None to match each when it is offered."""

    def quiet_until(self, start: Moment) -> Moment:
        """Return the moment up to which no step is due but for the events that are offered."""

    def offer(self, run: StepRun) -> DuePage | StageFailure:
        """Offer events with their matches to the feeds; return the immediate deliveries.

        An error is raised while no window has changed, and returned afterwards.
        """

    def forget(self, subscriber: str) -> None:
        """Forget a subscriber that is about to be removed."""


class Stages:
    """A matcher and feeds, connected: steps go in, deliveries come out.

    The owner of a subscription that is not a subscriber is one of the `owners_by_default`, with the
    default policy, until it subscribes or has no subscription left.
    """

    def __init__(
        self, matcher: Matcher, feeds: Feeds, default_policy: Policy | None = DEFAULT_POLICY
    ) -> None:
        self.matcher, self.feeds, self.quality = matcher, feeds, Quality()
        self.default_policy = default_policy
        self.owners_by_default: set[str] = set()
        self._paused, self._ruled = set[str](), set[str]()
        for subscriber in matcher.subscribers.values():
            self._note_kind(subscriber)
        self._compiled = matcher.compiled
        self._alone = ObjectHandoff(matcher, feeds, self.quality)
        self._handoff = self._new_handoff()

    def enrol(self, subscriber: Subscriber) -> None:
        """Add a subscriber, or replace it, with an empty window.

        The feeds go first: if they refuse the policy, the matcher is unchanged.
        """
        self.feeds.enrol(subscriber)
        self.matcher.subscribe(subscriber)
        self._note_kind(subscriber)

    def update(self, subscriber: Subscriber, now: Moment) -> bool:
        """Replace a subscriber; return whether its policy needs another window, an empty one."""
        name = subscriber.id
        old = self.matcher.subscribers[name]
        is_new = name in self.set_aside or not same_feed(subscriber.policy, old.policy)
        if is_new:
            self.enrol(subscriber)
        elif replace(subscriber, paused=old.paused) == old:
            self.matcher.subscribers[name] = subscriber
        else:
            self.matcher.subscribe(subscriber)
        if not is_new:
            self.feeds.replace(subscriber, now)
            # At once: the subscriber may have no rules from now on, or the engine no next run.
            self.note_verdicts()
        self.owners_by_default.discard(name)
        self._note_kind(subscriber)
        return is_new

    def _note_kind(self, subscriber: Subscriber) -> None:
        """Note whether a subscriber is paused, and whether it has rules."""
        (self._paused.add if subscriber.paused else self._paused.discard)(subscriber.id)
        (self._ruled.add if subscriber.policy.rules else self._ruled.discard)(subscriber.id)

    def add_subscription(self, subscription: Subscription) -> None:
        """Add a subscription, and its owner if it is new."""
        self.matcher.add(subscription)
        self._enrol_owners([subscription])

    def add_subscriptions(self, subscriptions: Sequence[Subscription]) -> list[Refusal]:
        """Add all whose ids are new, and their owners; return the others, with the reasons."""
        refused = self.matcher.add_many(subscriptions)
        self._enrol_owners(subscriptions)
        return refused

    def replace_subscription(self, subscription: Subscription) -> None:
        """Replace the subscription with this id, which may change its owner."""
        old = self.matcher.subscriptions.get(subscription.id)
        self.matcher.replace(subscription)
        self._enrol_owners([subscription])
        if old is not None:
            self._release_owner(old.subscriber)

    def _enrol_owners(self, subscriptions: Iterable[Subscription]) -> None:
        if self.default_policy is None:
            return
        for subscription in subscriptions:
            owner = subscription.subscriber
            if owner not in self.matcher.subscribers:
                self.enrol(Subscriber(owner, self.default_policy))
                self.owners_by_default.add(owner)

    def _release_owner(self, owner: str) -> None:
        """Remove an owner by default that has no subscription left."""
        if owner in self.owners_by_default and not self.matcher.subscriptions_of(owner):
            self.remove_subscriber(owner)

    def remove_subscriber(self, subscriber: str) -> None:
        """Remove a subscriber, its subscriptions and its feed."""
        owned = [subscription.id for subscription in self.matcher.subscriptions_of(subscriber)]
        if subscriber in self.matcher.subscribers:
            self._handoff.forget(subscriber)
        self.matcher.unsubscribe(subscriber)
        self.feeds.drop(subscriber)
        self.quality.forget(subscriber)
        self.quality.removed(owned)
        self.owners_by_default.discard(subscriber)
        self._paused.discard(subscriber)
        self._ruled.discard(subscriber)

    def remove_subscription(self, subscription: str) -> None:
        """Remove a subscription."""
        owner = self.matcher.subscriptions.get(subscription)
        self.matcher.remove(subscription)
        self.quality.removed([subscription])
        if owner is not None:
            self._release_owner(owner.subscriber)

    @property
    def set_aside(self) -> dict[str, str]:
        """Subscribers that are not served because their policies failed, with the reasons."""
        return {**self.matcher.set_aside, **getattr(self.feeds, "set_aside", {})}

    def runs(self, steps: Sequence[Step]) -> Iterator[StepRun]:
        """Yield steps in runs; the feeds must have taken one before the next is asked for."""
        events = [step.event for step in steps if step.event is not None]
        matches = self._match(events)
        first = begin = 0
        while first < len(steps):
            last = self._end_of_run(steps, first, together=matches is not None)
            offered = [step for step in steps[first:last] if step.event is not None]
            end = begin + len(offered)
            yield StepRun(
                last - first,
                events[begin:end],
                [step.now for step in offered],
                None if matches is None else matches.of_events(begin, end),
                steps[last - 1].now,
            )
            first, begin = last, end

    def _match(self, events: Sequence[Event]) -> Matches | None:
        """Match events together; if that fails, each is matched alone when it is offered."""
        self.matcher.note_batch(len(events))
        if self.matcher.compiled != self._compiled:  # the matcher has switched to another index
            self._compiled = self.matcher.compiled
            self._handoff = self._new_handoff()
        if len(events) == 1 and self.matcher.scans_single:
            return None
        try:
            return self._handoff.match(events)
        except Exception:  # noqa: BLE001 - the event at fault is found when it is offered
            return None

    def _end_of_run(self, steps: Sequence[Step], first: int, *, together: bool) -> int:
        """Return the end of the run that starts with a step; it ends with one that is due.

        With rules, it ends before that one: what they release comes before what it causes.
        """
        if not together or len(steps) - first == 1:
            return first + 1
        event, moment = steps[first], steps[-1]
        if len(steps) - first == 2 and moment.event is None and event.now == moment.now:
            return len(steps)  # an event, and the moment that it reaches
        until = self._handoff.quiet_until(steps[first].now)
        # Moments never go back.
        place = min(
            bisect_left(steps, until.us, first, key=lambda step: step.now.us),
            bisect_left(steps, until.sequence, first, key=lambda step: step.now.sequence),
        )
        if place == len(steps):
            return place
        return max(place, first + 1) if self._ruled else place + 1

    def offer(self, run: StepRun) -> Iterator[OfferedPart]:
        """Offer the matched events of a run; if a stage fails, only those that make it fail do."""

        def offer(places: Sequence[int]) -> DuePage | StageFailure:
            part = run.of_events(_range(places))
            return (self._alone if part.matches is None else self._handoff).offer(part)

        for part in bisect(offer, range(len(run.events))):
            if isinstance(part, Culprit):
                places = range(part.item, part.item + 1)
                yield OfferedPart(places, NOTHING_DUE, _failure(run, places, part.reason))
                continue
            places, due = _range(part.items), part.result
            if isinstance(due, StageFailure):
                yield OfferedPart(places, NOTHING_DUE, _failure(run, places, due.reason))
            else:
                yield OfferedPart(places, due.from_turn(places.start))

    def advance(self, now: Moment, turn: int) -> DuePage:
        """Advance the feeds to a moment; return the deliveries that are due, with a turn."""
        try:
            if not isinstance(self.feeds, TableFeeds):
                return DuePage.of(self.feeds.advance(now), turn)
            batch = self.feeds.advance_columns(now)
            if not len(batch):
                return NOTHING_DUE
            turns = np.full(len(batch), turn, np.int64)
            return DuePage.of_batch(batch, turns, self.feeds.tables)
        except TidingsError:
            raise
        except Exception as error:
            raise TidingsError(f"the feeds failed as time advanced: {described(error)}") from error

    def drop_paused(self, page: DuePage, memory: Memory) -> DuePage:
        """Return the deliveries of subscribers that are not paused; note the others as dropped."""
        if not self._paused:
            return page
        due, dropped = page.split(self._paused)
        memory.note_dropped(dropped.objects(), PAUSED)
        self.quality.dropped(len(dropped), "pause")
        return due

    def note_verdicts(self) -> None:
        """Count what rules have done since the last call."""
        if self._ruled:
            for verdicts in self.feeds.take_verdicts().values():
                self.quality.judged(verdicts)

    def note(self, page: DuePage, memory: Memory) -> None:
        """Remember and measure deliveries."""
        if isinstance(page.deliveries, DeliveryColumns):
            memory.note_columns(page.deliveries)
            self.quality.delivered_columns(
                page.deliveries, memory.known_events(page.deliveries, page.turns)
            )
            return
        memory.note_deliveries(page.deliveries)
        for turn, deliveries in page.objects_by_turn():
            self.quality.delivered(deliveries, memory.lookup(turn))

    def _new_handoff(self) -> Handoff:
        if isinstance(self.feeds, TableFeeds) and self.matcher.compiled is not None:
            return ArrayHandoff(*self.matcher.compiled, self.feeds, self.quality)
        return self._alone


def _range(places: Sequence[int]) -> range:
    """Return consecutive places as a range, which they are."""
    assert isinstance(places, range)
    return places


def _failure(run: StepRun, places: range, reason: str) -> TidingsError:
    """Return the error of events for which a stage failed in an unforeseen way."""
    ids = ", ".join(run.events[place].id for place in places[:NAMED])
    return TidingsError(clipped(f"event {ids}: the stages failed: {reason}"))


class ObjectHandoff:
    """Passes each match as an object."""

    def __init__(self, matcher: Matcher, feeds: Feeds, quality: Quality) -> None:
        self._matcher, self._feeds, self._quality = matcher, feeds, quality

    def match(self, events: Sequence[Event]) -> None:
        """Return nothing: each event is matched when it is offered."""

    def quiet_until(self, start: Moment) -> Moment:
        """Return the same moment: events are offered one by one."""
        return start

    def offer(self, run: StepRun) -> DuePage:
        """Match one event and offer it."""
        [event], [now] = run.events, run.moments
        matches = self._matcher.matches(event)
        self._quality.matched(matches)
        return DuePage.of(self._feeds.offer_many([(match, now) for match in matches]))

    def forget(self, subscriber: str) -> None:
        """Do nothing: no subscriber is remembered here."""


class ArrayHandoff:
    """Passes matches as arrays; deliveries come back as columns where they are many.

    The ranker and the feeds number subscribers and subscriptions independently of each other. Two
    arrays translate the numbers, -1 where the feeds have none yet:

        ranker's subscriber   -> feeds' subscriber
        index's subscription  -> feeds' subscription, held by the feeds from its first match onwards
    """

    def __init__(
        self, index: Access, ranker: BulkRanker, feeds: TableFeeds, quality: Quality
    ) -> None:
        self._ranker, self._feeds, self._quality = ranker, feeds, quality
        self._feed_subscribers = np.full(64, -1, np.int32)
        self._feed_subscriptions = np.full(64, -1, np.int32)
        self._ids = [""] * 64
        index.listen(self)

    def on_added(self, numbers: Sequence[int], subscriptions: Sequence[Subscription]) -> None:
        """Note the ids of new subscriptions; the feeds get them when they match."""
        size = max(numbers, default=-1) + 1
        if size > len(self._ids):
            self._feed_subscriptions = grown(self._feed_subscriptions, 2 * size, fill=-1)
            self._ids += [""] * (len(self._feed_subscriptions) - len(self._ids))
        for number, subscription in zip(numbers, subscriptions, strict=True):
            self._ids[number] = subscription.id

    def on_removed(self, numbers: Sequence[int]) -> None:
        """Release removed subscriptions in the feeds."""
        for feed_number in self._feed_subscriptions[numbers].tolist():
            if feed_number >= 0:
                self._feeds.tables.matched.release(feed_number)
        self._feed_subscriptions[numbers] = -1
        for number in numbers:
            self._ids[number] = ""

    def forget(self, subscriber: str) -> None:
        """Forget the feeds' number of a subscriber that is about to be removed."""
        number = self._ranker.number(subscriber)
        if number is not None and number < len(self._feed_subscribers):
            self._feed_subscribers[number] = -1

    def match(self, events: Sequence[Event]) -> Matches:
        """Match and rank all events in compiled passes."""
        return self._ranker.rank(events)

    def quiet_until(self, start: Moment) -> Moment:
        """Return the moment up to which nothing is due in the feeds."""
        return self._feeds.quiet_until(start)

    def offer(self, run: StepRun) -> DuePage | StageFailure:
        """Offer events with their matches."""
        matches = run.matches
        assert matches is not None
        if not len(matches.ranks):
            return NOTHING_DUE
        matches = matches._replace(
            subscribers=self._translate_subscribers(matches.subscribers),
            matched=self._translate_subscriptions(matches.matched),
        )
        slots = np.zeros(len(run.events), np.int32)
        matched = np.flatnonzero(matches.starts[1:] - matches.starts[:-1])
        slots[matched] = self._feeds.slots_of([run.events[place] for place in matched.tolist()])
        sequences = np.array([now.sequence for now in run.moments], np.int64)
        prepared = self._feeds.prepare(OfferedEvents(matches, slots, sequences))
        self._quality.matched_rows(matches.ranks)
        due = try_call(self._offer_prepared, matches, prepared)
        return StageFailure(due.reason) if isinstance(due, Failure) else due

    def _offer_prepared(self, matches: Matches, prepared: PreparedOffers) -> DuePage:
        batch = self._feeds.offer_prepared(prepared)
        turns = matches.events[batch.columns[:, ORDER]]
        return DuePage.ordered(batch, turns, self._feeds.tables)

    def _translate_subscribers(self, owners: Int32s) -> Int32s:
        names = self._ranker.names
        if len(names) > len(self._feed_subscribers):
            self._feed_subscribers = grown(self._feed_subscribers, 2 * len(names), fill=-1)
        numbers = self._feed_subscribers[owners]
        if numbers.min(initial=0) >= 0:
            return numbers
        new = distinct(owners[numbers < 0], len(names))
        # Both number subscribers in the order of enrolment, as long as none leaves.
        enrolled = self._feeds.tables.subscribers
        new_names = list(map(names.__getitem__, new.tolist()))
        self._feed_subscribers[new] = enrolled.number_many(new_names, likely=new)
        return self._feed_subscribers[owners]

    def _translate_subscriptions(self, matched: Int32s) -> Int32s:
        numbers = self._feed_subscriptions[matched]
        if numbers.min(initial=0) >= 0:
            return numbers
        new = distinct(matched[numbers < 0], len(self._ids))
        ids = list(map(self._ids.__getitem__, new.tolist()))
        self._feed_subscriptions[new] = self._feeds.tables.matched.hold(ids)
        self._quality.newly_wanted(ids)
        return self._feed_subscriptions[matched]
