"""The brute force that judges every index: look at all subscriptions."""

from collections.abc import Iterable
from heapq import nsmallest

from tidings.index.protocol import Score
from tidings.model import Event, Subscription


class Scan:
    """Looks at every subscription for every event."""

    def __init__(self, subscriptions: Iterable[Subscription] = ()) -> None:
        self._subscriptions = {each.id: each for each in subscriptions}

    def add(self, subscription: Subscription) -> None:
        """Add a subscription."""
        self._subscriptions[subscription.id] = subscription

    def remove(self, subscription: str) -> None:
        """Remove a subscription by id."""
        del self._subscriptions[subscription]

    def matching(self, event: Event) -> list[Subscription]:
        """Give the subscriptions that cover the event, by id."""
        return [each for each in self._by_id() if each.matches(event)]

    def touching(self, event: Event) -> list[Subscription]:
        """Give the subscriptions of which at least one predicate holds, by id."""
        return [each for each in self._by_id() if each.touches(event)]

    def top(self, event: Event, k: int, score: Score) -> list[tuple[str, float]]:
        """Give the k best by `score`, ties by smaller id."""
        scored = ((each.id, score(event, each)) for each in self._subscriptions.values())
        found = [(name, value) for name, value in scored if value is not None]
        return nsmallest(k, found, key=lambda pair: (-pair[1], pair[0]))

    def _by_id(self) -> list[Subscription]:
        return [self._subscriptions[name] for name in sorted(self._subscriptions)]
