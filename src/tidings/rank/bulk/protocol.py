"""The protocol of a rank method: one compiled way to turn hits into ranks, and its input."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from tidings.compiled.array_types import Int32s
from tidings.index.access.kernels.partial_match import Hits
from tidings.index.access.kernels.validate import CheckedParts, largest_parts
from tidings.model.records import Event, Subscription
from tidings.policy import Subscriber
from tidings.rank.matches import Matches
from tidings.score import Scorer


class Owner(NamedTuple):
    """A subscriber with its number, and its subscriptions by theirs."""

    number: int
    subscriber: Subscriber
    subscriptions: Mapping[int, Subscription]

    @property
    def scorer(self) -> Scorer:
        """The scorer of the subscriber."""
        scorer: Scorer = self.subscriber.policy.scorer
        return scorer


class Unranked(NamedTuple):
    """An event that a subscriber's scorer failed to rank: its place, the subscriber, and why."""

    event: int
    owner: int
    reason: str


class RankRequest(NamedTuple):
    """Events, and the subscriptions that an index found for them.

    An owner whose scorer fails is not ranked again. Where `unranked` is a list, the failure is
    appended to it instead and the owner stays, so that the result of an event depends on no other.
    """

    events: Sequence[Event]
    hits: Hits
    subscriptions: Sequence[Subscription | None]  # by number
    unranked: list[Unranked] | None = None


class IndexExtent(NamedTuple):
    """The sizes that arrays by number must have: those of the index of a file."""

    subscriptions: int
    owners: int
    checked: CheckedParts  # which predicates the records of the index check
    largest_parts: Int32s  # by subscription: the largest of these, or -1

    @classmethod
    def of(cls, owners: int, checked: CheckedParts) -> "IndexExtent":
        """Return the extent of an index with this many owners."""
        largest = np.full(len(checked.numbers), -1, np.int32)
        largest_parts(checked.part, checked.numbers, checked.firsts, largest)
        return cls(len(largest), owners, checked, largest)


class RankMethod(Protocol):
    """Turns the hits of an index into one rank per owner, for the scorers that it supports.

    An owner whose subscriptions were never written, or were removed, gets no rank.
    """

    partial: bool
    """Whether it needs the subscriptions that an event touches, not only those that cover it."""

    def supports(self, scorer: Scorer) -> bool:
        """Return whether this gives exactly the ranks of a scorer."""

    def update(self, owners: Sequence[Owner]) -> None:
        """Write everything about some owners, replacing what was written before."""

    def remove(self, numbers: Sequence[int]) -> None:
        """Remove subscriptions; their numbers may be reused."""

    def forget(self, owner: int) -> None:
        """Forget an owner whose subscriptions were removed; its number may be reused."""

    def rank(self, request: RankRequest) -> Matches:
        """Rank events for the owners of the hits."""

    @property
    def nbytes(self) -> int:
        """Bytes of the records."""
