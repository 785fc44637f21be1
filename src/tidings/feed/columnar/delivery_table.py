"""Deliveries as columns that outlive the numbers of the feeds: as an Arrow table, or as objects.

Neither form takes a Python call for each delivery, only for what is different among them.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.compiled.array_types import AnyArray, Float64s, Int64s
from tidings.feed.columnar.delivery_batch import DeliveryBatch, IdTables
from tidings.feed.columnar.kernels import layout
from tidings.formats.arrow import DELIVERIES, deliveries_to_table
from tidings.model.records import Delivery
from tidings.model.values import LATEST_US, format_time
from tidings.rank.matches import offsets, spans


def delivery_table(batch: DeliveryBatch, tables: IdTables) -> pa.Table:
    """Return the columns of DELIVERIES; call it before the feeds take more matches.

    Deliveries by a user-defined distance are objects already and are written as such.
    """
    if batch.has_objects:
        return deliveries_to_table(batch.objects())
    return resolved(batch, tables).table()


@dataclass(frozen=True)
class DeliveryColumns:
    """Deliveries by column; ids are places in lists of different ones, ascending but for events.

    `columns` are the delivery columns of `kernels.layout`. The matched subscriptions of delivery i
    are `matched[matched_starts[i]:matched_starts[i + 1]]`, ascending.
    """

    subscribers: Sequence[str]
    subscriber: Int64s
    events: Sequence[str]
    contents: Sequence[str | None]
    event: Int64s
    windows: Sequence[str]
    window: Int64s
    subscriptions: Sequence[str]
    matched_starts: Int64s
    matched: Int64s
    columns: Int64s
    rank: Float64s

    def __len__(self) -> int:
        return len(self.rank)

    @property
    def delivered_us(self) -> Int64s:
        """The time of each decision."""
        return self.columns[:, layout.DECIDED]

    def take(self, rows: Int64s) -> "DeliveryColumns":
        """Return some of the deliveries, in the order in which they are listed."""
        sizes = np.diff(self.matched_starts)[rows]
        return replace(
            self,
            subscriber=self.subscriber[rows],
            event=self.event[rows],
            window=self.window[rows],
            matched_starts=offsets(sizes),
            matched=self.matched[spans(self.matched_starts[rows], sizes)],
            columns=self.columns[rows],
            rank=self.rank[rows],
        )

    def matched_subscriptions(self) -> list[str]:
        """Return the different subscriptions that matched; `take` may have left some out."""
        used = np.flatnonzero(np.bincount(self.matched, minlength=len(self.subscriptions)))
        return _picked(self.subscriptions, used)

    def without_content(self) -> "DeliveryColumns":
        """Return the deliveries without the content of their events."""
        return replace(self, contents=[None] * len(self.contents))

    def table(self) -> pa.Table:
        """Return the columns of DELIVERIES."""
        columns = self.columns
        delivered_us = pa.array(self.delivered_us, pa.int64())
        matched = _taken(self.subscriptions, self.matched)
        return pa.table(
            {
                "subscriber": _taken(self.subscribers, self.subscriber),
                "event": _taken(self.events, self.event),
                "rank": self.rank,
                "position": columns[:, layout.POSITION],
                "window": self._window_texts(),
                "matched": pa.ListArray.from_arrays(
                    pa.array(self.matched_starts, pa.int32()), matched
                ),
                "sequence": columns[:, layout.NUMBER],
                "delivered_at": delivered_us.cast(DELIVERIES.field("delivered_at").type),
                "content": _taken(self.contents, self.event),
            },
            schema=DELIVERIES,
        )

    def _window_texts(self) -> pa.Array:
        """Return the JSON form of the window of each delivery."""
        times, start, stop = self._extents()
        texts = _format_times(times)
        kind = _taken([json.dumps(name) for name in self.windows], self.window)
        size = pa.array(self.columns[:, layout.WIDTH]).cast(pa.string())
        start, stop = texts.take(pa.array(start)), texts.take(pa.array(stop))
        pieces = ('{"name": ', kind, ', "start": "', start, '", "end": "', stop, '", "size": ')
        return pc.binary_join_element_wise(*pieces, size, "}", "")

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
            _picked(self.subscribers, self.subscriber),
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
        ids = _picked(self.subscriptions, self.matched)
        return [tuple(ids[first:last]) for first, last in pairwise(self.matched_starts.tolist())]


def resolved(batch: DeliveryBatch, tables: IdTables) -> DeliveryColumns:
    """Return a batch with ids instead of numbers; none of its deliveries may be an object."""
    columns = batch.columns
    numbers, subscriber = np.unique(batch.subscriber, return_inverse=True)
    subscribers, order = _ascending(
        [tables.subscribers.names[number] for number in numbers.tolist()]
    )
    slots, event = np.unique(columns[:, layout.EVENT], return_inverse=True)
    starts, members = tables.matched.flat(columns[:, layout.HANDLE].astype(np.int32))
    used, matched = np.unique(members, return_inverse=True)
    subscriptions, id_order = _ascending([tables.matched.names[number] for number in used.tolist()])
    return DeliveryColumns(
        subscribers=subscribers,
        subscriber=order[subscriber],
        events=[tables.events.id(slot) for slot in slots.tolist()],
        contents=[*map(tables.events.contents.get, slots.tolist())],
        event=event,
        windows=batch.windows,
        window=batch.part,
        subscriptions=subscriptions,
        matched_starts=starts,
        matched=_sorted_runs(starts, id_order[matched]),
        columns=columns,
        rank=batch.rank,
    )


def _ascending(texts: Sequence[str]) -> tuple[list[str], Int64s]:
    """Return different texts in ascending order, and the place of each in that order."""
    order = pc.sort_indices(pa.array(texts, pa.string())).to_numpy()
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return list(map(texts.__getitem__, order.tolist())), places


def _sorted_runs(starts: Int64s, numbers: Int64s) -> Int64s:
    """Return numbers, ascending within each run."""
    sizes = np.diff(starts)
    several = sizes > 1
    if not several.any():
        return numbers
    # Most runs have one number, and only the others take time.
    longer = np.repeat(several, sizes)
    owners = np.repeat(np.arange(len(sizes)), sizes)[longer]
    sorted_numbers, chosen = numbers.copy(), numbers[longer]
    sorted_numbers[longer] = chosen[np.lexsort((chosen, owners))]
    return sorted_numbers


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
