"""The brute force that judges every index: test all subscriptions.

It reads like the definitions and shares no code with any index.
"""

from collections.abc import Callable, Iterable
from heapq import nsmallest
from math import fsum

from tidings.model.records import Event, Subscription
from tidings.model.values import rounded


class Scan:
    """Tests every subscription for every event."""

    def __init__(self, subscriptions: Iterable[Subscription] = ()) -> None:
        self._subscriptions = {subscription.id: subscription for subscription in subscriptions}
        self._by_id: list[Subscription] | None = None  # after a change: None
        self._predicates = self._tested = self._size = 0

    def add(self, subscription: Subscription) -> None:
        """Add a subscription."""
        self._subscriptions[subscription.id] = subscription
        self._by_id = None

    def remove(self, subscription: str) -> None:
        """Remove a subscription by id."""
        del self._subscriptions[subscription]
        self._by_id = None

    def matching(self, event: Event) -> list[Subscription]:
        """Return the subscriptions that cover the event, by id."""
        return [subscription for subscription in self._all() if subscription.matches(event)]

    def touching(self, event: Event) -> list[Subscription]:
        """Return the subscriptions of which at least one predicate holds, by id."""
        return [subscription for subscription in self._all() if subscription.touches(event)]

    def top(
        self,
        event: Event,
        k: int,
        score: Callable[[Event, Subscription], float | None] | None = None,
    ) -> list[tuple[str, float]]:
        """Return the k best by `score`, ties by smaller id."""
        scored = (
            (subscription.id, (score or _exact)(event, subscription))
            for subscription in self._all()
        )
        present = [(name, value) for name, value in scored if value is not None]
        return nsmallest(k, present, key=lambda pair: (-pair[1], pair[0]))

    def top_relaxed(self, event: Event, k: int) -> list[tuple[str, float]]:
        """Return the k best by the weights of the predicates that hold, ties by smaller id."""
        return self.top(event, k, _relaxed)

    def counters(self) -> dict[str, int]:
        """Return how many predicates and subscriptions were tested so far: all, every time."""
        return {"predicates": self._predicates, "subscriptions": self._tested}

    def _all(self) -> list[Subscription]:
        """Return all subscriptions by id, and count them."""
        if self._by_id is None:
            self._by_id = [self._subscriptions[name] for name in sorted(self._subscriptions)]
            self._size = sum(
                len(group) for subscription in self._by_id for group in subscription.conjunctions
            )
        self._tested += len(self._by_id)
        self._predicates += self._size
        return self._by_id


def _exact(event: Event, subscription: Subscription) -> float | None:
    """Return the own score of a subscription that covers the event (RPS, exact)."""
    if not subscription.matches(event):
        return None
    return 1.0 if subscription.score is None else subscription.score


def _relaxed(event: Event, subscription: Subscription) -> float | None:
    """Return the sum of the weights that hold in the best group (RPS); None if nothing holds."""
    sums = []
    for group in subscription.groups:
        active = [part for part in group if part.state == "active"]
        held = [part for part in active if part.predicate.holds(event.tokens)]
        chances = [event.probabilities.get(part.predicate.attribute, 1.0) for part in held]
        if held:
            total = fsum(part.weight * chance for part, chance in zip(held, chances, strict=True))
            sums.append(rounded(total))
    return max(sums, default=None)
