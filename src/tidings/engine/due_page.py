"""Deliveries that are due, in order: as objects, or as columns where they are many."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import numpy as np
import pyarrow as pa

from tidings.compiled.array_types import Int64s
from tidings.feed.columnar.delivery_batch import DeliveryBatch, IdTables
from tidings.feed.columnar.delivery_table import DeliveryColumns, resolved
from tidings.formats.arrow import deliveries_to_table
from tidings.model.records import Delivery

FEW: Final = 32
"""Up to this many deliveries, one object for each takes less time than columns."""


@dataclass(frozen=True)
class DuePage:
    """Deliveries in order; `turns` has the number of the event of a run that each is due with."""

    deliveries: Sequence[Delivery] | DeliveryColumns
    turns: Int64s

    @classmethod
    def of(cls, deliveries: Sequence[Delivery], turn: int = 0) -> "DuePage":
        """Return a page of objects that are due with one event."""
        return (
            cls(deliveries, np.full(len(deliveries), turn, np.int64)) if deliveries else NOTHING_DUE
        )

    @classmethod
    def of_batch(cls, batch: DeliveryBatch, turns: Int64s, tables: IdTables) -> "DuePage":
        """Return a page of a batch, as it is."""
        few = batch.has_objects or len(batch) <= FEW
        return cls(batch.objects() if few else resolved(batch, tables), turns)

    def __len__(self) -> int:
        return len(self.turns)

    def from_turn(self, first: int) -> "DuePage":
        """Return the page of a part of a run that starts with a turn."""
        return DuePage(self.deliveries, self.turns + first) if first else self

    def by_turn_and_subscriber(self) -> "DuePage":
        """Return the deliveries ordered by turn, and within a turn by subscriber."""
        deliveries = self.deliveries
        if isinstance(deliveries, DeliveryColumns):
            return self._take(np.lexsort((deliveries.subscriber, self.turns)))
        turns = self.turns.tolist()
        order = sorted(
            range(len(turns)), key=lambda place: (turns[place], deliveries[place].subscriber)
        )
        return self._take(np.array(order, np.int64))

    def _take(self, rows: Int64s) -> "DuePage":
        if isinstance(self.deliveries, DeliveryColumns):
            return DuePage(self.deliveries.take(rows), self.turns[rows])
        return DuePage([self.deliveries[row] for row in rows.tolist()], self.turns[rows])

    def split(self, subscribers: AbstractSet[str]) -> tuple["DuePage", "DuePage"]:
        """Return the deliveries of other subscribers, and those of these."""
        deliveries = self.deliveries
        if isinstance(deliveries, DeliveryColumns):
            among = np.array([name in subscribers for name in deliveries.subscribers], np.bool_)
            mask = among[deliveries.subscriber]
        else:
            mask = np.array([each.subscriber in subscribers for each in deliveries], np.bool_)
        return self._take(np.flatnonzero(~mask)), self._take(np.flatnonzero(mask))

    def objects(self) -> Sequence[Delivery]:
        """Return the deliveries as objects."""
        deliveries = self.deliveries
        return deliveries.objects() if isinstance(deliveries, DeliveryColumns) else deliveries

    def table(self) -> pa.Table:
        """Return the deliveries as a table DELIVERIES."""
        deliveries = self.deliveries
        if isinstance(deliveries, DeliveryColumns):
            return deliveries.table()
        return deliveries_to_table(deliveries)

    def objects_by_turn(self) -> list[tuple[int, list[Delivery]]]:
        """Return the deliveries as objects, turn by turn."""
        pairs = zip(self.turns.tolist(), self.objects(), strict=True)
        by_turn = groupby(pairs, key=lambda pair: pair[0])
        return [(turn, [delivery for _, delivery in group]) for turn, group in by_turn]


NOTHING_DUE: Final = DuePage((), np.zeros(0, np.int64))
