"""Another application's append-only table, read in order of its key: an outbox, an event log.

Transactions commit out of order, so a reader that followed the largest key would miss rows. It
reads up to the commit horizon instead: the key up to which all rows are visible.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

from tidings.errors import StoreError
from tidings.model import validate
from tidings.store.dialect import DIALECTS, PREPARED, Dialect
from tidings.store.protocol import Database, Row, Session

T = TypeVar("T")

_FORBIDDEN: Final = '"?%\0'
_POLL_EVERY_S: Final = 0.05


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
        """Return the largest key; None if the table is empty."""
        return self._one(f"SELECT max({self._quoted_key}) FROM {self._quoted_table}")

    def bottom(self) -> int | None:
        """Return the smallest key; None if the table is empty."""
        return self._one(f"SELECT min({self._quoted_key}) FROM {self._quoted_table}")

    def writers(self) -> frozenset[str]:
        """Return the transactions that may have taken a key and have not ended."""
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
    """A largest key that was seen, and the transactions that were writing after that.

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
        """Return the horizon, waiting for writers for up to `patience_s`; None if not known yet."""
        deadline = time.monotonic() + patience_s
        self._advance()
        if self._next is None:
            top = self.table.top()
            if top is None:
                return self.upto
            # A writer of now may be PREPARED later, under that name.
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
