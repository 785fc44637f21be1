"""SQL dialects for reading another application's table in order of its key.

SQLite has one writer at a time, so its keys become visible in order. In PostgreSQL they do not: a
transaction may take a smaller key and commit later. But an INSERT locks its table before it takes a
key, and the lock is released after the commit is visible; so every transaction that has taken a key
and not ended is among those that hold such a lock.
"""

from typing import Final, NamedTuple, Protocol

from tidings.errors import StoreError
from tidings.store.protocol import Session

PREPARED: Final = "prepared"
"""Stands for any two-phase transaction: its name before it was prepared cannot be known."""


class ColumnInfo(NamedTuple):
    """A column: its name, its kind, and whether it is the key and never null and unique.

    The kind is long, double, boolean, string, binary or timestamp.
    """

    name: str
    kind: str
    unique: bool


class Dialect(Protocol):
    """The queries about a table, whose name is quoted."""

    def columns(self, session: Session, table: str, key: str) -> list[ColumnInfo]:
        """Return the columns, with `unique` only for the key; none if there is no such table."""

    def writers(self, session: Session, table: str) -> frozenset[str]:
        """Return the transactions that may have taken a key and have not ended."""

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
        """Return none: SQLite has one writer at a time, and a key is taken when it is written."""
        del session, table
        return frozenset()

    def cell(self, column: str, kind: str) -> str:
        """Return the column as it is."""
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
        """Return the holders of a write lock; a standby does not know them, and is refused."""
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
