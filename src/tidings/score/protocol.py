"""What a scorer is: how much a subscriber, or one subscription, wants an event."""

from collections.abc import Sequence
from typing import ClassVar, Protocol

from tidings.model.records import Event, Subscription

Prefers = Sequence[tuple[str, str]]


class Ranker(Protocol):
    """A scorer prepared for the subscriptions of one subscriber."""

    def rank(self, event: Event, hits: Sequence[Subscription]) -> float | None:
        """Give the subscriber's rank of `event`; `hits` are its subscriptions that found it."""

    def score(self, event: Event, hit: Subscription) -> float | None:
        """Give the score of one subscription for `event` (the direction "target")."""


class Scorer(Protocol):
    """A part of a policy; `partial` scorers also take subscriptions that only touch an event."""

    name: ClassVar[str]
    partial: ClassVar[bool]

    def prepare(self, subscriptions: Sequence[Subscription], prefers: Prefers) -> Ranker:
        """Prepare for one subscriber's subscriptions and its preferences between them."""


class Decay(Protocol):
    """Forward decay (TKS Def. 4.2.4): how a score fades with the age of its event."""

    name: ClassVar[str]

    def key(self, score: float, published_us: int) -> float:
        """Give the order of fresh scores, larger is better, the same at every time."""

    def fresh(self, score: float, published_us: int, now_us: int) -> float:
        """Give the fresh score at a time not before the publication."""
