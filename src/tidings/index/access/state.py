"""What a reader of the index holds: one version of it, for as long as it reads."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from tidings.index.access.segment import Segment
from tidings.index.access.tail import Tail
from tidings.index.access.vocabulary import Vocabulary
from tidings.model import Subscription


class Table:
    """Subscriptions by number. A number is given again only in a later table."""

    def __init__(self, owners: Sequence[Subscription | None] = (), ids: Sequence[str] = ()) -> None:
        self.owners = list(owners)
        self.ids = list(ids)
        self.free: list[int] = []
        self.home = np.full(max(64, len(self.owners)), -1, np.int32)  # the serial of a segment
        self.place = np.zeros(max(64, len(self.owners)), np.int32)  # the rank there

    def take(self, subscription: Subscription) -> int:
        """Give a subscription a number."""
        if self.free:
            number = self.free.pop()
            self.owners[number], self.ids[number] = subscription, subscription.id
            return number
        self.owners.append(subscription)
        self.ids.append(subscription.id)
        if len(self.owners) > len(self.home):
            more = len(self.home) // 4
            self.home = np.concatenate([self.home, np.full(more, -1, np.int32)])
            self.place = np.concatenate([self.place, np.zeros(more, np.int32)])
        return len(self.owners) - 1

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, and of two pointers a number."""
        return self.home.nbytes + self.place.nbytes + 16 * len(self.owners)


class State(NamedTuple):
    """Segments, the larger ones first, and a tail, as they are seen at a version."""

    vocabulary: Vocabulary
    table: Table
    segments: tuple[Segment, ...]
    tail: Tail
    size: int  # words of the tail
    version: int

    @classmethod
    def empty(cls, version: int = 0) -> "State":
        """Give the state of an index without subscriptions."""
        return cls(Vocabulary(), Table(), (), Tail(), 0, version)

    def seen(self, version: int | None = None) -> "State":
        """Give the same with all that the tail has by now, at a version."""
        return self._replace(
            size=self.tail.size, version=self.version if version is None else version
        )


class Listener(Protocol):
    """A stage that keeps arrays by number. It is told while the index waits."""

    def came(self, numbers: Sequence[int], subscriptions: Sequence[Subscription]) -> None:
        """Hear of new numbers, before any answer has them."""

    def went(self, numbers: Sequence[int]) -> None:
        """Hear of numbers that no later state has; earlier ones may still be read."""
