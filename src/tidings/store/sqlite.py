"""A store in an SQLite file: one machine, any number of threads and processes."""

import re
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from tidings.errors import InvalidForm, StoreError, TidingsError, shown
from tidings.model.validate import regular_file
from tidings.store.pool import ConnectionPool
from tidings.store.protocol import (
    DAMAGE_ERRORS,
    Cell,
    ChangeWatch,
    Row,
    Session,
    StagingTable,
    damage_error,
)

T = TypeVar("T")

_OLDEST: Final = (3, 37, 0)
_LOOK_EVERY_S: Final = 0.004
_PRAGMAS: Final = (
    "PRAGMA foreign_keys = ON",
    "PRAGMA synchronous = FULL",
    "PRAGMA temp_store = MEMORY",
    # A damaged or forged file must not run functions through its views, nor misread its pages.
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
)
_ACTIVE_PARTS: Final = """
    SELECT type, name, tbl_name FROM sqlite_schema WHERE type NOT IN ('table', 'index')
    UNION ALL
    SELECT 'generated column', columns.name, tables.name
    FROM sqlite_schema AS tables, pragma_table_xinfo(tables.name) AS columns
    WHERE tables.type = 'table' AND columns.hidden > 0
"""
_DEFINITIONS: Final = """
    SELECT name, tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL
"""
_BEFORE_PARENTHESIS: Final = re.compile(r"([^\s(,=<>]*)\s*\(")
_PARENTHESISED: Final = ("", "check", "in", "key", "unique", "and", "or", "not", "coalesce")
_COMPUTING: Final = re.compile(r"--|/\*|\|\||->|\b(like|glob|regexp|match)\b", re.IGNORECASE)
_EXPLANATIONS: Final = {
    sqlite3.SQLITE_FULL: "the disk is full; free some space and try again",
    sqlite3.SQLITE_READONLY: "it is read-only; make the file and its folder writable",
    sqlite3.SQLITE_BUSY: "another process has been writing for too long; try again, or stop it",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; its folder must exist and be writable",
    sqlite3.SQLITE_NOTADB: "this file is not an SQLite database; choose another one",
    sqlite3.SQLITE_CORRUPT: "the file is damaged; restore it from a copy",
    sqlite3.SQLITE_IOERR: "the disk cannot be read or written; check it and try again",
}


def _decode(data: bytes) -> str:
    return data.decode("utf-8", errors="surrogateescape")


class SqliteSession:
    """A transaction on a connection to SQLite."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, *values: Cell) -> list[Row]:
        return self._connection.execute(sql, values).fetchall()

    def run(self, sql: str, *values: Cell) -> int:
        return self._connection.execute(sql, values).rowcount

    def stage(self, table: StagingTable, rows: Iterable[tuple[Cell, ...]]) -> None:
        self._connection.execute(table.definition)
        self._connection.execute(f"DELETE FROM {table.name}")
        placeholders = ", ".join("?" * len(table.columns))
        self._connection.executemany(f"INSERT INTO {table.name} VALUES ({placeholders})", rows)

    def lock(self) -> None:
        """Do nothing: a transaction that writes holds the only lock from its start."""

    def has_table(self, name: str) -> bool:
        return bool(self.rows("SELECT 1 FROM sqlite_schema WHERE name = ?", name))

    def check_tables(self, names: Collection[str]) -> None:
        for kind, name, table in self.rows(_ACTIVE_PARTS):
            if table in names:
                raise TypeError(f"it has a {kind}, {shown(name)}, which no store has")
        for name, table, definition in self.rows(_DEFINITIONS):
            if table in names and _computes(definition, names):
                raise TypeError(f"{shown(name)} has an expression of its own, which no store has")


def _computes(definition: str, names: Collection[str]) -> bool:
    """Return whether a definition has more than names, comparisons and `coalesce`.

    A check, a default or an index over a forged expression would run it with every row.
    """
    before = (sign.strip('"`[]').lower() for sign in _BEFORE_PARENTHESIS.findall(definition))
    return bool(_COMPUTING.search(definition)) or not {*before} <= {*names, *_PARENTHESISED}


class SqliteWatch:
    """A watch over an SQLite file, which polls a number that every commit changes.

    Reading the number takes microseconds, because it is in memory that all processes share.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._seen = self._look()

    def wait(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while self._look() == self._seen:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return False
            time.sleep(min(_LOOK_EVERY_S, left_s))
        self._seen = self._look()
        return True

    def close(self) -> None:
        self._connection.close()

    def _look(self) -> int:
        return int(self._connection.execute("PRAGMA data_version").fetchone()[0])


class SqliteDatabase:
    """An SQLite file with a write-ahead log: readers never wait, writers wait for each other.

    A writer waits for up to `patience_s`. Committed data is on disk, whatever fails afterwards.
    """

    dialect = "sqlite"
    schema = "main"

    def __init__(self, path: Path, patience_s: float = 30.0, *, read_only: bool = False) -> None:
        if sqlite3.sqlite_version_info < _OLDEST:
            oldest = ".".join(map(str, _OLDEST))
            raise StoreError(
                f"stores need SQLite {oldest} or newer, but this Python has "
                f"{sqlite3.sqlite_version}; use another Python, or PostgreSQL"
            )
        self.name = str(path)
        self._address = f"{_resolve(path).as_uri()}?mode={'ro' if read_only else 'rwc'}"
        self._patience_s = patience_s
        self._connections = ConnectionPool(self.name, self._connect)
        if not read_only:
            self._enable_write_ahead_log()

    def read(self, work: Callable[[Session], T]) -> T:
        return self._work("BEGIN", work)

    def write(self, work: Callable[[Session], T]) -> T:
        return self._work("BEGIN IMMEDIATE", work)

    def back_up(self, path: Path) -> None:
        if path.exists():
            raise StoreError(f"{path} already exists; choose a file that does not")
        with self._explaining_errors():
            connection = self._connect()
            try:
                connection.execute("VACUUM INTO ?", (str(path),))
            finally:
                connection.close()

    def watch(self, channel: str | None = None) -> ChangeWatch:
        with self._explaining_errors():
            return SqliteWatch(self._connect())

    def close(self) -> None:
        self._connections.close()

    def _work(self, begin: str, work: Callable[[Session], T]) -> T:
        with self._explaining_errors(), self._connections.transaction(begin) as connection:
            return work(SqliteSession(connection))

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._address,
            uri=True,
            timeout=self._patience_s,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.text_factory = _decode  # a damaged file may hold text that is not UTF-8
        for pragma in _PRAGMAS:
            connection.execute(pragma)
        return connection

    def _enable_write_ahead_log(self) -> None:
        """Turn the write-ahead log on; the file remembers it."""
        deadline = time.monotonic() + self._patience_s
        with self._explaining_errors():
            connection = self._connect()
            try:
                while not _try_write_ahead_log(connection, deadline):
                    time.sleep(0.01)
            finally:
                connection.close()

    @contextmanager
    def _explaining_errors(self) -> Iterator[None]:
        """Raise errors of SQLite as `StoreError`s with advice."""
        try:
            yield
        except sqlite3.Error as error:
            primary = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
            explanation = _EXPLANATIONS.get(primary, "it cannot do this")
            raise StoreError(f"{self.name}: {explanation} (SQLite says: {error})") from error
        except TidingsError:
            raise
        except DAMAGE_ERRORS as error:
            raise damage_error(self.name, error) from error


def _resolve(path: Path) -> Path:
    """Return the file of a store, which need not exist yet; a pipe or a device is refused."""
    try:
        resolved = path.resolve()
        return regular_file(resolved) if resolved.exists() else resolved
    except InvalidForm as error:
        raise StoreError(f"{path}: {error}") from None
    except (OSError, RuntimeError, ValueError) as error:
        raise StoreError(f"{shown(str(path))} is not a valid file name: {error}") from None


def _try_write_ahead_log(connection: sqlite3.Connection, deadline: float) -> bool:
    """Try to turn the log on; SQLite does not wait for other processes that do the same."""
    try:
        connection.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
            raise
        return False
    return True
