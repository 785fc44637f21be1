"""Exact matching (RPS 2): every predicate holds, and the score is the subscription's own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tidings.model.records import Event, Subscription
from tidings.score.protocol import Prefers


@dataclass(frozen=True)
class Exact:
    """The subscription's `score`, by default 1; the rank of a subscriber is its best score."""

    name: ClassVar[str] = "exact"
    partial: ClassVar[bool] = False

    def prepare(self, subscriptions: Sequence[Subscription], prefers: Prefers) -> "Exact":
        """Return the scorer itself: it depends on one subscription at a time."""
        return self

    def rank(self, event: Event, hits: Sequence[Subscription]) -> float | None:
        """Return the best score of the matching subscriptions."""
        scores = (self.score(event, hit) for hit in hits)
        return max((score for score in scores if score is not None), default=None)

    def score(self, event: Event, hit: Subscription) -> float | None:
        """Return the score of the subscription, if it matches."""
        if not hit.matches(event):
            return None
        return 1.0 if hit.score is None else hit.score
