"""The protocols of scorers and decays: how much a subscriber wants an event, and how it fades."""

from collections.abc import Sequence
from numbers import Real
from typing import ClassVar, Final, Protocol

from tidings.errors import InvalidPolicy, shown
from tidings.model.records import Event, Subscription

Prefers = Sequence[tuple[str, str]]
"""Pairs of subscription ids, the preferred one first."""
_MOST_RANK: Final = 1e150
"""The squares of ranks, and their sums over a window, stay finite."""


class Ranker(Protocol):
    """A scorer prepared for the subscriptions of one subscriber."""

    def rank(self, event: Event, hits: Sequence[Subscription]) -> float | None:
        """Return the subscriber's rank of `event`; `hits` are its subscriptions that found it."""

    def score(self, event: Event, hit: Subscription) -> float | None:
        """Return the score of one subscription for `event` (the direction "target")."""


class Scorer(Protocol):
    """A part of a policy; a `partial` scorer also scores events that match only some predicates."""

    name: ClassVar[str]
    partial: ClassVar[bool]

    def prepare(self, subscriptions: Sequence[Subscription], prefers: Prefers) -> Ranker:
        """Prepare for one subscriber's subscriptions and its preferences between them."""


def checked_rank(rank: object) -> float | None:
    """Return a rank that a scorer computed; refuse one that cannot be compared with others."""
    if rank is None:
        return None
    if isinstance(rank, Real) and 0 <= float(rank) <= _MOST_RANK:
        return float(rank)
    raise InvalidPolicy(
        f"a scorer must return a rank between 0 and {_MOST_RANK:g}, not {shown(rank)}"
    )


class Decay(Protocol):
    """Forward decay (TKS Def. 4.2.4): how a score fades with the age of its event."""

    name: ClassVar[str]

    def key(self, score: float, published_us: int) -> float:
        """Return a key that orders fresh scores at any time; larger is better."""

    def fresh(self, score: float, published_us: int, now_us: int) -> float:
        """Return the fresh score at a time not before the publication."""
