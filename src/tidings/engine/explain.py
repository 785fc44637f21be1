"""Explanations: why an event was or was not delivered, and the position of a subscription."""

from collections import OrderedDict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from tidings.errors import InvalidEvent, InvalidSubscription
from tidings.model.conditions.parser import render_predicate
from tidings.model.records import Delivery, Event, Subscription
from tidings.rank.matcher import Matcher
from tidings.score import Scorer


@dataclass(frozen=True)
class Reason:
    """The result of one subscription for an event: predicates that hold or fail, and the score."""

    subscription: str
    matched: bool
    score: float | None
    holds: tuple[str, ...]
    fails: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return vars(self) | {"holds": list(self.holds), "fails": list(self.fails)}


@dataclass(frozen=True)
class Explanation:
    """The result of a subscriber for an event: rank, reasons, and the delivery if there was one."""

    subscriber: str
    event: str
    rank: float | None
    reasons: tuple[Reason, ...]
    delivery: Delivery | None

    def __str__(self) -> str:
        """Return the explanation in words."""
        return "\n".join([self._verdict(), *map(_sentence, self.reasons)])

    def _verdict(self) -> str:
        subject = f"{self.event} for {self.subscriber}"
        if self.delivery:
            position = self.delivery.position
            return f"{subject}: delivered with rank {self.rank:g}, at position {position}"
        if self.rank is None:
            return f"{subject}: not delivered, since no subscription matches"
        return f"{subject}: rank {self.rank:g}, not delivered (yet): it was not chosen"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "subscriber": self.subscriber,
            "event": self.event,
            "rank": self.rank,
            "reasons": [reason.to_dict() for reason in self.reasons],
            "delivery": self.delivery.to_dict() if self.delivery else None,
        }


def _sentence(reason: Reason) -> str:
    verb = "matches" if reason.matched else "does not match"
    because = [f"holds: {', '.join(reason.holds)}"] if reason.holds else []
    because += [f"fails: {', '.join(reason.fails)}"] if reason.fails else []
    score = "" if reason.score is None else f" with {reason.score:g}"
    return f"  {reason.subscription} {verb}{score}; {'; '.join(because)}"


@dataclass(frozen=True)
class Placement:
    """The position of a subscription for an event, in the direction "target".

    `position` counts from 1 among all subscriptions with a score. `lacking` is the difference to
    the score of the k-th: 0 for one of the k best, or for a tie that the id decides, and None
    without a score.
    """

    subscription: str
    event: str
    score: float | None
    position: int | None
    k: int
    kth_score: float | None
    lacking: float | None
    reason: Reason

    def __str__(self) -> str:
        """Return the explanation in words."""
        return f"{self._verdict()}\n{_sentence(self.reason)}"

    def _verdict(self) -> str:
        subject = f"{self.subscription} for {self.event}"
        if self.position is None:
            return f"{subject}: no position, since it does not match{self._bar()}"
        if self.position <= self.k:
            return f"{subject}: position {self.position} of the best {self.k}, with {self.score:g}"
        why = f"it lacks {self.lacking:g}" if self.lacking else "it ties, and smaller ids go first"
        return f"{subject}: position {self.position} with {self.score:g}{self._bar()}: {why}"

    def _bar(self) -> str:
        if self.kth_score is None:
            return ""
        return f"; the last of the best {self.k} has {self.kth_score:g}"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return vars(self) | {"reason": self.reason.to_dict()}


class Memory:
    """The last events and their deliveries, so that they can be explained."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._events: OrderedDict[str, tuple[Event, dict[str, Delivery]]] = OrderedDict()

    def note(self, event: Event) -> None:
        """Remember an event; forget the oldest if there are too many."""
        self._events[event.id] = (event, {})
        if len(self._events) > self._size:
            self._events.popitem(last=False)

    def note_deliveries(self, deliveries: Iterable[Delivery]) -> None:
        """Remember deliveries of remembered events."""
        for delivery in deliveries:
            if delivery.event in self._events:
                self._events[delivery.event][1][delivery.subscriber] = delivery

    def event(self, event: str) -> Event | None:
        """Return a remembered event, or None."""
        return self._events[event][0] if event in self._events else None

    def recall(self, event: str) -> Event:
        """Return a remembered event, or refuse its id."""
        remembered = self.event(event)
        if remembered is None:
            raise InvalidEvent(f"event {event!r} is not remembered; pass the whole event")
        return remembered

    def delivery(self, subscriber: str, event: str) -> Delivery | None:
        """Return the delivery of a remembered event, or None."""
        return self._events[event][1].get(subscriber) if event in self._events else None


def explain(
    matcher: Matcher, subscriber: str, event: Event, delivery: Delivery | None = None
) -> Explanation:
    """Explain an event for a subscriber, by its current subscriptions."""
    scorer = matcher.subscribers[subscriber].policy.scorer
    ranker = matcher.ranker(subscriber, scorer)
    match = {match.subscriber: match for match in matcher.matches(event)}.get(subscriber)
    matched = match.matched if match else ()
    reasons = [
        _reason(subscription, event, matched, ranker.score(event, subscription))
        for subscription in matcher.subscriptions_of(subscriber)
    ]
    rank = match.score if match else None
    return Explanation(subscriber, event.id, rank, tuple(reasons), delivery)


def explain_target(
    matcher: Matcher, event: Event, subscription: str, k: int, scorer: Scorer
) -> Placement:
    """Explain the position of a subscription for an event, by ranking all subscriptions."""
    if subscription not in matcher.subscriptions:
        raise InvalidSubscription(f"there is no subscription {subscription!r}")
    ranking = matcher.top(event, len(matcher.subscriptions), scorer)
    positions = {name: position for position, (name, _) in enumerate(ranking, start=1)}
    scores = dict(ranking)
    score, position = scores.get(subscription), positions.get(subscription)
    kth = ranking[k - 1][1] if len(ranking) >= k else None
    lacking = None if score is None else max(0.0, (kth or 0.0) - score)
    matched = [subscription] if score is not None else []
    reason = _reason(matcher.subscriptions[subscription], event, matched, score)
    return Placement(subscription, event.id, score, position, k, kth, lacking, reason)


def _reason(
    subscription: Subscription, event: Event, matched: Collection[str], score: float | None
) -> Reason:
    parts = dict.fromkeys(part for conj in subscription.conjunctions for part in conj)
    results = {render_predicate(part): part.holds(event.tokens) for part in parts}
    return Reason(
        subscription.id,
        subscription.id in matched,
        score,
        tuple(text for text, holds in results.items() if holds),
        tuple(text for text, holds in results.items() if not holds),
    )
