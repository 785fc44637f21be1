"""What a way of ranking at fan-out is, and what it is asked."""

from collections.abc import Mapping, Sequence
from math import inf
from numbers import Real
from typing import NamedTuple, Protocol

import numpy as np

from tidings.compiled.array_types import Int32s
from tidings.errors import InvalidPolicy, shown
from tidings.index.access.kernels.validate import Posed, most_parts
from tidings.model.records import Event, Subscription
from tidings.policy import Subscriber
from tidings.rank.bulk.kernels.relaxed import Held
from tidings.rank.matches import Matches
from tidings.score import Scorer


class Owner(NamedTuple):
    """A subscriber with its number, and its subscriptions by theirs."""

    number: int
    subscriber: Subscriber
    owned: Mapping[int, Subscription]

    @property
    def scorer(self) -> Scorer:
        """How the subscriber ranks."""
        scorer: Scorer = self.subscriber.policy.scorer
        return scorer


def checked_rank(rank: object) -> float | None:
    """Return a rank that a scorer gave; refuse one that could not be compared with others."""
    if rank is None:
        return None
    if isinstance(rank, Real) and 0 <= float(rank) < inf:
        return float(rank)
    raise InvalidPolicy(f"a scorer must give a finite rank of at least 0, not {shown(rank)}")


class Unranked(NamedTuple):
    """An event that a subscriber's scorer failed to rank: its place, the subscriber, and why."""

    event: int
    owner: int
    reason: str


class Asked(NamedTuple):
    """Events, and what an index found for each: what covers it, or what it touches and how.

    An owner whose scorer fails is not ranked for again. Where `unranked` is a list, the event is
    noted there instead and the owner stays, so that the answer for an event depends on no other.
    """

    events: Sequence[Event]
    held: Held  # without parts, if all of them hold
    subscriptions: Sequence[Subscription | None]  # by number
    unranked: list[Unranked] | None = None


class Extent(NamedTuple):
    """What arrays by number have to fit: the subscriptions and owners of an index."""

    numbers: int
    owners: int
    posed: Posed  # which predicates the records of the index check
    most_parts: Int32s  # by number of a subscription: the largest of them, or -1

    @classmethod
    def of(cls, owners: int, posed: Posed) -> "Extent":
        """Return the extent of an index with so many owners."""
        most = np.full(len(posed.numbers), -1, np.int32)
        most_parts(posed.part, posed.numbers, posed.firsts, most)
        return cls(len(most), owners, posed, most)


class Way(Protocol):
    """How the subscriptions that were found become a rank for each of their owners.

    An owner whose subscriptions are not laid, or were cleared, gets none.
    """

    partial: bool
    """Whether it asks for what an event touches, not only for what covers it."""

    def takes(self, scorer: Scorer) -> bool:
        """Tell whether this gives exactly what a scorer would."""

    def lay(self, owners: Sequence[Owner]) -> None:
        """Write all that is to be known of some owners, in the place of what was known."""

    def clear(self, numbers: Sequence[int]) -> None:
        """Forget subscriptions; their numbers may come again."""

    def forget(self, owner: int) -> None:
        """Forget an owner whose subscriptions were cleared; its number may come again."""

    def rank(self, asked: Asked) -> Matches:
        """Rank events for the owners of what was found."""

    @property
    def nbytes(self) -> int:
        """Bytes of the records."""
