"""A table of others that only grows, read in the order of its key: an outbox, a log of events."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from tidings.errors import StoreError
from tidings.model import validate
from tidings.store import (
    append_only_postgres as growing_postgres,
)
from tidings.store import (
    append_only_sqlite as growing_sqlite,
)
from tidings.store.dialect import Dialect
from tidings.store.protocol import Database, Row, Session

T = TypeVar("T")

_TELLING: Final[dict[str, Dialect]] = {"sqlite": growing_sqlite, "postgres": growing_postgres}
_SIGNS: Final = '"?%\0'


class TableColumn(NamedTuple):
    """A column; its kind is long, double, boolean, string, binary or timestamp."""

    name: str
    kind: str


@dataclass(frozen=True)
class AppendOnlyTable:
    """A table whose rows are added with ever larger keys, and never changed.

    The key is a column of whole numbers, never empty, unique, and given by the database when a row
    is inserted. The name of the table may have a schema before it.
    """

    database: Database
    table: str
    key: str

    def columns(self) -> list[TableColumn]:
        """Give the columns; a table or key that cannot be read in order is refused."""
        told = self._read(lambda session: self._telling.columns(session, self._name, self.key))
        if not told:
            raise StoreError(f"{self.database.name}: there is no table {self.table!r}")
        keys = {name: (kind, unique) for name, kind, unique in told}
        if self.key not in keys:
            raise StoreError(f"table {self.table!r} has no column {self.key!r}, only {[*keys]}")
        if keys[self.key] != ("long", True):
            raise StoreError(
                f"key {self.key!r} of table {self.table!r} is a column of whole numbers that is "
                "its primary key, or NOT NULL with a unique index of its own"
            )
        return [TableColumn(name, kind) for name, kind, _ in told]

    def top(self) -> int | None:
        """Give the largest key; None: the table is empty."""
        return self._one(f"SELECT max({self._key}) FROM {self._name}")

    def bottom(self) -> int | None:
        """Give the smallest key; None: the table is empty."""
        return self._one(f"SELECT min({self._key}) FROM {self._name}")

    def writers(self) -> frozenset[str]:
        """Name the transactions that may have taken a key and are not over yet."""
        return self._read(lambda session: self._telling.writers(session, self._name))

    def end(self, after: int, upto: int, limit: int) -> int:
        """Give the key of the row that is `limit` rows after a key, or the last one `upto`."""
        rows = f"SELECT {self._key} AS place {self._between} LIMIT ?"
        found = self._one(f"SELECT max(place) FROM ({rows}) AS found", after, upto, limit)
        return after if found is None else found

    def page(self, columns: Sequence[TableColumn], after: int, upto: int, limit: int) -> list[Row]:
        """Give rows above `after` up to `upto`, in order: the key, then the columns."""
        cells = ", ".join([self._key, *map(self._cell, columns)])
        return self._read(
            lambda session: session.rows(
                f"SELECT {cells} {self._between} LIMIT ?", after, upto, limit
            )
        )

    @property
    def _telling(self) -> Dialect:
        return _TELLING[self.database.dialect]

    @property
    def _name(self) -> str:
        return ".".join(map(_quoted, self.table.split(".")))

    @property
    def _key(self) -> str:
        return _quoted(self.key)

    @property
    def _between(self) -> str:
        key = self._key
        return f"FROM {self._name} WHERE {key} > ? AND {key} <= ? ORDER BY {key}"

    def _cell(self, column: TableColumn) -> str:
        return self._telling.cell(_quoted(column.name), column.kind)

    def _one(self, sql: str, *values: int) -> int | None:
        found: int | None = self._read(lambda session: session.rows(sql, *values))[0][0]
        return found

    def _read(self, work: Callable[[Session], T]) -> T:
        return self.database.read(work)


def _quoted(name: str) -> str:
    validate.name("the name of a table or column", name, StoreError)
    if any(sign in name for sign in _SIGNS):
        raise StoreError(f"the name of a table or column has none of {_SIGNS!r} in it, as {name!r}")
    return f'"{name}"'
