"""Snapshots: the version of the index that a reader holds for as long as it reads."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from tidings.index.access.memtable import Memtable
from tidings.index.access.segment import Segment
from tidings.index.access.subscription_table import SubscriptionTable
from tidings.index.access.vocabulary import Vocabulary
from tidings.model.records import Subscription


class Snapshot(NamedTuple):
    """Segments, the larger ones first, and a memtable, as seen at one version.

    Segments and the memtable are shared with later snapshots. The version hides later tombstones,
    and `size` hides what was appended to the memtable later.
    """

    vocabulary: Vocabulary
    table: SubscriptionTable
    segments: tuple[Segment, ...]
    memtable: Memtable
    size: int  # words of the memtable
    version: int

    @classmethod
    def empty(cls, version: int = 0) -> "Snapshot":
        """Return the snapshot of an index without subscriptions."""
        return cls(Vocabulary(), SubscriptionTable(), (), Memtable(), 0, version)

    def at(self, version: int) -> "Snapshot":
        """Return the same parts, with all that the memtable has by now, at a version."""
        return self._replace(size=self.memtable.size, version=version)


class Listener(Protocol):
    """A stage that keeps arrays by number. It is called while the index waits."""

    def on_added(self, numbers: Sequence[int], subscriptions: Sequence[Subscription]) -> None:
        """Handle new numbers, before any answer contains them."""

    def on_removed(self, numbers: Sequence[int]) -> None:
        """Handle numbers that no later snapshot has; earlier ones may still be read."""
