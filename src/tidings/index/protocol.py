"""What an index is: a set of subscriptions that knows who may want an event."""

from collections.abc import Callable, Iterable, Mapping
from heapq import nsmallest
from typing import Protocol

from tidings.model.records import Event, Subscription
from tidings.model.values import Range

Score = Callable[[Event, Subscription], float | None]
"""The score of a subscription for an event; None where no predicate of it holds."""


class Index(Protocol):
    """A set of subscriptions that finds those which an event concerns; all answers by id."""

    def add(self, subscription: Subscription) -> None:
        """Add a subscription; its id is new."""

    def remove(self, subscription: str) -> None:
        """Remove a subscription by id."""

    def matching(self, event: Event) -> Iterable[Subscription]:
        """Give the subscriptions that cover the event (PREF Def. 1)."""

    def touching(self, event: Event) -> Iterable[Subscription]:
        """Give the subscriptions of which at least one predicate holds."""

    def top(self, event: Event, k: int, score: Score | None = None) -> list[tuple[str, float]]:
        """Give the k best by `score`, ties by smaller id.

        Without it: the best of those that cover the event, by their own scores (RPS, exact), which
        stand before an event comes; that is what an index can keep in order.
        """

    def top_relaxed(self, event: Event, k: int) -> list[tuple[str, float]]:
        """Give the k best by the weights of the predicates that hold, ties by smaller id.

        That is `top` with the scorer `relaxed` (RPS): their sum, each times the probability of its
        attribute, rounded to 12 decimals; of several conjunctions the best.
        """

    def counters(self) -> Mapping[str, int]:
        """Give how many `predicates` and `subscriptions` were looked at since the index was made.

        A predicate is looked at when it is found or tested, a subscription when it is tested or
        counted.
        """


def best_found(index: Index, event: Event, k: int, score: Score | None) -> list[tuple[str, float]]:
    """Give the answer of `top`, by looking at all that match, or at all that the event touches."""
    if score is None:
        scored = [(each.id, own_score(each)) for each in index.matching(event)]
    else:
        rated = ((each.id, score(event, each)) for each in index.touching(event))
        scored = [(name, value) for name, value in rated if value is not None]
    return nsmallest(k, scored, key=lambda pair: (-pair[1], pair[0]))


def has_ranges(event: Event) -> bool:
    """Tell whether a value of the event is only known to be within a range."""
    return any(isinstance(key, Range) for values in event.tokens.values() for _, key in values)


def own_score(subscription: Subscription) -> float:
    """Give the score that a subscription has by itself: 1 where none is given."""
    return 1.0 if subscription.score is None else subscription.score
