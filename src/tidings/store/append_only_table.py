"""Another application's append-only table, read in order of its key: an outbox, an event log.

SQLite has one writer at a time, so its keys become visible in order. In PostgreSQL they do not: a
transaction may take a smaller key and commit later, and a reader that followed the largest key
would miss its rows. So it reads up to the commit horizon: the key up to which all rows are visible.
An INSERT locks its table before it takes a key, and the lock is released after the commit is
visible; so every transaction that has taken a key and not ended is among those that hold such a
lock.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, TypeVar

from tidings.errors import StoreError
from tidings.model import validate
from tidings.store.protocol import Database, Row, Session

PREPARED: Final = "prepared"
"""Represents any two-phase transaction, because its name before it was prepared is unknown."""
T = TypeVar("T")
_FORBIDDEN: Final = '"?%\0'
_POLL_EVERY_S: Final = 0.05


class ColumnInfo(NamedTuple):
    """A column: its name, its kind, and whether it is the key and never null and unique.

    The kind is long, double, boolean, string, binary or timestamp.
    """

    name: str
    kind: str
    unique: bool


class Dialect(Protocol):
    """The queries about a table, in the SQL dialect of a database."""

    def columns(self, session: Session, table: str, key: str) -> list[ColumnInfo]:
        """Return the columns, with `unique` only for the key.

        An empty list if the table does not exist.
        """

    def writers(self, session: Session, table: str) -> frozenset[str]:
        """Return the open transactions that may have taken a key."""

    def cell(self, column: str, kind: str) -> str:
        """Return the SQL that selects a column of a kind."""


class SqliteDialect:
    """The dialect of SQLite."""

    _COLUMNS: Final = """SELECT name, type, "notnull", pk FROM pragma_table_info(?) ORDER BY cid"""
    _UNIQUE_INDEX: Final = """
        SELECT 1 FROM pragma_index_list(?) AS i WHERE i."unique" AND NOT i.partial
        AND (SELECT group_concat(name) FROM pragma_index_info(i.name)) = ?"""
    # An `INTEGER PRIMARY KEY DESC` is not the rowid: it has an index and accepts nulls.
    _PRIMARY_INDEX: Final = "SELECT 1 FROM pragma_index_list(?) WHERE origin = 'pk'"
    # The rules of SQLite that derive an affinity from the words of a type, in their order.
    _KINDS: Final = (
        ("INT", "long"),
        ("BOOL", "boolean"),
        ("CHAR", "string"),
        ("CLOB", "string"),
        ("TEXT", "string"),
        ("BLOB", "binary"),
        ("REAL", "double"),
        ("FLOA", "double"),
        ("DOUB", "double"),
        ("NUM", "double"),
        ("DEC", "double"),
    )

    def columns(self, session: Session, table: str, key: str) -> list[ColumnInfo]:
        """Return the columns; a key is the rowid, or is not null and has a unique index."""
        if "." in table:
            raise StoreError(f"SQLite tables have no schema; write {table} without one")
        name = table.strip('"')
        rows = session.rows(self._COLUMNS, name)
        primary = [column for column, _, _, position in rows if position]
        rowids = [column for column, kind, *_ in rows if kind.upper() == "INTEGER"]
        has_index = bool(session.rows(self._PRIMARY_INDEX, name))
        is_rowid = primary == [key] and key in rowids and not has_index
        is_indexed = bool(session.rows(self._UNIQUE_INDEX, name, key))
        return [
            ColumnInfo(
                column,
                self._kind(kind),
                column == key and (is_rowid or bool(not_null and is_indexed)),
            )
            for column, kind, not_null, _ in rows
        ]

    def writers(self, session: Session, table: str) -> frozenset[str]:
        """Return nothing: SQLite has one writer at a time, so keys become visible in order."""
        del session, table
        return frozenset()

    def cell(self, column: str, kind: str) -> str:
        """Return the column unchanged."""
        del kind
        return column

    def _kind(self, declared: str) -> str:
        return next((kind for word, kind in self._KINDS if word in declared.upper()), "string")


class PostgresDialect:
    """The dialect of PostgreSQL."""

    _COLUMNS: Final = """
        SELECT a.attname, format_type(a.atttypid, NULL), a.attname = ? AND a.attnotnull AND EXISTS (
            SELECT 1 FROM pg_index AS i
            WHERE i.indrelid = a.attrelid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
            AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum
        )
        FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
        WHERE c.oid = to_regclass(?) AND c.relkind IN ('r', 'p') AND a.attnum > 0
        AND NOT a.attisdropped
        ORDER BY a.attnum"""
    _SEQUENCE: Final = """
        SELECT seqcache, seqincrement, seqcycle FROM pg_sequence
        WHERE seqrelid = to_regclass(pg_get_serial_sequence(?, ?))"""
    _WRITERS: Final = f"""
        SELECT DISTINCT CASE WHEN pid IS NULL THEN '{PREPARED}' ELSE virtualtransaction END
        FROM pg_locks
        WHERE locktype = 'relation' AND mode = 'RowExclusiveLock' AND granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND (
            relation = to_regclass(?)
            OR relation IN (SELECT relid FROM pg_partition_tree(to_regclass(?)))
        )"""
    _KINDS: Final = {
        "smallint": "long",
        "integer": "long",
        "bigint": "long",
        "real": "double",
        "double precision": "double",
        "numeric": "double",
        "boolean": "boolean",
        "bytea": "binary",
        "timestamp with time zone": "timestamp",
        "timestamp without time zone": "timestamp",
    }
    _CASTS: Final = {"string": "::text", "double": "::float8"}

    def columns(self, session: Session, table: str, key: str) -> list[ColumnInfo]:
        """Return the columns; a key whose sequence is not in order of time is refused."""
        rows = session.rows(self._COLUMNS, key, table)
        if any(name == key for name, *_ in rows):
            for cache, increment, cycle in session.rows(self._SEQUENCE, table, key):
                if cache > 1 or increment < 1 or cycle:
                    raise StoreError(
                        f"the sequence of {table} gives keys out of order (CACHE {cache}, "
                        f"INCREMENT {increment}{', CYCLE' if cycle else ''}); it needs CACHE 1, "
                        "a positive INCREMENT and NO CYCLE"
                    )
        return [
            ColumnInfo(name, self._KINDS.get(kind, "string"), unique) for name, kind, unique in rows
        ]

    def writers(self, session: Session, table: str) -> frozenset[str]:
        """Return the holders of a write lock; a standby, which does not know them, is refused."""
        if session.rows("SELECT 1 WHERE pg_is_in_recovery()"):
            raise StoreError(
                "this PostgreSQL is a standby, which does not know who is writing; read a stream "
                "of a table from the primary"
            )
        return frozenset(name for (name,) in session.rows(self._WRITERS, table, table))

    def cell(self, column: str, kind: str) -> str:
        """Return the column, cast to text or to double where its own type is not one of ours."""
        return f"{column}{self._CASTS.get(kind, '')}"


DIALECTS: Final[dict[str, Dialect]] = {"sqlite": SqliteDialect(), "postgres": PostgresDialect()}


class TableColumn(NamedTuple):
    """A column; its kind is long, double, boolean, string, binary or timestamp."""

    name: str
    kind: str


@dataclass(frozen=True)
class AppendOnlyTable:
    """A table whose rows are added with ever larger keys, and never changed.

    The key is an integer column, never null, unique, and assigned by the database on insertion. The
    name of the table may be preceded by a schema.
    """

    database: Database
    table: str
    key: str

    def columns(self) -> list[TableColumn]:
        """Return the columns; a table or key that cannot be read in order is refused."""
        columns = self._read(
            lambda session: self._dialect.columns(session, self._quoted_table, self.key)
        )
        if not columns:
            raise StoreError(f"{self.database.name}: there is no table {self.table!r}")
        keys = {name: (kind, unique) for name, kind, unique in columns}
        if self.key not in keys:
            raise StoreError(f"table {self.table!r} has no column {self.key!r}, only {[*keys]}")
        if keys[self.key] != ("long", True):
            raise StoreError(
                f"key {self.key!r} of table {self.table!r} must be an integer column that is the "
                "primary key, or NOT NULL with a unique index on it alone"
            )
        return [TableColumn(name, kind) for name, kind, _ in columns]

    def top(self) -> int | None:
        """Return the largest key, or None if the table is empty."""
        return self._one(f"SELECT max({self._quoted_key}) FROM {self._quoted_table}")

    def bottom(self) -> int | None:
        """Return the smallest key, or None if the table is empty."""
        return self._one(f"SELECT min({self._quoted_key}) FROM {self._quoted_table}")

    def writers(self) -> frozenset[str]:
        """Return the open transactions that may have taken a key."""
        return self._read(lambda session: self._dialect.writers(session, self._quoted_table))

    def end(self, after: int, upto: int, limit: int) -> int:
        """Return the key of the row `limit` rows after a key, or the last key up to `upto`."""
        rows = f"SELECT {self._quoted_key} AS place {self._between} LIMIT ?"
        last = self._one(f"SELECT max(place) FROM ({rows}) AS found", after, upto, limit)
        return after if last is None else last

    def page(self, columns: Sequence[TableColumn], after: int, upto: int, limit: int) -> list[Row]:
        """Return rows above `after` up to `upto`, in order: the key, then the columns."""
        cells = ", ".join([self._quoted_key, *map(self._cell, columns)])
        return self._read(
            lambda session: session.rows(
                f"SELECT {cells} {self._between} LIMIT ?", after, upto, limit
            )
        )

    @property
    def _dialect(self) -> Dialect:
        return DIALECTS[self.database.dialect]

    @property
    def _quoted_table(self) -> str:
        return ".".join(map(_quoted, self.table.split(".")))

    @property
    def _quoted_key(self) -> str:
        return _quoted(self.key)

    @property
    def _between(self) -> str:
        key = self._quoted_key
        return f"FROM {self._quoted_table} WHERE {key} > ? AND {key} <= ? ORDER BY {key}"

    def _cell(self, column: TableColumn) -> str:
        return self._dialect.cell(_quoted(column.name), column.kind)

    def _one(self, sql: str, *values: int) -> int | None:
        number: int | None = self._read(lambda session: session.rows(sql, *values))[0][0]
        return number

    def _read(self, work: Callable[[Session], T]) -> T:
        return self.database.read(work)


def _quoted(name: str) -> str:
    validate.name("the name of a table or column", name, StoreError)
    if any(character in name for character in _FORBIDDEN):
        raise StoreError(
            f"the name of a table or column must not contain any of {_FORBIDDEN!r}, but {name!r} "
            "does"
        )
    return f'"{name}"'


@dataclass(frozen=True)
class HorizonCandidate:
    """A largest key, and the transactions that were writing after it was read.

    Once these have ended, no row with a smaller key can appear: its transaction would have taken
    the key before, and a transaction is among the writers from then until it ends.
    """

    top: int
    writers: frozenset[str]


@dataclass
class CommitHorizon:
    """The horizon of one table, polled repeatedly.

    A long transaction holds back only rows that come after it began to write, provided that the
    horizon was polled before it.
    """

    table: AppendOnlyTable
    upto: int | None = None
    _next: HorizonCandidate | None = field(default=None, init=False)

    def look(self, patience_s: float) -> int | None:
        """Return the horizon, or None, waiting for writers for up to `patience_s`."""
        deadline = time.monotonic() + patience_s
        self._advance()
        if self._next is None:
            top = self.table.top()
            if top is None:
                return self.upto
            # A current writer may be PREPARED later, under that name.
            self._next = HorizonCandidate(top, self.table.writers() | {PREPARED})
        while not self._advance() and time.monotonic() < deadline:
            time.sleep(_POLL_EVERY_S)
        return self.upto

    def _advance(self) -> bool:
        """Move to the candidate if all of its writers have ended."""
        if self._next is None or self._next.writers & self.table.writers():
            return False
        self.upto, self._next = self._next.top, None
        return True
