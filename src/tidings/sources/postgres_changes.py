"""`tidings-postgres`: the changes of PostgreSQL tables, from a logical replication slot.

The position is the end of a transaction in the write-ahead log. The slot is only peeked at: a batch
is confirmed once its output is durable, so a repeated batch is the same. Transactions come in
commit order and are never split.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import islice
from math import isfinite
from struct import Struct
from typing import Any, Final, NamedTuple, TypeVar

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
from tidings.store.protocol import Row

T = TypeVar("T")
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
_MOST_ROWS: Final = 2**31 - 1
_PAGE: Final = 1_000
_BYTEA: Final = 17
_ARRAY_PART: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|([{},])|([^",{}]+)', re.DOTALL)
_TIMESTAMP: Final = re.compile(r"(\d{4,}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)(\+00)?")
_PEEK: Final = """
    pg_logical_slot_peek_binary_changes(?, CAST(CAST(? AS text) AS pg_lsn), CAST(? AS int),
        'proto_version', '1', 'publication_names', ?)"""
_MESSAGES_UPTO: Final = f"SELECT data FROM {_PEEK}"
_COMMITS_UPTO: Final = f"""
    SELECT count(*), array_agg(data) FILTER (WHERE get_byte(data, 0) = {ord("C")}) FROM {_PEEK}"""
# The server writes values as text, by the settings of the connection that reads the slot.
_SETTINGS: Final = """
    SELECT set_config(name, value, true) FROM (VALUES ('client_encoding', 'UTF8'),
        ('datestyle', 'ISO'), ('timezone', 'UTC'), ('bytea_output', 'hex')) AS s (name, value)"""
_SLOT: Final = """
    SELECT confirmed_flush_lsn - '0/0', plugin,
        EXISTS (SELECT 1 FROM pg_publication WHERE pubname = ?) FROM pg_replication_slots
    WHERE slot_name = ? AND slot_type = 'logical' AND database = current_database()"""
_COLUMNS: Final = """
    SELECT a.attname FROM pg_publication_tables AS t
    JOIN pg_namespace AS n ON n.nspname = t.schemaname
    JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = t.tablename
    JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE t.pubname = ? GROUP BY a.attname ORDER BY min(a.attnum), a.attname"""


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
    """A row that was inserted, updated or deleted; of a deleted one, only the key is known.

    `end` is the end of the commit of its transaction in the log, `at` the time of it, and `number`
    counts the changes of the transaction.
    """

    end: int
    number: int
    at: datetime
    operation: str
    relation: Relation
    row: dict[str, Any]

    @property
    def key(self) -> str:
        """The values of the key, as text."""
        named = zip(self.relation.columns, self.relation.keys, strict=True)
        return ",".join(str(self.row.get(name)) for name, is_key in named if is_key)


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
        """Return the position of the slot; `default` has no effect."""
        del default
        position = {"lsn": self._confirmed()}
        self._check_column()
        return position

    def ending(self) -> Position:
        return self.latest()

    def latest(self) -> Position:
        sql = "SELECT pg_current_wal_flush_lsn() - '0/0'"
        return {"lsn": int(self._read(lambda session: session.rows(sql))[0][0])}

    def advance(self, start: Position, latest: Position, limit: int | None) -> Position:
        after, upto = start["lsn"], latest["lsn"]
        rows = min(limit or self._options.limit, _MOST_ROWS)
        confirmed = self._confirmed()
        if confirmed > after:
            raise SourceError(
                f"{CHANGES}: slot {self._options.slot} is at {_text(confirmed)}, after the "
                f"{_text(after)} of this run: another reader has moved it on, or it was created "
                "again. Each run needs a slot of its own; start over with --fresh"
            )
        while True:
            # At least the transactions that the slot still holds, and one that is new.
            [(count, commits)] = self._peek(_COMMITS_UPTO, upto, rows)
            ends = [read_commit(message).end for message in commits or ()]
            new = [end for end in ends if after < end <= upto]
            if new:
                return {"lsn": new[-1]}
            if count < rows:
                # Changes of other tables; an empty batch lets the server give up their log.
                return {"lsn": upto} if upto - after > _UNRELATED_BYTES else start
            rows = min(2 * rows, _MOST_ROWS)

    def spans(self, start: Position, end: Position) -> list[LogRange]:
        return [LogRange(start["lsn"], end["lsn"])] if start["lsn"] < end["lsn"] else []

    def read(self, span: LogRange) -> Iterator[pa.RecordBatch]:
        messages = (data for (data,) in self._peek(_MESSAGES_UPTO, span.upto))
        rows = (
            self._row(change)
            for change in read_changes(messages, span, self._options.value)
            if change.operation in self._options.operations
        )
        while page := list(islice(rows, _PAGE)):
            yield pa.RecordBatch.from_pylist(page, MESSAGES)

    def committed(self, end: Position) -> None:
        """Confirm a position, so that the server can discard the log before it."""
        if end["lsn"] > self._confirmed():
            sql = "SELECT pg_replication_slot_advance(?, CAST(CAST(? AS text) AS pg_lsn))"
            self._read(lambda session: session.rows(sql, self._options.slot, _text(end["lsn"])))

    def close(self) -> None:
        """Close the connections, if there are any."""
        if "_database" in vars(self):
            self._database.close()

    def _confirmed(self) -> int:
        """Return the confirmed position of the slot; refuse a missing slot or publication.

        Without its publication, the server may skip changes silently.
        """
        slot, publication = self._options.slot, self._options.publication
        rows = self._read(lambda session: session.rows(_SLOT, publication, slot))
        if not rows or rows[0][1] != "pgoutput":
            raise SourceError(
                f"{CHANGES}: {self._database.name} has no logical slot {slot!r} of pgoutput; "
                f"create it with wal_level = logical: CREATE PUBLICATION {publication} FOR TABLE "
                f"...; SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')"
            )
        if not rows[0][2]:
            raise SourceError(
                f"{CHANGES}: {self._database.name} has no publication {publication!r}. It has to "
                f"exist for as long as the slot: drop the slot, CREATE PUBLICATION {publication} "
                "FOR TABLE ..., create the slot again, and start over with --fresh"
            )
        return int(rows[0][0])

    def _check_column(self) -> None:
        """Refuse a column of messages that no table of the publication has."""
        publication, value = self._options.publication, self._options.value
        if value is None:
            return
        rows = self._read(lambda session: session.rows(_COLUMNS, publication))
        columns = [name for (name,) in rows]
        if columns and value not in columns:
            raise SourceError(
                f"{CHANGES}: no table of the publication {publication!r} has a column {value!r}, "
                f"but there are: {', '.join(columns)}"
            )

    def _peek(self, sql: str, upto: int, rows: int | None = None) -> list[Row]:
        """Peek at the slot up to a place, or to the transaction that reaches a number of rows."""
        names = (self._options.slot, _text(upto), rows, self._options.publication)

        def work(session: Session) -> list[Row]:
            session.rows(_SETTINGS)
            return session.rows(sql, *names)

        return self._read(work)

    def _read(self, work: Callable[[Session], T]) -> T:
        return self._database.read(work)

    def _row(self, change: RowChange) -> dict[str, Any]:
        return {
            "key": change.key,
            "value": self._message(change.row),
            "partition": change.relation.name,
            "position": f"{change.end:X}-{change.number}",
            "timestamp": change.at,
            "headers": [{"key": "operation", "value": change.operation.encode()}],
        }

    def _message(self, row: dict[str, Any]) -> bytes | None:
        """Return the message of a row.

        A row without the column of messages, as after it was renamed, becomes a dead letter that
        shows the row; an error would stop the run at it for ever.
        """
        value = row.get(self._options.value, row) if self._options.value else row
        if value is None or isinstance(value, bytes):
            return value
        text = value if isinstance(value, str) else json.dumps(value)
        return text.encode(errors="replace")


def _text(place: int) -> str:
    """Return a place in the log as PostgreSQL writes it.

    >>> _text(2**32 + 255)
    '1/FF'
    """
    return f"{place >> 32:X}/{place & 0xFFFFFFFF:X}"


class Commit(NamedTuple):
    """The end of a transaction: where it ends in the log, and when it was."""

    end: int
    at: datetime


def read_commit(message: bytes) -> Commit:
    """Return what a message of pgoutput says about the end of a transaction."""
    body = Cursor(message, 1)
    body.take(1 + 8)
    end, at_us = body.long(), body.long()
    return Commit(end, _EPOCH + timedelta(microseconds=at_us))


def read_changes(
    messages: Iterable[bytes], span: LogRange, verbatim: str | None = None
) -> Iterator[RowChange]:
    """Yield the changes of a range from messages of pgoutput, version 1, that begin before it.

    A transaction reveals its end only after its changes, which are kept in the server's compact
    form until then. The column `verbatim` is not parsed.
    """
    relations, inside = dict[int, Relation](), list[bytes]()
    for message in messages:
        kind = message[:1]
        if kind == b"B":
            inside = []
        elif kind != b"C":
            inside.append(message)
        else:
            commit = read_commit(message)
            is_wanted = span.after < commit.end <= span.upto
            yield from _read_transaction(inside, commit, relations, verbatim, is_wanted=is_wanted)


def _read_transaction(
    messages: Iterable[bytes],
    commit: Commit,
    relations: dict[int, Relation],
    verbatim: str | None,
    *,
    is_wanted: bool,
) -> Iterator[RowChange]:
    """Yield the changes of one transaction if it is in the range; note its tables in any case."""
    number = 0
    for message in messages:
        kind, body = message[:1], Cursor(message, 1)
        if kind == b"R":
            relation_id = body.unsigned()
            relations[relation_id] = _relation(body)
        elif is_wanted and kind in OPERATIONS:
            relation = relations[body.unsigned()]
            row = _last_row(body, relation, verbatim)
            yield RowChange(commit.end, number, commit.at, OPERATIONS[kind], relation, row)
            number += 1


@dataclass
class Cursor:
    """The fields of a message, one after the other."""

    data: bytes
    place: int

    def take(self, size: int) -> bytes:
        """Return the next bytes, and move past them."""
        self.place += size
        return self.data[self.place - size : self.place]

    def unsigned(self) -> int:
        """Return four bytes as a number."""
        return int(_UINT32.unpack(self.take(4))[0])

    def short(self) -> int:
        """Return two bytes as a number."""
        return int(_INT16.unpack(self.take(2))[0])

    def long(self) -> int:
        """Return eight bytes as a number."""
        return int(_INT64.unpack(self.take(8))[0])

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
    body.take(1)  # the replica identity
    names, types, keys = list[str](), list[int](), list[bool]()
    for _ in range(body.short()):
        keys.append(bool(body.take(1)[0] & 1))
        names.append(body.text())
        types.append(_ATTRIBUTE.unpack(body.take(8))[0])
    return Relation(f"{schema}.{name}", tuple(names), tuple(types), tuple(keys))


def _last_row(body: Cursor, relation: Relation, verbatim: str | None) -> dict[str, Any]:
    """Return the last row of a change: the new one, or of a deleted row the old one.

    Large values that an update has not touched are in the old row, if the table is set to log it.
    """
    row = dict[str, Any]()
    while not body.is_at_end:
        kind = body.take(1)
        cells = _cells(body, relation, verbatim)
        if kind == b"K":  # columns that are not in the key have been sent as nulls
            cells = {name: value for name, value in cells.items() if value is not None}
        row = {name: cells.get(name, row.get(name)) for name in {**row, **cells}}
    return row


def _cells(body: Cursor, relation: Relation, verbatim: str | None) -> dict[str, Any]:
    """Return the values of a row; those that an update has not touched may be missing."""
    cells = dict[str, Any]()
    body.take(2)  # the number of columns
    for name, type_id in zip(relation.columns, relation.types, strict=True):
        kind = body.take(1)
        if kind == b"t":
            text = body.take(body.unsigned()).decode(errors="replace")
            cells[name] = _verbatim(type_id, text) if name == verbatim else _value(type_id, text)
        elif kind == b"n":
            cells[name] = None
    return cells


def _verbatim(type_id: int, text: str) -> str | bytes:
    """Return the text of a value; of a `bytea`, the bytes."""
    return bytes.fromhex(text.removeprefix("\\x")) if type_id == _BYTEA else text


def _value(type_id: int, text: str) -> Any:
    """Return a value from its text; if JSON has no such type, the text itself."""
    try:
        if type_id in _ARRAYS:
            return _array(_ARRAYS[type_id], text)
        return _TYPES.get(type_id, str)(text)
    except (ValueError, RecursionError):
        return text


def _array(type_id: int, text: str) -> Any:
    """Return an array as a list, of lists if it has several dimensions.

    >>> _array(23, "[0:1][1:2]={{1,NULL},{3,4}}")
    [[1, None], [3, 4]]
    """
    lists = list[list[Any]]([[]])
    for quoted, mark, plain in _ARRAY_PART.findall(text, text.index("{")):
        if mark == "{":
            lists.append([])
        elif mark == "}":
            closed = lists.pop()
            lists[-1].append(closed)
        elif plain:
            lists[-1].append(None if plain == "NULL" else _value(type_id, plain))
        elif not mark:
            lists[-1].append(_value(type_id, re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL)))
    return lists[0][0]


def _number(text: str) -> float | str:
    """Return a number; JSON has none that is infinite."""
    value = float(text)
    return value if isfinite(value) else text


def _decimal(text: str) -> float | str:
    """Return a number, exactly if it is whole, as ids are."""
    return _number(text) if not text.removeprefix("-").isdecimal() else int(text)


def _time(text: str) -> str:
    """Return a timestamp as ISO 8601, in UTC; others, such as `infinity`, as they are.

    >>> _time("2026-01-02 03:04:05.6"), _time("2026-01-02 03:04:05+00"), _time("infinity")
    ('2026-01-02T03:04:05.6Z', '2026-01-02T03:04:05+00:00', 'infinity')
    """
    timestamp = _TIMESTAMP.fullmatch(text)
    if timestamp is None:
        return text
    day, time, zone = timestamp.groups()
    return f"{day}T{time}{'+00:00' if zone else 'Z'}"


_TYPES: Final[dict[int, Callable[[str], Any]]] = {
    16: lambda text: text == "t",  # boolean
    **dict.fromkeys((20, 21, 23, 26), int),  # bigint, smallint, integer, oid
    **dict.fromkeys((700, 701), _number),  # real, double precision
    1700: _decimal,  # numeric
    **dict.fromkeys((114, 3802), json.loads),  # json, jsonb
    **dict.fromkeys((1114, 1184), _time),  # timestamp, without and with a zone
}
"""How values are read, by the OIDs of their types, which are the same in every database."""
_ARRAYS: Final = (
    {1000: 16, 1005: 21, 1007: 23, 1016: 20, 1021: 700, 1022: 701, 1028: 26, 1231: 1700}
    | {1002: 18, 1003: 19, 1009: 25, 1014: 1042, 1015: 1043, 2951: 2950}  # texts, uuid
    | {199: 114, 3807: 3802, 1115: 1114, 1182: 1082, 1183: 1083, 1185: 1184}  # json, times
)
"""The types of the elements of arrays, by the types of the arrays."""
