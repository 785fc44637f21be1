"""`tidings-outbox`: messages in a column of an append-only table of SQLite or PostgreSQL.

The position is the last key that was read. A batch ends at a key below which no row can appear
later, so reading is exact although transactions commit in another order than they take keys.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from tidings.errors import SourceError
from tidings.formats.event_source import OUTBOX
from tidings.sources.options import (
    OptionTexts,
    check_names,
    lower_names,
    read_integer,
    read_required,
)
from tidings.sources.protocol import EARLIEST, LATEST, MESSAGES, Position
from tidings.store import AppendOnlyTable, ChangeWatch, CommitHorizon, TableColumn, open_database

_KNOWN: Final = ("url", "table", "key", "value", "listen", "starting", "maxRecordsPerTrigger")
_PAGE: Final = 1_000
_WAIT_S: Final = 1.0
"""How long to wait for transactions that have taken a key but not committed yet."""


@dataclass(frozen=True)
class OutboxOptions:
    """A table, its key, the column of its messages, and how much to read at once.

    `listen` is the channel on which PostgreSQL announces new rows.
    """

    url: str = field(repr=False)
    table: str
    key: str
    value: str
    listen: str | None = None
    starting: str = EARLIEST
    limit: int | None = None


@dataclass(frozen=True)
class RowRange:
    """The rows after one key, up to and including another."""

    after: int
    upto: int


def open_reader(texts: OptionTexts, _: bool | None) -> "OutboxReader":
    """Return the reader of a table."""
    return OutboxReader(read_options(texts))


def read_options(texts: OptionTexts) -> OutboxOptions:
    """Return the options."""
    check_names(OUTBOX, texts, _KNOWN)
    small = lower_names(texts)
    starting = small.get("starting", EARLIEST)
    if starting not in (EARLIEST, LATEST):
        raise SourceError(f"{OUTBOX}: starting must be {EARLIEST!r} or {LATEST!r}")
    return OutboxOptions(
        read_required(OUTBOX, small, "url", "sqlite:///shop.db or postgresql://user@host/shop"),
        read_required(OUTBOX, small, "table", "table = 'outbox'"),
        read_required(OUTBOX, small, "key", "key = 'id'"),
        read_required(OUTBOX, small, "value", "value = 'event', the column of the messages"),
        small.get("listen"),
        starting,
        read_integer(small, "maxRecordsPerTrigger"),
    )


class OutboxReader:
    """The reader of a table."""

    schema = MESSAGES

    def __init__(self, options: OutboxOptions) -> None:
        self._options = options

    @property
    def limit(self) -> int | None:
        return self._options.limit

    @cached_property
    def _horizon(self) -> CommitHorizon:
        options = self._options
        return CommitHorizon(
            AppendOnlyTable(open_database(options.url), options.table, options.key)
        )

    @property
    def _table(self) -> AppendOnlyTable:
        return self._horizon.table

    @cached_property
    def _column(self) -> TableColumn:
        columns = {column.name: column for column in self._table.columns()}
        column = columns.get(self._options.value)
        if column is None:
            listed = ", ".join(columns)
            raise SourceError(
                f"{OUTBOX}: {self._options.table} has no column {self._options.value!r}, but "
                f"there are: {listed}"
            )
        return column

    def watch(self) -> ChangeWatch | None:
        """Return a watch; PostgreSQL needs a channel for it."""
        database, channel = self._table.database, self._options.listen
        return database.watch(channel) if channel or database.dialect == "sqlite" else None

    def starting(self, default: str) -> Position:
        """Return the start; `default` has no effect, by default all is read."""
        del default
        _ = self._column  # a wrong table or column is an error at once
        if self._options.starting == LATEST:
            return {"key": self._table.top() or 0}
        bottom = self._table.bottom()
        return {"key": 0 if bottom is None else min(0, bottom - 1)}

    def ending(self) -> Position:
        return self.latest()

    def latest(self) -> Position:
        return {"key": self._horizon.look(_WAIT_S)}

    def advance(self, start: Position, latest: Position, limit: int | None) -> Position:
        after, upto = start["key"], latest["key"]
        top = self._table.top()
        if top is not None and top < after:
            raise SourceError(
                f"{OUTBOX}: {self._options.table} was read up to key {after}, but its largest is "
                f"now {top}: keys were reused, or rows at its end were deleted; start over with "
                "--fresh"
            )
        if upto is None or upto <= after:
            return start
        end = self._table.end(after, upto, _PAGE if limit is None else limit)
        return {"key": upto if limit is None else end} if end > after else start

    def spans(self, start: Position, end: Position) -> list[RowRange]:
        return [RowRange(start["key"], end["key"])] if start["key"] < end["key"] else []

    def read(self, span: RowRange) -> Iterator[pa.RecordBatch]:
        after = span.after
        while rows := self._table.page([self._column], after, span.upto, _PAGE):
            named = [self._row(*row) for row in rows]
            yield pa.RecordBatch.from_pylist(named, MESSAGES)
            after = rows[-1][0]

    def committed(self, end: Position) -> None:
        """Do nothing: the owner of the table deletes old rows."""

    def close(self) -> None:
        """Close the connections, if there are any."""
        if "_horizon" in vars(self):
            self._table.database.close()

    def _row(self, key: int, cell: Any) -> dict[str, Any]:
        value = cell.encode(errors="replace") if isinstance(cell, str) else cell
        is_value = value is None or isinstance(value, bytes)
        return {
            "value": value if is_value else str(value).encode(),
            "partition": self._options.table,
            "position": str(key),
        }
