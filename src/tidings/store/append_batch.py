"""The result of one batch, written at once: deliveries, late events and dead letters.

Deliveries come as objects or as Arrow columns. Both are checked in the same way and become the same
rows; columns do so without an object per delivery.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from tidings.errors import StoreError, shown
from tidings.formats.arrow import DELIVERIES
from tidings.model import validate
from tidings.model.dead_letter import BadRecord, DeadLetter
from tidings.model.records import Delivery, Event
from tidings.store.dead_letters import LetterRow, dead_letter, insert_letters, late_letter
from tidings.store.protocol import (
    MAX_ID_BYTES,
    Cell,
    Row,
    Session,
    StagingTable,
    check_count,
    check_id,
    check_iterable,
)

KEYS: Final = ("subscriber", "event")
_STAGED: Final = StagingTable(
    "incoming_deliveries",
    {
        "ordinal": "BIGINT",
        "subscriber": "TEXT",
        "event": "TEXT",
        "rank": "DOUBLE PRECISION",
        "position": "BIGINT",
        "won_in": "TEXT",
        "matched": "TEXT",
        "delivered_us": "BIGINT",
        "content": "TEXT",
    },
)
_CLAIM: Final = """
    INSERT INTO batches (query, batch) SELECT ?, ?
    WHERE NOT EXISTS (SELECT 1 FROM queries WHERE name = ? AND pruned >= ?)
    ON CONFLICT DO NOTHING"""
_INBOXES: Final = """
    INSERT INTO inboxes (subscriber)
    SELECT DISTINCT subscriber FROM incoming_deliveries WHERE true ORDER BY subscriber
    ON CONFLICT (subscriber) DO UPDATE SET last = inboxes.last"""
_NEW: Final = """
    NOT EXISTS (SELECT 1 FROM {} AS d WHERE d.subscriber = i.subscriber AND d.event = i.event)"""
_INSERT: Final = f"""
    INSERT INTO deliveries (subscriber, sequence, event, rank, position, won_in, matched,
        delivered_us, query, batch, content, number)
    SELECT i.subscriber, b.last + row_number() OVER (PARTITION BY i.subscriber ORDER BY i.ordinal),
        i.event, i.rank, i.position, i.won_in, i.matched, i.delivered_us, ?, ?, i.content,
        (SELECT last FROM outbox) - CAST(? AS BIGINT) + i.ordinal + 1
    FROM incoming_deliveries AS i JOIN inboxes AS b ON b.subscriber = i.subscriber
    WHERE {_NEW.format("deliveries")} AND {_NEW.format("pruned")}"""
_LAST: Final = """
    UPDATE inboxes SET last = coalesce(
        (SELECT max(sequence) FROM deliveries AS d
        WHERE d.subscriber = inboxes.subscriber AND d.sequence > inboxes.last), last)
    WHERE subscriber IN (SELECT subscriber FROM incoming_deliveries)"""
_COUNT: Final = """
    UPDATE batches SET delivered = ?, repeated = ?, late = ?, dead = ?
    WHERE query = ? AND batch = ?"""


@dataclass(frozen=True)
class AppendResult:
    """The number of rows of each kind that a batch added.

    `repeated` deliveries already existed. The numbers of a `skipped` batch are those of the first
    time it was written.
    """

    delivered: int = 0
    repeated: int = 0
    late: int = 0
    dead: int = 0
    skipped: bool = False


@dataclass(frozen=True)
class BatchAppend:
    """The checked rows of a batch, ready to be written."""

    query: str
    batch: int
    rows: Sequence[tuple[Cell, ...]]
    repeated: int
    late: tuple[LetterRow, ...]
    dead: tuple[LetterRow, ...]

    @classmethod
    def of(
        cls,
        query: str,
        batch: int,
        deliveries: Iterable[Delivery],
        *,
        late: Iterable[Event | DeadLetter],
        dead: Iterable[DeadLetter | BadRecord],
    ) -> "BatchAppend":
        """Check a batch; of deliveries with the same key, the first one counts."""
        rows: dict[tuple[str, str], tuple[Cell, ...]] = {}
        letters = [dead_letter(letter) for letter in check_iterable("dead letters", dead)]
        repeated = 0
        for delivery in check_iterable("deliveries", deliveries):
            if not validate.is_a(delivery, Delivery):
                raise StoreError(f"a delivery is a tidings.Delivery, not {shown(delivery)}")
            reason = _refusal(delivery)
            if reason:
                letters.append(dead_letter(DeadLetter(delivery, reason)))
            elif (delivery.subscriber, delivery.event) in rows:
                repeated += 1
            else:
                rows[delivery.subscriber, delivery.event] = _row(len(rows), delivery)
        return cls(
            check_id("a query", query),
            check_count("a batch", batch),
            tuple(rows.values()),
            repeated,
            tuple(late_letter(event) for event in check_iterable("late events", late)),
            tuple(letters),
        )

    @classmethod
    def of_columns(
        cls,
        query: str,
        batch: int,
        deliveries: pa.Table,
        *,
        late: Iterable[Event | DeadLetter],
        dead: Iterable[DeadLetter | BadRecord],
    ) -> "BatchAppend":
        """Check a batch whose deliveries are Arrow columns; the result is that of `of`.

        If a key occurs twice, or no database can hold one, objects are created after all.
        """
        table = _check_columns(deliveries)
        if not _has_valid_keys(table):
            objects = map(read_delivery, zip(*_cells(table), strict=True))
            return cls.of(query, batch, objects, late=late, dead=dead)
        subscriber, event, rank, position, window, matched, _, delivered_us, content = _cells(table)
        rows = zip(
            range(table.num_rows),
            *(subscriber, event, rank, position, window, matched, delivered_us, content),
            strict=True,
        )
        return replace(cls.of(query, batch, (), late=late, dead=dead), rows=list(rows))

    def write(self, session: Session) -> AppendResult:
        """Write the batch unless it exists; of two writers, the row in `batches` admits one."""
        key = (self.query, self.batch)
        session.run("INSERT INTO queries (name) VALUES (?) ON CONFLICT DO NOTHING", self.query)
        if not session.run(_CLAIM, *key, *key):
            return _first_result(session, *key)
        delivered = self._deliver(session)
        insert_letters(session, (*self.late, *self.dead), *key)
        repeated = self.repeated + len(self.rows) - delivered
        counts = (delivered, repeated, len(self.late), len(self.dead))
        session.run(_COUNT, *counts, *key)
        return AppendResult(*counts)

    def _deliver(self, session: Session) -> int:
        """Write the new deliveries; other writers for these subscribers wait on their inboxes."""
        if not self.rows:
            return 0
        session.stage(_STAGED, self.rows)
        session.run(_INBOXES)
        # Other writers wait here until this one has committed: numbers become visible in order.
        session.run("UPDATE outbox SET last = last + ?", len(self.rows))
        delivered = session.run(_INSERT, self.query, self.batch, len(self.rows))
        session.run(_LAST)
        return delivered


def _first_result(session: Session, query: str, batch: int) -> AppendResult:
    """Return the result of an earlier write of a batch; that of a pruned one is unknown."""
    sql = "SELECT delivered, repeated, late, dead FROM batches WHERE query = ? AND batch = ?"
    counts = session.rows(sql, query, batch)
    return replace(AppendResult(*counts[0]) if counts else AppendResult(), skipped=True)


def _refusal(delivery: Delivery) -> str | None:
    """Return why no database can hold a delivery, or None if it can."""
    try:
        check_id("a subscriber", delivery.subscriber)
        check_id("the id of an event", delivery.event)
    except StoreError as error:
        return str(error)
    return None


def _row(ordinal: int, delivery: Delivery) -> tuple[Cell, ...]:
    return (
        ordinal,
        delivery.subscriber,
        delivery.event,
        delivery.rank,
        delivery.position,
        json.dumps(dict(delivery.window)),
        json.dumps(list(delivery.matched)),
        delivery.delivered_us,
        delivery.content_json,
    )


def read_delivery(row: Row) -> Delivery:
    """Return the delivery of a row whose window, subscriptions and content are JSON."""
    subscriber, event, rank, position, window, matched, sequence, delivered_us, content = row
    return Delivery(
        subscriber,
        event,
        rank,
        position,
        json.loads(window),
        tuple(json.loads(matched)),
        sequence,
        delivered_us,
        content,
    )


def _check_columns(deliveries: pa.Table) -> pa.Table:
    """Return the columns in order; all must exist, and only keys and content may have nulls.

    Deliveries of earlier releases have no column of content.
    """
    if "content" not in deliveries.column_names:
        content = pa.nulls(deliveries.num_rows, DELIVERIES.field("content").type)
        deliveries = deliveries.append_column("content", content)
    if missing := [name for name in DELIVERIES.names if name not in deliveries.column_names]:
        raise StoreError(
            f"deliveries need a column {missing[0]}; see tidings.formats.arrow.DELIVERIES"
        )
    try:
        table = deliveries.select(DELIVERIES.names).cast(DELIVERIES)
    except pa.ArrowException as error:
        raise StoreError(
            f"deliveries must have the columns of tidings.formats.arrow.DELIVERIES: {error}"
        ) from None
    for name in DELIVERIES.names:
        if name not in (*KEYS, "content") and table[name].null_count:
            raise StoreError(f"the column {name} of deliveries has nulls")
    return table


def _has_valid_keys(table: pa.Table) -> bool:
    """Return whether every key is one that a database can hold, and unique."""
    for name in KEYS:
        if table[name].null_count:
            return False
        shortest, longest = pc.min_max(pc.binary_length(table[name])).as_py().values()
        if table.num_rows and not 0 < shortest <= longest <= MAX_ID_BYTES:
            return False
    return bool(table.group_by(KEYS).aggregate([]).num_rows == table.num_rows)


def _cells(table: pa.Table) -> list[list[Any]]:
    """Return the cells by column: windows and subscriptions as JSON, times as microseconds."""
    times = table["delivered_at"].cast(pa.int64())
    table = table.set_column(table.column_names.index("delivered_at"), "delivered_at", times)
    columns = {name: table[name].to_pylist() for name in table.column_names}
    columns["matched"] = [json.dumps(ids) for ids in columns["matched"]]
    return list(columns.values())
