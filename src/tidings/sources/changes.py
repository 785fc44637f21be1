"""`tidings-postgres`: the changes of PostgreSQL tables, from a logical replication slot.

The position is the end of a transaction in the write-ahead log. The slot is only looked at: what a
batch has read is given up when its output is durable, so a batch that is repeated is the same.
Transactions come in the order of their commits, and are never split.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from math import isfinite
from struct import Struct
from typing import Any, Final, NamedTuple

import pyarrow as pa

from tidings.errors import SourceError
from tidings.formats.event_source import CHANGES
from tidings.sources.options import (
    OptionTexts,
    check_names,
    lower_names,
    read_integer,
    read_required,
)
from tidings.sources.protocol import MESSAGES, Position
from tidings.store import ChangeWatch, Database, Session, open_database

INSERT, UPDATE, DELETE = "insert", "update", "delete"
OPERATIONS: Final = {b"I": INSERT, b"U": UPDATE, b"D": DELETE}
_KNOWN: Final = (
    *("url", "slot", "publication", "operations", "value", "listen"),
    "maxRecordsPerTrigger",
)
_LIMIT: Final = 10_000
_UNRELATED_BYTES: Final = 16_000_000
_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
_UINT32: Final = Struct(">I")
_INT16: Final = Struct(">h")
_INT64: Final = Struct(">q")
_ATTRIBUTE: Final = Struct(">Ii")
_ELEMENT: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|([^,{}]+)')
_PEEK: Final = """
    SELECT data FROM pg_logical_slot_peek_binary_changes(?, CAST(CAST(? AS text) AS pg_lsn),
        CAST(? AS int), 'proto_version', '1', 'publication_names', ?)"""
_SLOT: Final = """
    SELECT confirmed_flush_lsn - '0/0', plugin FROM pg_replication_slots
    WHERE slot_name = ? AND slot_type = 'logical' AND database = current_database()"""


@dataclass(frozen=True)
class ChangeOptions:
    """A slot, the publication of its tables, which changes count, and how many to read at once.

    `value` is the column that holds the message; without it, the row itself is the message.
    """

    url: str = field(repr=False)
    slot: str
    publication: str
    operations: tuple[str, ...] = (INSERT,)
    value: str | None = None
    listen: str | None = None
    limit: int = _LIMIT


@dataclass(frozen=True)
class LogRange:
    """The transactions after one place in the log, up to and including another."""

    after: int
    upto: int


class Relation(NamedTuple):
    """A table, with the names, the types and the roles of its columns."""

    name: str
    columns: tuple[str, ...]
    types: tuple[int, ...]
    keys: tuple[bool, ...]


class RowChange(NamedTuple):
    """A row that was inserted, updated or deleted; of a deleted one, only the key is known."""

    operation: str
    relation: Relation
    row: dict[str, Any]

    @property
    def key(self) -> str:
        """The values of the key, as text."""
        named = zip(self.relation.columns, self.relation.keys, strict=True)
        return ",".join(str(self.row.get(name)) for name, is_key in named if is_key)


class Transaction(NamedTuple):
    """The changes of a transaction, the end of its commit in the log, and the time of it."""

    end: int
    at: datetime
    changes: tuple[RowChange, ...]


def open_reader(texts: OptionTexts, _: bool | None) -> "ChangeReader":
    """Return the reader of a slot."""
    return ChangeReader(read_options(texts))


def read_options(texts: OptionTexts) -> ChangeOptions:
    """Return the options."""
    check_names(CHANGES, texts, _KNOWN)
    small = lower_names(texts)
    operations = tuple(part.strip() for part in small.get("operations", INSERT).split(","))
    if unknown := [name for name in operations if name not in OPERATIONS.values()]:
        raise SourceError(
            f"{CHANGES}: unknown operation {unknown[0]!r}; expected some of: insert, update, delete"
        )
    url = read_required(CHANGES, small, "url", "postgresql://user@host/shop")
    if not url.startswith("postgres"):
        raise SourceError(f"{CHANGES}: url must be one of PostgreSQL: postgresql://user@host/shop")
    return ChangeOptions(
        url,
        read_required(CHANGES, small, "slot", "slot = 'tidings'"),
        read_required(CHANGES, small, "publication", "publication = 'tidings'"),
        operations,
        small.get("value"),
        small.get("listen"),
        read_integer(small, "maxRecordsPerTrigger") or _LIMIT,
    )


class ChangeReader:
    """The reader of a slot."""

    schema = MESSAGES

    def __init__(self, options: ChangeOptions) -> None:
        self._options = options

    @property
    def limit(self) -> int:
        return self._options.limit

    @cached_property
    def _database(self) -> Database:
        return open_database(self._options.url)

    def watch(self) -> ChangeWatch | None:
        """Return a watch over a channel that a trigger notifies."""
        channel = self._options.listen
        return self._database.watch(channel) if channel else None

    def starting(self, default: str) -> Position:
        """Return where the slot stands; `default` has no effect."""
        del default
        return {"lsn": self._confirmed()}

    def ending(self) -> Position:
        return self.latest()

    def latest(self) -> Position:
        sql = "SELECT pg_current_wal_flush_lsn() - '0/0'"
        return {"lsn": int(self._read(lambda session: session.rows(sql))[0][0])}

    def advance(self, start: Position, latest: Position, limit: int | None) -> Position:
        after, upto, rows = start["lsn"], latest["lsn"], limit or self._options.limit
        confirmed = self._confirmed()
        if confirmed > after:
            raise SourceError(
                f"{CHANGES}: slot {self._options.slot} stands at {_text(confirmed)}, after the "
                f"{_text(after)} of this run: another reader has moved it on. Each run needs a "
                "slot of its own; start over with --fresh"
            )
        while True:
            # At least the transactions that the slot still holds, and one that is new.
            messages = self._peek(upto, rows)
            new = [each.end for each in decode(messages) if after < each.end <= upto]
            if new:
                return {"lsn": new[-1]}
            if len(messages) < rows:
                # Changes of other tables; an empty batch lets the server give up their log.
                return {"lsn": upto} if upto - after > _UNRELATED_BYTES else start
            rows *= 2

    def spans(self, start: Position, end: Position) -> list[LogRange]:
        return [LogRange(start["lsn"], end["lsn"])] if start["lsn"] < end["lsn"] else []

    def read(self, span: LogRange) -> Iterator[pa.RecordBatch]:
        rows = [
            self._row(transaction, number, change)
            for transaction in decode(self._peek(span.upto))
            if span.after < transaction.end <= span.upto
            for number, change in enumerate(transaction.changes)
            if change.operation in self._options.operations
        ]
        if rows:
            yield pa.RecordBatch.from_pylist(rows, MESSAGES)

    def committed(self, end: Position) -> None:
        """Let the server give up the log of what is done."""
        if end["lsn"] > self._confirmed():
            sql = "SELECT pg_replication_slot_advance(?, CAST(CAST(? AS text) AS pg_lsn))"
            self._read(lambda session: session.rows(sql, self._options.slot, _text(end["lsn"])))

    def close(self) -> None:
        """Close the connections, if there are any."""
        if "_database" in vars(self):
            self._database.close()

    def _confirmed(self) -> int:
        """Return up to where the slot was confirmed."""
        slot, publication = self._options.slot, self._options.publication
        found = self._read(lambda session: session.rows(_SLOT, slot))
        if not found or found[0][1] != "pgoutput":
            raise SourceError(
                f"{CHANGES}: {self._database.name} has no logical slot {slot!r} of pgoutput; "
                f"create it with wal_level = logical: CREATE PUBLICATION {publication} FOR TABLE "
                f"...; SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')"
            )
        return int(found[0][0])

    def _peek(self, upto: int, rows: int | None = None) -> list[bytes]:
        """Return what the slot holds up to a place, or to the transaction with so many rows."""
        names = (self._options.slot, _text(upto), rows, self._options.publication)
        return [cell for (cell,) in self._read(lambda session: session.rows(_PEEK, *names))]

    def _read(self, work: Callable[[Session], Any]) -> Any:
        return self._database.read(work)

    def _row(self, transaction: Transaction, number: int, change: RowChange) -> dict[str, Any]:
        value: Any = change.row
        if self._options.value is not None:
            if self._options.value not in change.relation.columns:
                listed = ", ".join(change.relation.columns)
                raise SourceError(
                    f"{CHANGES}: {change.relation.name} has no column {self._options.value!r}, "
                    f"but there are: {listed}"
                )
            value = change.row.get(self._options.value)
        text = value if isinstance(value, str) else json.dumps(value)
        return {
            "key": change.key,
            "value": text.encode(errors="replace"),
            "partition": change.relation.name,
            "position": f"{transaction.end:X}-{number}",
            "timestamp": transaction.at,
            "headers": [{"key": "operation", "value": change.operation.encode()}],
        }


def _text(place: int) -> str:
    """Return a place in the log as PostgreSQL writes it.

    >>> _text(2**32 + 255)
    '1/FF'
    """
    return f"{place >> 32:X}/{place & 0xFFFFFFFF:X}"


def decode(messages: Iterable[bytes]) -> list[Transaction]:
    """Return the transactions of messages of pgoutput, version 1; empty ones have no changes."""
    relations = dict[int, Relation]()
    found, changes = list[Transaction](), list[RowChange]()
    for message in messages:
        kind, body = bytes(message[:1]), Cursor(bytes(message), 1)
        if kind == b"B":
            changes = []
        elif kind == b"R":
            number = body.unsigned()
            relations[number] = _relation(body)
        elif kind in OPERATIONS:
            relation = relations[body.unsigned()]
            changes.append(RowChange(OPERATIONS[kind], relation, _tuples(body, relation)))
        elif kind == b"C":
            body.skip(1 + 8)
            end, at_us = body.long(), body.long()
            found.append(Transaction(end, _EPOCH + timedelta(microseconds=at_us), tuple(changes)))
    return found


@dataclass
class Cursor:
    """The fields of a message, one after the other."""

    data: bytes
    place: int

    def skip(self, size: int) -> bytes:
        """Return the next bytes."""
        self.place += size
        return self.data[self.place - size : self.place]

    def unsigned(self) -> int:
        """Return four bytes as a number."""
        return int(_UINT32.unpack(self.skip(4))[0])

    def short(self) -> int:
        """Return two bytes as a number."""
        return int(_INT16.unpack(self.skip(2))[0])

    def long(self) -> int:
        """Return eight bytes as a number."""
        return int(_INT64.unpack(self.skip(8))[0])

    def text(self) -> str:
        """Return a text that ends with a zero."""
        end = self.data.index(b"\0", self.place)
        text = self.data[self.place : end].decode(errors="replace")
        self.place = end + 1
        return text

    @property
    def is_at_end(self) -> bool:
        """Whether nothing is left."""
        return self.place >= len(self.data)


def _relation(body: Cursor) -> Relation:
    schema, name = body.text(), body.text()
    body.skip(1)  # the replica identity
    names, types, keys = list[str](), list[int](), list[bool]()
    for _ in range(body.short()):
        keys.append(bool(body.skip(1)[0] & 1))
        names.append(body.text())
        types.append(_ATTRIBUTE.unpack(body.skip(8))[0])
    return Relation(f"{schema}.{name}", tuple(names), tuple(types), tuple(keys))


def _tuples(body: Cursor, relation: Relation) -> dict[str, Any]:
    """Return the last row of a change: the new one, or of a deleted row the old one.

    Large values that an update has not touched are in the old row, if the table is set to log it.
    """
    row = dict[str, Any]()
    while not body.is_at_end:
        kind = body.skip(1)
        cells = _cells(body, relation)
        if kind == b"K":  # columns that are not in the key have been sent as nulls
            cells = {name: value for name, value in cells.items() if value is not None}
        row = {name: cells.get(name, row.get(name)) for name in {**row, **cells}}
    return row


def _cells(body: Cursor, relation: Relation) -> dict[str, Any]:
    """Return the values of a row; those that an update has not touched may be missing."""
    cells = dict[str, Any]()
    body.skip(2)  # the number of columns
    for name, type_id in zip(relation.columns, relation.types, strict=True):
        kind = body.skip(1)
        if kind == b"t":
            cells[name] = _value(type_id, body.skip(body.unsigned()).decode(errors="replace"))
        elif kind == b"n":
            cells[name] = None
    return cells


def _number(text: str) -> float | str:
    value = float(text)
    return value if isfinite(value) else text


def _time(text: str) -> str:
    """Return a timestamp as ISO 8601, in UTC unless it has a zone of its own."""
    zone = "" if re.search(r"[+-]\d\d(:\d\d)?$", text) else "Z"
    whole = f"{text}:00" if re.search(r"[+-]\d\d$", text) else text
    return whole.replace(" ", "T", 1) + zone


def _value(type_id: int, text: str) -> Any:
    """Return a value from its text; of a type that JSON has nothing like, the text itself."""
    try:
        if type_id in _ARRAYS:
            items = _ELEMENT.findall(text)
            return [
                _value(_ARRAYS[type_id], re.sub(r"\\(.)", r"\1", quoted) or plain)
                for quoted, plain in items
            ]
        return _TYPES.get(type_id, str)(text)
    except ValueError:
        return text


_TYPES: Final[dict[int, Callable[[str], Any]]] = {
    16: lambda text: text == "t",  # boolean
    **dict.fromkeys((20, 21, 23, 26), int),
    **dict.fromkeys((700, 701, 1700), _number),  # real, double precision, numeric
    **dict.fromkeys((114, 3802), json.loads),
    **dict.fromkeys((1114, 1184), _time),
}
"""How values of a type are read, by the numbers of the types."""
_ARRAYS: Final = {1000: 16, 1005: 21, 1007: 23, 1016: 20, 1021: 700, 1022: 701, 1231: 1700}
_ARRAYS.update({1009: 25, 1015: 1043})
"""The types of the elements of arrays of one dimension."""
