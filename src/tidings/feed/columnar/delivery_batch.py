"""Deliveries as arrays, made into objects where somebody wants them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.errors import TidingsError
from tidings.feed.columnar.event_table import EventTable
from tidings.feed.columnar.kernels import layout as at
from tidings.feed.columnar.matched_sets import MatchedSets
from tidings.feed.columnar.subscriber_table import Subscribers
from tidings.model.records import Delivery
from tidings.model.values import format_time


@dataclass(frozen=True)
class Names:
    """What numbers stand for: subscribers, events, sets of subscriptions."""

    subscribers: Subscribers
    events: EventTable
    matched: MatchedSets

    @property
    def generation(self) -> int:
        """Grows whenever a number is given anew."""
        return sum(each.generation for each in (self.subscribers, self.events, self.matched))

    def delivery(self, subscriber: int, kind: str, row: Sequence[int], rank: float) -> Delivery:
        """Make the delivery of a row of columns."""
        return Delivery(
            subscriber=self.subscribers.names[subscriber],
            event=self.events.id(row[at.EVENT]),
            rank=rank,
            position=row[at.POSITION],
            window=_extent(kind, row),
            matched=self.matched.ids(row[at.HANDLE]),
            sequence=row[at.NUMBER],
            delivered_us=row[at.WHEN],
        )


@dataclass(frozen=True)
class Part:
    """What one cohort delivers: subscribers' numbers, columns, ranks, and the window's name.

    The columns are those of `kernels.window_layout`, from AT, by which parts are merged, on. What
    is an object already stands in `made`; its subscriber is -1 and column HANDLE its place.
    """

    subscriber: Int64s
    columns: Int64s
    rank: Float64s
    kind: str
    made: Sequence[Delivery] = ()


class Deliveries:
    """Deliveries in order, as arrays."""

    def __init__(self, parts: Sequence[Part], names: Names) -> None:
        self._names, self._generation = names, names.generation
        self._parts = parts = parts or [made_already([])]
        sizes = [len(part.rank) for part in parts]
        self.subscriber = np.concatenate([part.subscriber for part in parts])
        self.columns = np.concatenate([part.columns for part in parts])
        self.rank = np.concatenate([part.rank for part in parts])
        self.part = np.repeat(np.arange(len(parts)), sizes)
        if len(parts) > 1 or np.any(np.diff(self.columns[:, at.AT]) < 0):
            self._sort(np.argsort(self.columns[:, at.AT], kind="stable"))

    def __len__(self) -> int:
        return len(self.rank)

    @property
    def kinds(self) -> list[str]:
        """The names of the windows, by `part`."""
        return [part.kind for part in self._parts]

    @property
    def made(self) -> bool:
        """Whether some of them are objects already."""
        return any(part.made for part in self._parts)

    def _sort(self, order: Int64s) -> None:
        self.subscriber, self.columns = self.subscriber[order], self.columns[order]
        self.rank, self.part = self.rank[order], self.part[order]

    def objects(self) -> list[Delivery]:
        """Make the objects; before the feeds take more, since numbers are given again."""
        if self._generation != self._names.generation:
            raise TidingsError("these deliveries are old: make objects before the next offers")
        columns = (self.subscriber, self.part, self.columns, self.rank)
        rows = zip(*(each.tolist() for each in columns), strict=True)
        return [self._object(*row) for row in rows]

    def _object(self, subscriber: int, part: int, row: list[int], rank: float) -> Delivery:
        if subscriber < 0:
            return self._parts[part].made[row[at.HANDLE]]
        return self._names.delivery(subscriber, self._parts[part].kind, row, rank)


def made_already(placed: Sequence[tuple[int, Delivery]]) -> Part:
    """Give deliveries that are objects, each with its place, as a part."""
    columns = np.zeros((len(placed), at.OUT_WIDTH), np.int64)
    columns[:, at.AT] = [place for place, _ in placed]
    columns[:, at.HANDLE] = np.arange(len(placed))
    made = [each for _, each in placed]
    ranks = np.array([each.rank for each in made], np.float64)
    return Part(np.full(len(placed), -1), columns, ranks, "", made)


def _extent(name: str, row: Sequence[int]) -> dict[str, Any]:
    return {
        "name": name,
        "start": format_time(row[at.START]),
        "end": format_time(row[at.STOP]),
        "size": row[at.WIDTH],
    }
