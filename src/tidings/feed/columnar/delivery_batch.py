"""Deliveries as columns, turned into objects on demand."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.errors import TidingsError
from tidings.feed.columnar.enrolled_subscribers import EnrolledSubscribers
from tidings.feed.columnar.event_table import EventTable
from tidings.feed.columnar.kernels import layout
from tidings.feed.columnar.matched_sets import MatchedSets
from tidings.model.records import Delivery
from tidings.model.values import format_time


@dataclass(frozen=True)
class IdTables:
    """The tables that numbers in columns refer to."""

    subscribers: EnrolledSubscribers
    events: EventTable
    matched: MatchedSets

    @property
    def generation(self) -> int:
        """A number that grows whenever some number is reused."""
        return self.subscribers.generation + self.events.generation + self.matched.generation

    def delivery(self, subscriber: int, window: str, row: Sequence[int], rank: float) -> Delivery:
        """Return the delivery of a row of columns."""
        return Delivery(
            subscriber=self.subscribers.names[subscriber],
            event=self.events.id(row[layout.EVENT]),
            rank=rank,
            position=row[layout.POSITION],
            window=_window_form(window, row),
            matched=self.matched.ids(row[layout.HANDLE]),
            sequence=row[layout.NUMBER],
            delivered_us=row[layout.DECIDED],
            content_json=self.events.contents.get(row[layout.EVENT]),
        )


@dataclass(frozen=True)
class CohortDeliveries:
    """The deliveries of one cohort: the delivery columns of `kernels.layout`, and more.

    `score` has the ranks without decay, which rules need. Deliveries of user-defined parts are
    objects already: they are in `objects`, their subscriber is -1, and column HANDLE is their
    index.
    """

    subscriber: Int64s
    columns: Int64s
    rank: Float64s
    score: Float64s
    window: str
    objects: Sequence[Delivery] = ()


class DeliveryBatch:
    """Deliveries of all cohorts, sorted by column ORDER."""

    def __init__(self, parts: Sequence[CohortDeliveries], tables: IdTables) -> None:
        self._tables, self._generation = tables, tables.generation
        self._parts = parts = parts or [_NONE]
        if len(parts) == 1:
            self.subscriber, self.columns = parts[0].subscriber, parts[0].columns
            self.rank, self.part = parts[0].rank, np.zeros(len(parts[0].rank), np.int64)
        else:
            self.subscriber = np.concatenate([part.subscriber for part in parts])
            self.columns = np.concatenate([part.columns for part in parts])
            self.rank = np.concatenate([part.rank for part in parts])
            self.part = np.repeat(np.arange(len(parts)), [len(part.rank) for part in parts])
        if len(self.rank) > 1:
            order = self.columns[:, layout.ORDER]
            if (order[1:] < order[:-1]).any():
                self._sort(np.argsort(order, kind="stable"))

    def __len__(self) -> int:
        return len(self.rank)

    @property
    def windows(self) -> list[str]:
        """The names of the windows, by `part`."""
        return [part.window for part in self._parts]

    @property
    def has_objects(self) -> bool:
        """True if some of the deliveries are objects already."""
        return any(part.objects for part in self._parts)

    def _sort(self, order: Int64s) -> None:
        self.subscriber, self.columns = self.subscriber[order], self.columns[order]
        self.rank, self.part = self.rank[order], self.part[order]

    def objects(self) -> list[Delivery]:
        """Return the deliveries as objects; call it before the next offers, which reuse numbers."""
        if len(self) and self._generation != self._tables.generation:
            raise TidingsError("these deliveries are old: make objects before the next offers")
        columns = (self.subscriber, self.part, self.columns, self.rank)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [self._object(*row) for row in rows]

    def _object(self, subscriber: int, part: int, row: list[int], rank: float) -> Delivery:
        if subscriber < 0:
            return self._parts[part].objects[row[layout.HANDLE]]
        return self._tables.delivery(subscriber, self._parts[part].window, row, rank)


def object_deliveries(ordered: Sequence[tuple[int, Delivery]]) -> CohortDeliveries:
    """Return deliveries that are objects already, each with its order."""
    columns = np.zeros((len(ordered), layout.DELIVERY_WIDTH), np.int64)
    columns[:, layout.ORDER] = [order for order, _ in ordered]
    columns[:, layout.HANDLE] = np.arange(len(ordered))
    objects = [delivery for _, delivery in ordered]
    ranks = np.array([delivery.rank for delivery in objects], np.float64)
    return CohortDeliveries(np.full(len(ordered), -1), columns, ranks, ranks, "", objects)


_NONE: Final = object_deliveries([])


def _window_form(name: str, row: Sequence[int]) -> dict[str, Any]:
    return {
        "name": name,
        "start": format_time(row[layout.START]),
        "end": format_time(row[layout.STOP]),
        "size": row[layout.WIDTH],
    }
