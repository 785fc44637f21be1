"""The brute force that judges every index: look at all subscriptions."""

from collections.abc import Iterable
from heapq import nsmallest
from math import fsum

from tidings.index.protocol import Score
from tidings.model.records import Event, Subscription
from tidings.model.values import rounded


class Scan:
    """Looks at every subscription for every event."""

    def __init__(self, subscriptions: Iterable[Subscription] = ()) -> None:
        self._subscriptions = {each.id: each for each in subscriptions}
        self._predicates = self._looked = 0

    def add(self, subscription: Subscription) -> None:
        """Add a subscription."""
        self._subscriptions[subscription.id] = subscription

    def remove(self, subscription: str) -> None:
        """Remove a subscription by id."""
        del self._subscriptions[subscription]

    def matching(self, event: Event) -> list[Subscription]:
        """Give the subscriptions that cover the event, by id."""
        return [each for each in self._all() if each.matches(event)]

    def touching(self, event: Event) -> list[Subscription]:
        """Give the subscriptions of which at least one predicate holds, by id."""
        return [each for each in self._all() if each.touches(event)]

    def top(self, event: Event, k: int, score: Score | None = None) -> list[tuple[str, float]]:
        """Give the k best by `score`, ties by smaller id."""
        scored = ((each.id, (score or _exact)(event, each)) for each in self._all())
        found = [(name, value) for name, value in scored if value is not None]
        return nsmallest(k, found, key=lambda pair: (-pair[1], pair[0]))

    def top_relaxed(self, event: Event, k: int) -> list[tuple[str, float]]:
        """Give the k best by the weights of the predicates that hold, ties by smaller id."""
        return self.top(event, k, weights_that_hold)

    def counters(self) -> dict[str, int]:
        """Give how many predicates and subscriptions were looked at so far: all, every time."""
        return {"predicates": self._predicates, "subscriptions": self._looked}

    def _all(self) -> list[Subscription]:
        """Give all by id, and count them."""
        everyone = [self._subscriptions[name] for name in sorted(self._subscriptions)]
        self._looked += len(everyone)
        self._predicates += sum(len(conj) for each in everyone for conj in each.conjunctions)
        return everyone


def _exact(event: Event, subscription: Subscription) -> float | None:
    if not subscription.matches(event):
        return None
    return 1.0 if subscription.score is None else subscription.score


def weights_that_hold(event: Event, subscription: Subscription) -> float | None:
    """Give the sum of the weights that hold, of the best group; None if nothing holds."""
    sums = []
    for group in subscription.groups:
        active = [part for part in group if part.state == "active"]
        held = [part for part in active if part.predicate.holds(event.tokens)]
        sure = [event.probabilities.get(part.predicate.attribute, 1.0) for part in held]
        if held:
            total = fsum(part.weight * each for part, each in zip(held, sure, strict=True))
            sums.append(rounded(total))
    return max(sums, default=None)
