"""What an index is: a set of subscriptions that knows who may want an event."""

from collections.abc import Callable, Iterable
from typing import Protocol

from tidings.model import Event, Subscription

Score = Callable[[Event, Subscription], float | None]


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

    def top(self, event: Event, k: int, score: Score) -> list[tuple[str, float]]:
        """Give the k best by `score`, ties by smaller id."""
