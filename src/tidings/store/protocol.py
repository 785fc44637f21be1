"""What a database must do to carry a store: read, write whole or not at all, load many rows."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

from tidings.errors import StoreError, shown
from tidings.model import validate

T = TypeVar("T")
Cell = str | int | float | None
Row = tuple[Any, ...]

DAMAGE_ERRORS: Final = (ArithmeticError, LookupError, MemoryError, TypeError, ValueError)
"""What work raises over cells that are of another type than the schema says, or missing."""
FOREVER: Final = 2**63 - 1
MAX_ID_BYTES: Final = 1_000


@dataclass(frozen=True)
class StagingTable:
    """A table that one transaction fills and that is empty again after it."""

    name: str
    columns: Mapping[str, str] = field(hash=False)

    @property
    def definition(self) -> str:
        """The table, as SQL that every database reads."""
        listed = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
        return f"CREATE TEMPORARY TABLE IF NOT EXISTS {self.name} ({listed})"


class Session(Protocol):
    """A transaction that is under way. Values stand in the SQL as `?`."""

    def rows(self, sql: str, *values: Cell) -> list[Row]:
        """Give the rows of a question."""

    def run(self, sql: str, *values: Cell) -> int:
        """Run one statement; give how many rows it changed."""

    def stage(self, table: StagingTable, rows: Iterable[tuple[Cell, ...]]) -> None:
        """Fill a staging table, which holds nothing else then."""

    def alone(self) -> None:
        """Wait until no other transaction is alone, and stay so until the end of this one."""

    def has_table(self, name: str) -> bool:
        """Tell whether there is such a table."""


class Database(Protocol):
    """A place for a store, safe for threads. What it cannot do is a `StoreError` that says why.

    Work may be tried again from its start, where a connection is lost. So it changes nothing but
    the database, and does no harm when its first try was written after all.
    """

    dialect: str
    """The folder of its migrations."""

    name: str
    """Where it is, as errors show it: without passwords."""

    def read(self, work: Callable[[Session], T]) -> T:
        """Do work that reads, all of it from one state."""

    def write(self, work: Callable[[Session], T]) -> T:
        """Do work in one transaction: when this returns, it is on disk; when it raises, nothing."""

    def close(self) -> None:
        """Give all connections back; nothing can be done after it."""


def damage_error(name: str, error: BaseException) -> StoreError:
    """Return the error of a store whose cells are not what its schema says."""
    kind = type(error).__name__
    return StoreError(
        f"{name}: it is damaged, or no store of Tidings, or cannot hold what was given "
        f"({kind}: {error})"
    )


def check_count(what: str, value: object, low: int = 0) -> int:
    """Check a whole number that a database can hold."""
    return validate.count(what, value, StoreError, low=low, high=FOREVER)


def check_id(what: str, value: object) -> str:
    """Check an id that every database can hold in its indexes."""
    found = validate.name(what, value, StoreError)
    if len(found.encode()) > MAX_ID_BYTES:
        raise StoreError(f"{what} is at most {MAX_ID_BYTES} bytes long, not {shown(found[:40])}...")
    return found
