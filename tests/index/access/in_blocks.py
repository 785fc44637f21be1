"""An access index that scans every row in blocks, however selective its checks are."""

from collections.abc import Iterable
from unittest.mock import patch

from tidings.index.access import Access, scan_blocks
from tidings.model.records import Subscription

EVERY_ROW = patch.multiple(
    scan_blocks, FEWEST_ROWS=1, UNSELECTIVE=-1.0, FIRST_BAND=64, COLUMN_NS=0.0
)


class InBlocks(Access):
    """Segments of at least `memtable_size` subscriptions, without posting lists."""

    def __init__(
        self, subscriptions: Iterable[Subscription] = (), memtable_size: int | None = 0
    ) -> None:
        super().__init__((), memtable_size)
        self.add_many(subscriptions)

    def add(self, subscription: Subscription) -> None:
        with EVERY_ROW:
            super().add(subscription)

    def add_many(self, subscriptions: Iterable[Subscription]) -> None:
        with EVERY_ROW:
            super().add_many(subscriptions)

    def remove_many(self, subscriptions: Iterable[str]) -> None:
        with EVERY_ROW:
            super().remove_many(subscriptions)

    def rescore_many(self, scores: dict[str, float]) -> None:
        with EVERY_ROW:
            super().rescore_many(scores)

    def settle(self) -> None:
        with EVERY_ROW:
            super().settle()
