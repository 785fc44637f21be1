"""Opening of stores, and of other applications' databases, by address."""

from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tidings.errors import StoreError
from tidings.store.address import DEFAULT_TENANT, Address, check_tenant, read_address
from tidings.store.address_codes import AddressCodes
from tidings.store.catalogue import Catalogue
from tidings.store.channels import Channels
from tidings.store.dead_letters import DeadLetters
from tidings.store.digests import Digests
from tidings.store.engine_log import EngineLog
from tidings.store.feed_addresses import FeedAddresses
from tidings.store.history import ChangeHistory
from tidings.store.marks import NotificationMarks
from tidings.store.migrate import migrate
from tidings.store.notifications import Notifications
from tidings.store.outbox import Outbox
from tidings.store.protocol import Database
from tidings.store.publications import Publications
from tidings.store.sqlite import SqliteDatabase
from tidings.store.tokens import Tokens
from tidings.store.webhooks import Webhooks


@dataclass(frozen=True)
class Store:
    """A store: its parts over one database. Thread-safe; close it after use."""

    database: Database
    catalogue: Catalogue
    history: ChangeHistory
    notifications: Notifications
    letters: DeadLetters
    publications: Publications
    log: EngineLog
    tokens: Tokens
    channels: Channels
    outbox: Outbox
    webhooks: Webhooks
    feed_addresses: FeedAddresses
    digests: Digests
    marks: NotificationMarks
    address_codes: AddressCodes

    def pause(self, subscriber: str) -> int:
        """Pause a subscriber, so that what would be delivered is dropped; return the version."""
        return self.catalogue.pause(subscriber)

    def resume(self, subscriber: str) -> int:
        """Resume a paused subscriber; return the version."""
        return self.catalogue.resume(subscriber)

    def close(self) -> None:
        """Close all connections."""
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


def open_store(
    address: str | Path | Address, *, patience_s: float = 30.0, tenant: str = DEFAULT_TENANT
) -> Store:
    """Open a store; it is created, or its schema upgraded, as needed.

    The address is a path or `sqlite:///path` (`sqlite:////path` if absolute; read-only with
    `?mode=ro`), or `postgresql://user@host/database`. A database that is busy or unreachable is
    retried for up to `patience_s`. Messages show only the host and database of an address. A
    `tenant` has its own store beside that of the address.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, open_store(f"{folder}/tidings.db") as store:
    ...     store.catalogue.put({"id": "addison", "policy": {"k": 2}})
    1
    """
    database = _database(read_address(address).of_tenant(check_tenant(tenant)), patience_s)
    try:
        migrate(database)
    except BaseException:
        database.close()
        raise
    channels = Channels(database)
    return Store(
        database,
        Catalogue(database),
        ChangeHistory(database),
        Notifications(database),
        DeadLetters(database),
        Publications(database),
        EngineLog(database),
        Tokens(database),
        channels,
        Outbox(database),
        Webhooks(channels),
        FeedAddresses(database),
        Digests(database),
        NotificationMarks(database),
        AddressCodes(database),
    )


def open_spool_database(address: str | Path, *, patience_s: float = 30.0) -> Database:
    """Open a database for reading and writing, which need not be a store."""
    return _database(read_address(address), patience_s)


def open_database(address: str | Path, *, patience_s: float = 30.0) -> Database:
    """Open another application's database for reading, by an address like that of a store."""
    return _database(read_address(address), patience_s, is_store=False)


def _database(address: Address, patience_s: float, *, is_store: bool = True) -> Database:
    if address.file is not None:
        read_only = address.read_only or not is_store
        return SqliteDatabase(address.file, patience_s, read_only=read_only)
    return _postgres(address, patience_s, is_store=is_store)


def _postgres(address: Address, patience_s: float, *, is_store: bool) -> Database:
    try:
        from tidings.store.postgres import PostgresDatabase
    except ImportError as error:
        raise StoreError(
            f"PostgreSQL needs psycopg ({error}); install it with: pip install 'tidings[postgres]'"
        ) from None
    return PostgresDatabase(address, patience_s, is_store=is_store)
