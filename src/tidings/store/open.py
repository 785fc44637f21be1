"""Opens a store, or a database of others, by its address."""

from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tidings.errors import StoreError
from tidings.store.address import Address, read_address
from tidings.store.catalogue import Catalogue
from tidings.store.dead_letters import DeadLetters
from tidings.store.history import ChangeHistory
from tidings.store.migrate import migrate
from tidings.store.notifications import Notifications
from tidings.store.protocol import Database
from tidings.store.sqlite import SqliteDatabase


@dataclass(frozen=True)
class Store:
    """What survives, in four rooms over one database. Safe for threads; close it after use."""

    database: Database
    catalogue: Catalogue
    history: ChangeHistory
    notifications: Notifications
    letters: DeadLetters

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
    for up to `patience_s`. Nothing of an address but its host and database is ever shown.

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
        ChangeHistory(database),
        Notifications(database),
        DeadLetters(database),
    )


def open_database(address: str | Path, *, patience_s: float = 30.0) -> Database:
    """Open a database of others, by an address as that of a store; it is only read."""
    return _database(address, patience_s, ours=False)


def _database(address: str | Path, patience_s: float, *, ours: bool = True) -> Database:
    found = read_address(address)
    if found.file is not None:
        return SqliteDatabase(found.file, patience_s, read_only=found.read_only or not ours)
    return _postgres(found, patience_s, ours=ours)


def _postgres(address: Address, patience_s: float, *, ours: bool) -> Database:
    try:
        from tidings.store.postgres import PostgresDatabase
    except ImportError as error:
        raise StoreError(
            f"PostgreSQL needs psycopg ({error}); install it with: pip install 'tidings[postgres]'"
        ) from None
    return PostgresDatabase(address, patience_s, ours=ours)
