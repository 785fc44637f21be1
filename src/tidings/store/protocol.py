"""The database under a store: consistent reads, atomic writes, bulk loads."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Final, Protocol, TypeVar, get_args, get_origin, get_type_hints

from tidings.errors import StoreError, described, shown
from tidings.model import validate

_LOG: Final = logging.getLogger(__name__)
T = TypeVar("T")
Cell = str | int | float | None
Row = tuple[Any, ...]

DAMAGE_ERRORS: Final = (ArithmeticError, LookupError, MemoryError, TypeError, ValueError)
"""Errors raised over cells that are missing or of another type than the schema says."""
FOREVER: Final = 2**63 - 1
MAX_ID_BYTES: Final = 1_000


@dataclass(frozen=True)
class StagingTable:
    """A temporary table that one transaction fills and that is empty again after it."""

    name: str
    columns: Mapping[str, str] = field(hash=False)

    @property
    def definition(self) -> str:
        """The table, as SQL that every database reads."""
        columns = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
        return f"CREATE TEMPORARY TABLE IF NOT EXISTS {self.name} ({columns})"


class Session(Protocol):
    """A transaction in progress. SQL has `?` for each value."""

    def rows(self, sql: str, *values: Cell) -> list[Row]:
        """Return the rows of a query."""

    def run(self, sql: str, *values: Cell) -> int:
        """Run one statement; return the number of rows that it changed."""

    def stage(self, table: StagingTable, rows: Iterable[tuple[Cell, ...]]) -> None:
        """Replace the content of a staging table."""

    def lock(self) -> None:
        """Wait for the store's exclusive lock, and keep it until this transaction ends."""

    def has_table(self, name: str) -> bool:
        """Return whether a table exists."""

    def check_tables(self, names: Collection[str]) -> None:
        """Refuse tables that run code from the file, such as triggers and views.

        A forged file could use them to run forever; our own tables have none.
        """


class ChangeWatch(Protocol):
    """A watch over the commits of other connections, in this process or another."""

    def wait(self, timeout_s: float) -> bool:
        """Wait until something was committed since the last call; return False after a timeout.

        It may return True without cause, so the caller must check.
        """

    def close(self) -> None:
        """Close its connection."""


class Transactions(Protocol):
    """Anything that runs work in transactions.

    All failures are `StoreError`s with the reason. Work may be retried from its start if a
    connection is lost. So it must change nothing but the database, and be harmless if its first
    attempt was committed after all.
    """

    def read(self, work: Callable[[Session], T]) -> T:
        """Run read-only work on one consistent snapshot."""

    def write(self, work: Callable[[Session], T]) -> T:
        """Run work in one transaction: durable when this returns, undone when it raises."""


class Database(Transactions, Protocol):
    """A thread-safe database."""

    dialect: str
    """The kind of database, which is also the folder of its migrations."""

    schema: str
    """The name of the schema that holds the tables, where a database has several."""

    name: str
    """The location as shown in errors: without passwords."""

    def back_up(self, path: Path) -> None:
        """Write a consistent copy to a new file, while others read and write."""

    def watch(self, channel: str | None = None) -> ChangeWatch:
        """Return a watch, for one thread; close it after use.

        PostgreSQL notifies of one channel, by default that of the store in this schema; SQLite of
        every commit.
        """

    def close(self) -> None:
        """Close all connections; the database cannot be used afterwards."""


def damage_error(name: str, error: BaseException) -> StoreError:
    """Return the error for cells that violate the schema."""
    kind = type(error).__name__
    return StoreError(
        f"{name}: it is damaged, is not a Tidings store, or cannot hold these values "
        f"({kind}: {error})"
    )


def read_row(kind: Callable[..., T], row: Iterable[object]) -> T:
    """Return a row as an object of a class whose annotations are the types of the cells.

    A cell of another type, which a file may hold whatever its schema says, raises a `TypeError`.
    """
    cells = tuple(row)
    for cell, (name, types) in zip(cells, _cell_types(kind), strict=True):
        if not isinstance(cell, types):
            raise TypeError(f"{name} is {shown(cell)}")
    return kind(*cells)


def read_rows(read: Callable[[Row], T], rows: Iterable[Row]) -> list[T]:
    """Return what is read from rows; a damaged one is logged, and does not hide the others."""
    found = []
    for row in rows:
        try:
            found.append(read(row))
        except DAMAGE_ERRORS as error:
            _LOG.warning("skipping a damaged row of a store: %s", described(error))
    return found


@cache
def _cell_types(kind: Any) -> list[tuple[str, tuple[type, ...]]]:
    """Return the fields of a class with the types that each may have."""
    found = []
    for name, hint in get_type_hints(kind).items():
        parts = get_args(hint) if isinstance(hint, UnionType) else (hint,)
        types = (object if part is Any else get_origin(part) or part for part in parts)
        found.append((name, tuple(types)))
    return found


def check_count(label: str, value: object, low: int = 0) -> int:
    """Return a value if it is an integer that a database can hold."""
    return validate.count(label, value, StoreError, low=low, high=FOREVER)


def check_iterable(label: str, values: Iterable[T]) -> Iterable[T]:
    """Return a collection, or another iterable, of records to write; refuse anything else."""
    if not validate.is_a(values, Iterable) or validate.is_a(values, str | bytes):
        raise StoreError(f"{label} must be a list or another iterable, not {shown(values)}")
    return values


def check_id(label: str, value: object) -> str:
    """Return a value if it is an id that every database can hold in its indexes."""
    name = validate.name(label, value, StoreError)
    if len(name.encode()) > MAX_ID_BYTES:
        raise StoreError(f"{label} is at most {MAX_ID_BYTES} bytes long, not {shown(name[:40])}...")
    return name
