"""Deliveries in Arrow columns on their way into the store, without an object each."""

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from tidings.errors import StoreError
from tidings.formats.arrow import DELIVERIES
from tidings.model.dead_letter import BadRecord, DeadLetter
from tidings.model.records import Delivery, Event
from tidings.store.append_batch import BatchAppend
from tidings.store.protocol import MAX_ID_BYTES, Row

KEYS: Final = ("subscriber", "event")


def append_of(
    query: str,
    batch: int,
    deliveries: pa.Table,
    *,
    late: Iterable[Event | DeadLetter],
    dead: Iterable[DeadLetter | BadRecord],
) -> BatchAppend:
    """Check a batch whose deliveries are columns; what comes out is what `Append.of` gives.

    Where a key is there twice, or is one that no database can hold, objects are made after all.
    """
    table = _checked(deliveries)
    if not _fits(table):
        objects = map(read_delivery, zip(*_cells(table), strict=True))
        return BatchAppend.of(query, batch, objects, late=late, dead=dead)
    subscriber, event, rank, position, window, matched, _, delivered_us = _cells(table)
    rows = zip(
        range(table.num_rows),
        *(subscriber, event, rank, position, window, matched, delivered_us),
        strict=True,
    )
    return replace(BatchAppend.of(query, batch, (), late=late, dead=dead), rows=list(rows))


def read_delivery(row: Row) -> Delivery:
    """Make the delivery of a row whose window and subscriptions are JSON."""
    subscriber, event, rank, position, window, matched, sequence, delivered_us = row
    return Delivery(
        subscriber,
        event,
        rank,
        position,
        json.loads(window),
        tuple(json.loads(matched)),
        sequence,
        delivered_us,
    )


def _checked(deliveries: pa.Table) -> pa.Table:
    """Check that every column is there and has a value in every row, but for the keys."""
    if missing := [name for name in DELIVERIES.names if name not in deliveries.column_names]:
        raise StoreError(
            f"deliveries need a column {missing[0]}; see tidings.formats.arrow.DELIVERIES"
        )
    try:
        table = deliveries.select(DELIVERIES.names).cast(DELIVERIES)
    except pa.ArrowException as error:
        raise StoreError(
            f"deliveries are columns of tidings.formats.arrow.DELIVERIES: {error}"
        ) from None
    for name in DELIVERIES.names:
        if name not in KEYS and table[name].null_count:
            raise StoreError(f"the column {name} of deliveries has rows without a value")
    return table


def _fits(table: pa.Table) -> bool:
    """Tell whether every key can be held and is there once."""
    for name in KEYS:
        if table[name].null_count:
            return False
        shortest, longest = pc.min_max(pc.binary_length(table[name])).as_py().values()
        if table.num_rows and not 0 < shortest <= longest <= MAX_ID_BYTES:
            return False
    return bool(table.group_by(KEYS).aggregate([]).num_rows == table.num_rows)


def _cells(table: pa.Table) -> list[list[Any]]:
    """Give the cells by column: windows and subscriptions as JSON, times as microseconds."""
    matched = [json.dumps(each) for each in table["matched"].to_pylist()]
    times = table["delivered_at"].cast(pa.int64())
    found = table.set_column(table.column_names.index("delivered_at"), "delivered_at", times)
    return [
        matched if name == "matched" else found[name].to_pylist() for name in table.column_names
    ]
