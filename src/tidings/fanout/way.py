"""What a way of ranking at fan-out is, and what it is asked."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from tidings.fanout.wanted import Wanted
from tidings.kernels.weighing import Held
from tidings.model import Event, Subscription
from tidings.policy import Subscriber
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


class Asked(NamedTuple):
    """Events, and what an index found for each: what covers it, or what it touches and how."""

    events: Sequence[Event]
    held: Held  # without parts, if all of them hold
    subscriptions: Sequence[Subscription | None]  # by number


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

    def rank(self, asked: Asked) -> Wanted:
        """Rank events for the owners of what was found."""

    @property
    def nbytes(self) -> int:
        """Bytes of the records."""
