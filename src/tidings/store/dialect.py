"""What must be known of a kind of database to read a table of others in order."""

from typing import NamedTuple, Protocol

from tidings.store.protocol import Session


class ColumnInfo(NamedTuple):
    """A column: its name, its kind, and whether it can be a key: never empty, and unique.

    The kind is long, double, boolean, string, binary or timestamp.
    """

    name: str
    kind: str
    unique: bool


class Dialect(Protocol):
    """Tells of a table, whose name is quoted."""

    def columns(self, session: Session, table: str, key: str) -> list[ColumnInfo]:
        """Give the columns, with `unique` only for the key; none: there is no such table."""

    def writers(self, session: Session, table: str) -> frozenset[str]:
        """Name the transactions that may have taken a key and are not over yet."""

    def cell(self, column: str, kind: str) -> str:
        """Give the SQL of a column by its kind."""
