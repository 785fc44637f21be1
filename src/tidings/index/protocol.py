"""The protocol of an index: a set of subscriptions that finds those an event concerns."""

from collections.abc import Callable, Iterable, Mapping
from heapq import nsmallest
from math import fsum
from typing import Protocol

from tidings.model.records import Event, Subscription
from tidings.model.values import Range, rounded

Score = Callable[[Event, Subscription], float | None]
"""The score of a subscription for an event; None where none of its predicates holds."""


class Index(Protocol):
    """A set of subscriptions that finds those an event concerns; all answers are sorted by id."""

    def add(self, subscription: Subscription) -> None:
        """Add a subscription, whose id is new."""

    def remove(self, subscription: str) -> None:
        """Remove a subscription by id."""

    def matching(self, event: Event) -> Iterable[Subscription]:
        """Return the subscriptions that cover the event (PREF Def. 1)."""

    def touching(self, event: Event) -> Iterable[Subscription]:
        """Return the subscriptions of which at least one predicate holds."""

    def top(self, event: Event, k: int, score: Score | None = None) -> list[tuple[str, float]]:
        """Return the k best by `score`, ties by smaller id.

        Without `score`: the best of those that cover the event, by their own scores (RPS, exact).
        These are known before an event comes, so an index can keep them in order.
        """

    def top_relaxed(self, event: Event, k: int) -> list[tuple[str, float]]:
        """Return the k best by the weights of the predicates that hold, ties by smaller id.

        That is `top` with the scorer `relaxed` (RPS): the sum of the weights, each times the
        probability of its attribute, rounded to 12 decimals; the best conjunction counts.
        """

    def counters(self) -> Mapping[str, int]:
        """Return how many `predicates` and `subscriptions` were tested since the index was made.

        A predicate counts when it is found in a list or tested, a subscription when it is tested or
        counted.
        """


def best_found(index: Index, event: Event, k: int, score: Score | None) -> list[tuple[str, float]]:
    """Return the answer of `top` by scoring all subscriptions that match, or are touched."""
    if score is None:
        scored = [
            (subscription.id, own_score(subscription)) for subscription in index.matching(event)
        ]
    else:
        rated = (
            (subscription.id, score(event, subscription)) for subscription in index.touching(event)
        )
        scored = [(name, value) for name, value in rated if value is not None]
    return nsmallest(k, scored, key=lambda pair: (-pair[1], pair[0]))


def relaxed_score(event: Event, subscription: Subscription) -> float | None:
    """Return the score of `top_relaxed`, for indexes without weights; None if nothing holds."""
    best: float | None = None
    for group in subscription.groups:
        held = [
            part.weight * event.probabilities.get(part.predicate.attribute, 1.0)
            for part in group
            if part.state == "active" and part.predicate.holds(event.tokens)
        ]
        if held:
            total = rounded(fsum(held))
            best = total if best is None else max(best, total)
    return best


def has_ranges(event: Event) -> bool:
    """Return whether some value of the event is only known to lie within a range."""
    return any(isinstance(key, Range) for values in event.tokens.values() for _, key in values)


def own_score(subscription: Subscription) -> float:
    """Return the score of a subscription, which is 1 by default."""
    return 1.0 if subscription.score is None else subscription.score
