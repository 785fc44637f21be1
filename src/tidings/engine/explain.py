"""Why an event was delivered to a subscriber, or why not; where a subscription stands."""

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
    """How one subscription saw an event: what held, what failed, and the score that it gave."""

    subscription: str
    matched: bool
    score: float | None
    holds: tuple[str, ...]
    fails: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Give the JSON form."""
        return vars(self) | {"holds": list(self.holds), "fails": list(self.fails)}


@dataclass(frozen=True)
class Explanation:
    """How a subscriber saw an event: its rank, the reasons, and the delivery if there was one."""

    subscriber: str
    event: str
    rank: float | None
    reasons: tuple[Reason, ...]
    delivery: Delivery | None

    def __str__(self) -> str:
        """Say it in words."""
        return "\n".join([self._verdict(), *map(_sentence, self.reasons)])

    def _verdict(self) -> str:
        who = f"{self.event} for {self.subscriber}"
        if self.delivery:
            return f"{who}: delivered with rank {self.rank:g}, at position {self.delivery.position}"
        if self.rank is None:
            return f"{who}: not delivered, since no subscription wants it"
        return f"{who}: rank {self.rank:g}, not delivered (yet): it was not among the chosen"

    def to_dict(self) -> dict[str, Any]:
        """Give the JSON form."""
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
    """Where a subscription stands for an event, in the direction "target".

    `position` counts from 1 among all that score; `lacking` is how far its score is below that of
    the k-th, 0 if it is among the k best or loses only by its id, and None if it has no score.
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
        """Say it in words."""
        return f"{self._verdict()}\n{_sentence(self.reason)}"

    def _verdict(self) -> str:
        who = f"{self.subscription} for {self.event}"
        if self.position is None:
            return f"{who}: no place, since it does not match{self._bar()}"
        if self.position <= self.k:
            return f"{who}: place {self.position} of the best {self.k}, with {self.score:g}"
        why = f"it lacks {self.lacking:g}" if self.lacking else "of equals, smaller ids go first"
        return f"{who}: place {self.position} with {self.score:g}{self._bar()}: {why}"

    def _bar(self) -> str:
        if self.kth_score is None:
            return ""
        return f"; the last of the best {self.k} has {self.kth_score:g}"

    def to_dict(self) -> dict[str, Any]:
        """Give the JSON form."""
        return vars(self) | {"reason": self.reason.to_dict()}


class Memory:
    """The last events and their deliveries, so that they can be explained."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._events: OrderedDict[str, tuple[Event, dict[str, Delivery]]] = OrderedDict()

    def note(self, event: Event) -> None:
        """Remember an event, and forget the oldest if there are too many."""
        self._events[event.id] = (event, {})
        if len(self._events) > self._size:
            self._events.popitem(last=False)

    def note_deliveries(self, deliveries: Iterable[Delivery]) -> None:
        """Remember deliveries of remembered events."""
        for delivery in deliveries:
            if delivery.event in self._events:
                self._events[delivery.event][1][delivery.subscriber] = delivery

    def event(self, event: str) -> Event | None:
        """Give a remembered event."""
        return self._events[event][0] if event in self._events else None

    def recall(self, event: str) -> Event:
        """Give a remembered event, or say that it is not."""
        found = self.event(event)
        if found is None:
            raise InvalidEvent(f"event {event!r} is not among those remembered; give it whole")
        return found

    def delivery(self, subscriber: str, event: str) -> Delivery | None:
        """Give the delivery of a remembered event."""
        return self._events[event][1].get(subscriber) if event in self._events else None


def explain(
    matcher: Matcher, subscriber: str, event: Event, delivery: Delivery | None = None
) -> Explanation:
    """Explain an event to a subscriber, by its subscriptions as they are now."""
    scorer = matcher.subscribers[subscriber].policy.scorer
    ranker = matcher.ranker(subscriber, scorer)
    own = matcher.subscriptions_of(subscriber)
    found = {match.subscriber: match for match in matcher.matches(event)}.get(subscriber)
    matched = found.matched if found else ()
    reasons = [_reason(each, event, matched, ranker.score(event, each)) for each in own]
    rank = found.score if found else None
    return Explanation(subscriber, event.id, rank, tuple(reasons), delivery)


def explain_target(
    matcher: Matcher, event: Event, subscription: str, k: int, scorer: Scorer
) -> Placement:
    """Explain the place of a subscription among all for an event, by ranking all of them."""
    if subscription not in matcher.subscriptions:
        raise InvalidSubscription(f"there is no subscription {subscription!r}")
    ranking = matcher.top(event, len(matcher.subscriptions), scorer)
    places = {name: place for place, (name, _) in enumerate(ranking, start=1)}
    scores = dict(ranking)
    score, position = scores.get(subscription), places.get(subscription)
    kth = ranking[k - 1][1] if len(ranking) >= k else None
    lacking = None if score is None else max(0.0, (kth or 0.0) - score)
    matched = [subscription] if score is not None else []
    reason = _reason(matcher.subscriptions[subscription], event, matched, score)
    return Placement(subscription, event.id, score, position, k, kth, lacking, reason)


def _reason(
    subscription: Subscription, event: Event, matched: Collection[str], score: float | None
) -> Reason:
    parts = dict.fromkeys(part for conj in subscription.conjunctions for part in conj)
    told = {render_predicate(part): part.holds(event.tokens) for part in parts}
    return Reason(
        subscription.id,
        subscription.id in matched,
        score,
        tuple(text for text, holds in told.items() if holds),
        tuple(text for text, holds in told.items() if not holds),
    )
