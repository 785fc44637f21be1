"""The forms of deliveries, from the numbers that kernels write to the objects that callers receive.

CohortDeliveries --> DeliveryBatch          numbers of the feeds; valid until the next offers
DeliveryBatch    --> DeliveryColumns        columns with tables of their own: many deliveries
                 --> list of Delivery       objects: few of them
DuePage          = one of the last two, in order, with the turn of the run that each is due in
"""

import json
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.compiled.array_types import AnyArray, Float64s, Int64s
from tidings.compiled.arrays import offsets, run_indexes
from tidings.compiled.simd import BLOCK
from tidings.errors import TidingsError
from tidings.feed.columnar.event_table import EventTable
from tidings.feed.columnar.id_tables import (
    EnrolledSubscribers,
    MatchedSets,
    ascending_places,
    gathered,
)
from tidings.feed.columnar.kernels import layout
from tidings.feed.columnar.kernels.texts import (
    LONGEST_NUMBER,
    LONGEST_TIME,
    MOST_SORTED,
    TextPool,
    sort_runs,
    write_windows,
)
from tidings.formats.arrow import DELIVERIES, deliveries_to_table
from tidings.model.records import Delivery
from tidings.model.values import LATEST_US, format_time

_MOST_KEYS: Final = 2**62
_MOST_BYTES: Final = 2**31 - 1
_SCARCE: Final = 16
"""Slots for each delivery, from which it takes less time to sort those of deliveries."""


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


# Deliveries as columns that outlive the numbers of the feeds: as an Arrow table, or as objects.
#
# Neither form takes a Python call for each delivery, only for what is different among them.


def delivery_table(batch: DeliveryBatch, tables: IdTables) -> pa.Table:
    """Return the columns of DELIVERIES; call it before the feeds take more matches.

    Deliveries by a user-defined distance are objects already and are written as such.
    """
    if batch.has_objects:
        return deliveries_to_table(batch.objects())
    return resolved(batch, tables).table()


class DeliveryNumbers(NamedTuple):
    """The numbers of ids in the feeds, valid until these take more matches.

    `subscribers` and `subscriptions` are all ids by number; `generations` change when a number of
    either is reused.
    """

    subscribers: Sequence[str]
    subscriber: Int64s
    subscriptions: Sequence[str]
    matched: Int64s
    generations: tuple[int, int]


@dataclass(frozen=True)
class DeliveryColumns:
    """Deliveries by column; events and windows are places in lists of different ones.

    `columns` are the delivery columns of `kernels.layout`. The matched subscriptions of delivery i
    are `matched[matched_starts[i]:matched_starts[i + 1]]`, ascending.
    """

    subscriber: pa.StringArray
    events: Sequence[str]
    contents: Sequence[str | None]
    event: Int64s
    windows: Sequence[str]
    window: Int64s
    matched_starts: Int64s
    matched: pa.StringArray
    columns: Int64s
    rank: Float64s
    numbers: DeliveryNumbers | None = None

    def __len__(self) -> int:
        return len(self.rank)

    @property
    def delivered_us(self) -> Int64s:
        """The time of each decision."""
        return self.columns[:, layout.DECIDED]

    def take(self, rows: Int64s) -> "DeliveryColumns":
        """Return some of the deliveries, in the order in which they are listed."""
        sizes = np.diff(self.matched_starts)[rows]
        members, numbers = run_indexes(self.matched_starts[rows], sizes), self.numbers
        if numbers is not None:
            numbers = numbers._replace(
                subscriber=numbers.subscriber[rows], matched=numbers.matched[members]
            )
        return replace(
            self,
            subscriber=self.subscriber.take(pa.array(rows)),
            event=self.event[rows],
            window=self.window[rows],
            matched_starts=offsets(sizes),
            matched=self.matched.take(pa.array(members)),
            columns=self.columns[rows],
            rank=self.rank[rows],
            numbers=numbers,
        )

    def to_remember(self) -> "DeliveryColumns":
        """Return the deliveries without the content of their events, and without numbers."""
        return replace(self, contents=[None] * len(self.contents), numbers=None)

    def table(self) -> pa.Table:
        """Return the columns of DELIVERIES."""
        columns = self.columns
        delivered_us = pa.array(self.delivered_us, pa.int64())
        return pa.table(
            {
                "subscriber": self.subscriber,
                "event": _taken(self.events, self.event),
                "rank": self.rank,
                "position": columns[:, layout.POSITION],
                "window": self._window_texts(),
                "matched": pa.ListArray.from_arrays(
                    pa.array(self.matched_starts, pa.int32()), self.matched
                ),
                "sequence": columns[:, layout.NUMBER],
                "delivered_at": delivered_us.cast(DELIVERIES.field("delivered_at").type),
                "content": _taken(self.contents, self.event),
            },
            schema=DELIVERIES,
        )

    def _window_texts(self) -> pa.ChunkedArray:
        """Return the JSON form of the window of each delivery.

        A chunk has as many as Arrow's 32-bit offsets surely allow.
        """
        heads = [f'{{"name": {json.dumps(name)}, "start": "' for name in self.windows]
        pieces = [piece.encode() for piece in (*heads, '", "end": "', '", "size": ', "}")]
        ends = np.cumsum([len(piece) for piece in pieces])
        bounds = np.stack([ends - [len(piece) for piece in pieces], ends], axis=1)
        longest = max(map(len, pieces)) + sum(map(len, pieces[-3:]))
        longest += 2 * LONGEST_TIME + LONGEST_NUMBER
        joined = bytearray().join((*pieces, bytes(BLOCK)))
        pool = TextPool(bounds, np.frombuffer(joined, np.uint8))
        most = max(1, _MOST_BYTES // longest)
        parts = [slice(at, at + most) for at in range(0, len(self), most)]
        chunks = [
            _written_windows(self.columns[part], self.window[part], pool, longest) for part in parts
        ]
        return pa.chunked_array(chunks, pa.string())

    def _extents(self) -> tuple[Int64s, Int64s, Int64s]:
        """Return the different times at which windows start or end, and the places of each."""
        extents = self.columns[:, [layout.START, layout.STOP]]
        times, places = np.unique(extents, return_inverse=True)
        start, stop = places.reshape(extents.shape).T
        return times, start, stop

    def objects(self) -> list[Delivery]:
        """Return the deliveries as objects."""
        times, start, stop = self._extents()
        texts = _format_times(times).to_pylist()
        numbers = self.columns[:, [layout.POSITION, layout.WIDTH, layout.NUMBER, layout.DECIDED]]
        rows = zip(
            self.subscriber.to_pylist(),
            _picked(self.events, self.event),
            self.rank.tolist(),
            _picked(self.windows, self.window),
            _picked(texts, start),
            _picked(texts, stop),
            self._matched_ids(),
            _picked(self.contents, self.event),
            numbers.tolist(),
            strict=True,
        )
        return [
            Delivery.known(
                subscriber=subscriber,
                event=event,
                rank=rank,
                position=position,
                window={"name": window, "start": first, "end": last, "size": size},
                matched=matched,
                sequence=sequence,
                delivered_us=delivered_us,
                content_json=content,
            )
            for subscriber, event, rank, window, first, last, matched, content, (
                position,
                size,
                sequence,
                delivered_us,
            ) in rows
        ]

    def _matched_ids(self) -> list[tuple[str, ...]]:
        """Return the ids of the subscriptions that matched, delivery by delivery."""
        ids = self.matched.to_pylist()
        return [tuple(ids[first:last]) for first, last in pairwise(self.matched_starts.tolist())]


def resolved(
    batch: DeliveryBatch, tables: IdTables, rows: Int64s | slice = slice(None)
) -> DeliveryColumns:
    """Return a batch, or some rows of it in their order, with ids instead of numbers.

    None of its deliveries may be an object.
    """
    columns, subscriber = batch.columns[rows], batch.subscriber[rows]
    slots, event = _distinct(columns[:, layout.EVENT], len(tables.events.us))
    starts, members = tables.matched.members(columns[:, layout.HANDLE].astype(np.int32))
    matched, texts = _ascending_runs(tables.matched, starts, members.astype(np.int64))
    subscribers = tables.subscribers
    pool = subscribers.texts.pool(len(subscriber))
    return DeliveryColumns(
        subscriber=(
            pa.array(_picked(subscribers.names, subscriber), pa.string())
            if pool is None
            else gathered(pool, subscriber)
        ),
        events=_picked(tables.events.ids, slots),
        contents=[*map(tables.events.contents.get, slots.tolist())],
        event=event,
        windows=batch.windows,
        window=batch.part[rows],
        matched_starts=starts,
        matched=texts,
        columns=columns,
        rank=batch.rank[rows],
        numbers=DeliveryNumbers(
            subscribers.names,
            subscriber,
            tables.matched.names,
            matched,
            (subscribers.generation, tables.matched.generation),
        ),
    )


def _distinct(slots: Int64s, size: int) -> tuple[Int64s, Int64s]:
    """Return the distinct slots in order, and the place of each slot among them.

    They are below a size. Sorting many of them takes longer than marking them.
    """
    if size > _SCARCE * len(slots):
        distinct, places = np.unique(slots, return_inverse=True)
        return distinct, places
    numbers = np.zeros(size, np.int64)
    numbers[slots] = 1
    distinct = np.flatnonzero(numbers)
    numbers[distinct] = np.arange(len(distinct))
    return distinct, numbers[slots]


def order_by_turn(batch: DeliveryBatch, turns: Int64s, tables: IdTables) -> Int64s:
    """Return the rows of a batch by turn, and within a turn by the id of the subscriber."""
    names, subscriber = tables.subscribers.names, batch.subscriber
    places = tables.subscribers.texts.order(len(batch))
    if places is None:  # only those that occur are put in order
        numbers, subscriber = np.unique(subscriber, return_inverse=True)
        places = ascending_places(_picked(names, numbers))
    keys = turns * len(places) + places[subscriber]
    if (int(turns.max()) + 1) * len(places) < _MOST_KEYS // len(keys):
        # Sorting keys that contain their rows is several times as fast as a stable sort.
        rows = np.arange(len(keys))
        ordered: Int64s = np.sort(keys * len(keys) + rows) % len(keys)
        return ordered
    return np.argsort(keys, kind="stable")


def _ascending_runs(
    matched: MatchedSets, starts: Int64s, members: Int64s
) -> tuple[Int64s, pa.StringArray]:
    """Return numbers of subscriptions, ascending by id within each run, and their ids."""
    pool, names = matched.texts.pool(len(members)), matched.names
    sizes = np.diff(starts)
    if pool is not None:
        sort_runs(pool, starts, members)
    for run in np.flatnonzero(sizes > (1 if pool is None else MOST_SORTED)).tolist():
        run_of = slice(*starts[run : run + 2].tolist())
        members[run_of] = sorted(members[run_of].tolist(), key=names.__getitem__)
    if pool is not None:
        return members, gathered(pool, members)
    return members, pa.array(_picked(names, members), pa.string())


def _written_windows(
    columns: Int64s, window: Int64s, pool: TextPool, longest: int
) -> pa.StringArray:
    """Return the JSON form of some windows, none of which is longer than `longest` bytes."""
    # NumPy asks for huge pages, which the system clears as a whole, also behind the texts.
    buffer = pa.allocate_buffer(len(columns) * longest + BLOCK)
    starts = np.empty(len(columns) + 1, np.int32)
    write_windows(columns, window, pool, starts, np.frombuffer(buffer, np.uint8))
    return pa.StringArray.from_buffers(len(columns), pa.py_buffer(starts), buffer)


def _taken(texts: Sequence[str | None], places: AnyArray) -> pa.Array:
    return pa.array(texts, pa.string()).take(pa.array(places))


def _picked(values: Sequence[Any], places: AnyArray) -> list[Any]:
    return list(map(values.__getitem__, places.tolist()))


def _format_times(times: Int64s) -> pa.Array:
    """Return microseconds since the epoch, in ascending order, as `format_time` prints them."""
    if len(times) and times[0] < 0:  # strftime of Arrow is for times after the epoch
        return pa.array([format_time(us) for us in times.tolist()], pa.string())
    bounded = np.minimum(times, LATEST_US)
    whole = pc.strftime(pa.array(bounded).cast(pa.timestamp("us")), "%Y-%m-%dT%H:%M:%S")
    return pc.binary_join_element_wise(pc.replace_substring(whole, ".000000", ""), "Z", "")


# Deliveries that are due, in order: as objects, or as columns where they are many.

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

    @classmethod
    def ordered(cls, batch: DeliveryBatch, turns: Int64s, tables: IdTables) -> "DuePage":
        """Return a page of a batch, ordered by turn, and within a turn by subscriber."""
        if batch.has_objects or len(batch) <= FEW:
            objects, numbers = batch.objects(), turns.tolist()
            order = sorted(
                range(len(objects)), key=lambda row: (numbers[row], objects[row].subscriber)
            )
            return cls([objects[row] for row in order], turns[order])
        rows = order_by_turn(batch, turns, tables)
        return cls(resolved(batch, tables, rows), turns[rows])

    def __len__(self) -> int:
        return len(self.turns)

    def from_turn(self, first: int) -> "DuePage":
        """Return the page of a part of a run that starts with a turn."""
        return DuePage(self.deliveries, self.turns + first) if first else self

    def _take(self, rows: Int64s) -> "DuePage":
        if isinstance(self.deliveries, DeliveryColumns):
            return DuePage(self.deliveries.take(rows), self.turns[rows])
        return DuePage([self.deliveries[row] for row in rows.tolist()], self.turns[rows])

    def split(self, subscribers: AbstractSet[str]) -> tuple["DuePage", "DuePage"]:
        """Return the deliveries of other subscribers, and those of these."""
        deliveries = self.deliveries
        if isinstance(deliveries, DeliveryColumns):
            among = pc.is_in(deliveries.subscriber, pa.array(sorted(subscribers), pa.string()))
            mask = among.to_numpy(zero_copy_only=False)
        else:
            mask = np.array(
                [delivery.subscriber in subscribers for delivery in deliveries], np.bool_
            )
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
