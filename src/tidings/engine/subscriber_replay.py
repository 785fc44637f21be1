"""Replays of a recording for one subscriber: what a policy would have delivered.

    events -> steps of the stream       once for all subscribers
           -> matches of a subscriber   once for all policies with the same scorer
           -> deliveries and figures    for each policy

The deliveries are those of an engine that publishes the same events to that one subscriber.
Since there is only one subscriber, all of its matches are offered in one call.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from threading import Lock
from typing import Final, NamedTuple

import numpy as np

from tidings.compiled.arrays import Ragged
from tidings.diversify import Distance
from tidings.diversify.distance import Overlap
from tidings.engine.explain import LATE, Explanation, complete, explain
from tidings.engine.quality import Quality, Report
from tidings.engine.stages import Step
from tidings.engine.standing import Offered, Recollection
from tidings.engine.standing import replay as replay_window
from tidings.errors import InvalidPolicy
from tidings.feed.columnar.cohort_arrays import OfferedEvents
from tidings.feed.columnar.feeds import TableFeeds
from tidings.feed.protocol import Offer
from tidings.model.records import Delivery, Event, Match, Subscription
from tidings.model.values import parse_duration_us
from tidings.policy import PAUSED, Policy, Subscriber
from tidings.rank.matcher import Matcher
from tidings.rank.matches import Matches
from tidings.rules import Verdict
from tidings.score import Scorer
from tidings.window import Moment
from tidings.window.reorder import Arrivals, Late

_RESULTS: Final = 4
"""Results that a replay keeps."""


class RecordedSteps(NamedTuple):
    """Events in the order in which a stream passes them on, and the moment that it has reached."""

    steps: Sequence[Step]
    now: Moment

    @classmethod
    def of(cls, events: Iterable[Event], now: Moment) -> "RecordedSteps":
        """Return the recording of numbered events in their order, up to a moment."""
        steps, sequence = list[Step](), 0
        for event in events:
            sequence = max(sequence, event.sequence or 0)
            steps.append(Step(event, Moment(event.published_us, sequence)))
        return cls(steps, now)


def record(
    events: Iterable[Event], lateness: object = "0s", until_us: int | None = None
) -> RecordedSteps:
    """Return the recording of accepted events, as an engine takes them.

    Late events are left out. At the end the clock advances to `until_us`, if that is given.
    """
    arrivals = Arrivals[Event](parse_duration_us(lateness))
    released, steps, sequence = list[Event](), list[Step](), 0
    for event in events:
        with suppress(Late):
            released += arrivals.offer(event.published_us, event, event.sequence)
    if until_us is not None:
        released += arrivals.advance(until_us)
    for event in released:
        numbered = event if event.sequence is not None else event.numbered(sequence + 1)
        sequence = max(sequence, numbered.sequence or 0)
        steps.append(Step(numbered, Moment(event.published_us, sequence)))
    return RecordedSteps(steps, Moment(arrivals.watermark_us or 0, sequence))


class ReplayedDeliveries(NamedTuple):
    """The deliveries of a policy from a recording, and the verdicts of its rules."""

    deliveries: list[Delivery]
    verdicts: list[Verdict]


class ReplayResult(NamedTuple):
    """The deliveries of a policy from a recording, their figures, and the verdicts of its rules."""

    deliveries: list[Delivery]
    report: Report
    verdicts: list[Verdict]


class _EventMatch(NamedTuple):
    """The match of an event, whose rank is None if there is none.

    It is found by the identity of the attributes, which copies of an event share; the match holds
    them, so that no other object gets that identity.
    """

    attributes: object
    rank: float | None = None
    matched: tuple[str, ...] = ()


class _MatchedEvents(NamedTuple):
    """The events that match a subscriber, in order, and their matches in columns."""

    events: list[Event]
    moments: list[Moment]
    subscriptions: list[str]
    """Those that matched; the columns number them by their places here."""
    matches: Matches
    matched: list[tuple[str, ...]]
    by_id: dict[str, Event]


@dataclass
class InterestReplay:
    """The recording as one subscriber meets it.

    Matches are kept by scorer, and the last results by policy: one side of a comparison is often
    the same as before. Safe for threads.
    """

    recording: RecordedSteps
    subscriber: str
    subscriptions: Sequence[Subscription]
    prefers: Sequence[tuple[str, str]] = ()
    _matched: dict[Scorer, _MatchedEvents] = field(default_factory=dict, init=False, repr=False)
    _offers: dict[Scorer, Sequence[Offer]] = field(default_factory=dict, init=False, repr=False)
    _matches: dict[Scorer, dict[int, _EventMatch]] = field(
        default_factory=dict, init=False, repr=False
    )
    _results: dict[Hashable, ReplayResult] = field(default_factory=dict, init=False, repr=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    def on(self, recording: RecordedSteps) -> "InterestReplay":
        """Return the replay of another recording; events that both have are not matched again."""
        other = InterestReplay(recording, self.subscriber, self.subscriptions, self.prefers)
        other._matches.update(self._matches)
        return other

    def run(
        self, policy: Policy, distance: Distance | None = None, *, paused: bool = False
    ) -> ReplayResult:
        """Return what a policy would have delivered; refuse one that fails on these events.

        Diversity is measured by a distance, `overlap` unless another one is given. Of a subscriber
        that is `paused`, it is what would have been due, and is dropped.
        """
        measured = distance or Overlap()
        key = (policy, measured, paused)  # not its form, which user-defined parts do not have
        with self._lock:
            result = self._results.pop(key, None)
        result = result or self._run(policy, measured, paused=paused)
        with self._lock:
            self._results[key] = result
            if len(self._results) > _RESULTS:
                del self._results[next(iter(self._results))]
        return result

    def _run(self, policy: Policy, distance: Distance, *, paused: bool) -> ReplayResult:
        deliveries, verdicts = self.deliver(policy, paused=paused)
        matched, quality = self._matching(policy.scorer), Quality(distance)
        quality.matched_rows(matched.matches.ranks)
        quality.wanted(matched.subscriptions)
        quality.delivered(deliveries, matched.by_id.get)
        quality.judged(verdicts)
        return ReplayResult(deliveries, quality.report(), verdicts)

    def deliver(self, policy: Policy, *, paused: bool = False) -> ReplayedDeliveries:
        """Return the same as `run` without figures, which take longer; nothing is kept."""
        feeds, matched = TableFeeds(), self._matching(policy.scorer)
        feeds.enrol(Subscriber(self.subscriber, policy, paused=paused))
        numbers = feeds.tables.matched.hold(matched.subscriptions)
        matches = matched.matches._replace(matched=numbers[matched.matches.matched])
        sequences = np.array([now.sequence for now in matched.moments], np.int64)
        slots = feeds.slots_of(matched.events)
        batch = feeds.offer_matches(OfferedEvents(matches, slots, sequences))
        deliveries = (batch.objects() if len(batch) else []) + feeds.advance(self.recording.now)
        if reason := feeds.set_aside.get(self.subscriber):
            raise InvalidPolicy(reason)
        return ReplayedDeliveries(deliveries, feeds.take_verdicts().get(self.subscriber, []))

    def offers(self, scorer: Scorer) -> Sequence[Offer]:
        """Return the matches of the subscriber, each with the moment of its publication."""
        if scorer not in self._offers:
            events, moments, _, matches, matched, _ = self._matching(scorer)
            rows = zip(events, matches.ranks.tolist(), matched, moments, strict=True)
            self._offers[scorer] = [
                (Match(self.subscriber, event, *rank), now) for event, *rank, now in rows
            ]
        return self._offers[scorer]

    def _matching(self, scorer: Scorer) -> _MatchedEvents:
        if scorer not in self._matched:
            self._matched[scorer] = self._match(scorer)
        return self._matched[scorer]

    def _match(self, scorer: Scorer) -> _MatchedEvents:
        steps = self.recording.steps
        known = self._matches.get(scorer, {})
        new = [event for event, _ in steps if event and id(event.attributes) not in known]
        known = known | {id(match.attributes): match for match in self._new_matches(scorer, new)}
        used, ranked = dict[int, _EventMatch](), list[tuple[Event, Moment, _EventMatch]]()
        for event, now in steps:
            if event is not None:
                key = id(event.attributes)
                used[key] = match = known[key]
                if match.rank is not None:
                    ranked.append((event, now, match))
        self._matches[scorer] = used
        matched = [match.matched for _, _, match in ranked]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(chain(*matched)))}
        sets = Ragged.of([[numbers[name] for name in names] for names in matched])
        matches = Matches(
            np.arange(len(ranked) + 1),
            np.zeros(len(ranked), np.int32),  # the only subscriber
            np.array([match.rank for _, _, match in ranked], np.float64),
            *sets,
        )
        events = [event for event, _, _ in ranked]
        by_id, moments = {event.id: event for event in events}, [now for _, now, _ in ranked]
        return _MatchedEvents(events, moments, [*numbers], matches, matched, by_id)

    def _new_matches(self, scorer: Scorer, events: Sequence[Event]) -> Iterator[_EventMatch]:
        owner = Subscriber(self.subscriber, Policy(scorer=scorer), self.prefers)
        matcher = Matcher([owner], self.subscriptions, index="access")
        assert matcher.compiled is not None
        index, _ = matcher.compiled
        matches = matcher.match_many(events)
        if reason := matcher.set_aside.get(self.subscriber):
            raise InvalidPolicy(reason)
        for place, event in enumerate(events):
            match = _EventMatch(event.attributes)
            for _, rank, matched in matches.rows(place):
                match = match._replace(rank=rank, matched=tuple(sorted(index.ids(matched))))
            yield match


class Explainer:
    """The deliveries of a replay to a subscriber, and the reasons for all other matches.

    `matches` are its matches by event. `due` are the deliveries by event, which a paused subscriber
    does not get. `set_aside` says why its policy fails on these events; then nothing is due.
    """

    def __init__(self, replay: InterestReplay, subscriber: Subscriber) -> None:
        self.subscriber, self.recording = subscriber, replay.recording
        self._matcher = Matcher([subscriber], replay.subscriptions, index="scan")
        self.matches: dict[str, Match] = {}
        self.due: dict[str, Delivery] = {}
        self.set_aside: str | None = None
        self._verdicts = defaultdict[str, list[Verdict]](list)
        steps = self.recording.steps
        self._known = {step.event.id for step in steps if step.event}
        try:
            offers = replay.offers(subscriber.policy.scorer)
            self.matches = {match.event.id: match for match, _ in offers}
            result = replay.deliver(subscriber.policy, paused=subscriber.paused)
        except InvalidPolicy as error:
            self.set_aside = str(error)
            return
        self.due = {delivery.event: delivery for delivery in result.deliveries}
        for verdict in result.verdicts:
            self._verdicts[verdict.event].append(verdict)
        self.offers = [
            Offered(self.matches.get(step.event.id) if step.event else None, step.now)
            for step in steps
        ]

    def is_match(self, event: Event) -> bool:
        """Return whether a subscription matches an event, even one that came too late."""
        if event.id in self._known:
            return event.id in self.matches
        return explain(self._matcher, self.subscriber.id, event, None).rank is not None

    def explain(self, event: Event) -> Explanation:
        """Explain why the subscriber did or did not get an event of the recording."""
        due, paused = self.due.get(event.id), self.subscriber.paused
        delivery = replace(due, content_json=None) if due and not paused else None
        explanation = explain(self._matcher, self.subscriber.id, event, delivery)
        dropped = PAUSED if due and paused else None
        return complete(explanation, self.set_aside, dropped, lambda: self._recollect(event.id))

    def _recollect(self, event: str) -> Recollection:
        if event not in self._known:
            return Recollection(None, (), LATE)
        verdicts = sorted(self._verdicts.get(event, ()), key=lambda verdict: verdict.at_us)
        standing = None
        if not verdicts and event not in self.due:
            policy, now = self.subscriber.policy, self.recording.now
            standing = replay_window(policy, self.offers, event, now)
        return Recollection(standing, tuple(verdicts), None)
