"""Opens a store, or a database of others, by its address."""

from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from urllib.parse import unquote

from tidings.errors import StoreError
from tidings.store.catalogue import Catalogue
from tidings.store.history import History
from tidings.store.letters import Letters
from tidings.store.notifications import Notifications
from tidings.store.protocol import Database
from tidings.store.schema import migrate
from tidings.store.sqlite import SqliteDatabase

_POSSIBLE: Final = "a path, sqlite:///path, or postgresql://user@host/database"
_READ_ONLY: Final = "?mode=ro"


@dataclass(frozen=True)
class Store:
    """What survives, in four rooms over one database. Safe for threads; close it after use."""

    database: Database
    catalogue: Catalogue
    history: History
    notifications: Notifications
    letters: Letters

    def close(self) -> None:
        """Give all connections back."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open_store(address: str | Path, *, patience_s: float = 30.0) -> Store:
    """Open a store, made or brought to the newest schema where needed.

    The address is a path or `sqlite:///path` (`sqlite:////path` from the root; with `?mode=ro`
    only to read), or `postgresql://user@host/database`. A database that is busy or away is waited
    for up to `patience_s`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, open_store(f"{folder}/tidings.db") as store:
    ...     store.catalogue.put({"id": "addison", "policy": {"k": 2}})
    1
    """
    database = _database(address, patience_s)
    try:
        migrate(database)
    except BaseException:
        database.close()
        raise
    return Store(
        database,
        Catalogue(database),
        History(database),
        Notifications(database),
        Letters(database),
    )


def open_database(address: str | Path, *, patience_s: float = 30.0) -> Database:
    """Open a database of others, by an address as that of a store; it is only read."""
    return _database(address, patience_s, ours=False)


def _database(address: str | Path, patience_s: float, *, ours: bool = True) -> Database:
    if isinstance(address, Path):
        return SqliteDatabase(address, patience_s, read_only=not ours)
    scheme, mark, rest = address.partition("://")
    if not mark:
        return _sqlite(address, address, patience_s, read_only=not ours)
    if scheme == "sqlite" and rest.startswith("/"):
        path = unquote(rest[1:].removesuffix(_READ_ONLY))
        read_only = rest.endswith(_READ_ONLY) or not ours
        return _sqlite(address, path, patience_s, read_only=read_only)
    if scheme in ("postgresql", "postgres"):
        return _postgres(address, patience_s, ours=ours)
    raise StoreError(f"{address!r} is no address of a store; write {_POSSIBLE}")


def _sqlite(
    address: str, path: str, patience_s: float, *, read_only: bool = False
) -> SqliteDatabase:
    if not path or path == ":memory:":
        raise StoreError(f"{address!r} names no file; a store survives: write {_POSSIBLE}")
    return SqliteDatabase(Path(path), patience_s, read_only=read_only)


def _postgres(address: str, patience_s: float, *, ours: bool) -> Database:
    try:
        from tidings.store.postgres import PostgresDatabase
    except ImportError as error:
        raise StoreError(
            f"PostgreSQL needs psycopg ({error}); install it with: pip install 'tidings[postgres]'"
        ) from None
    return PostgresDatabase(address, patience_s, ours=ours)
