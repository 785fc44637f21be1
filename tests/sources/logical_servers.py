"""A PostgreSQL server whose changes can be read from a slot; the usual one does not keep them."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
from tests.sources.pipelines import lines
from tests.store import server

NAMES = {"slot": "tidings", "publication": "tidings"}


@contextmanager
def running_logical() -> Iterator[Any]:
    """Start a server that keeps what logical decoding needs."""
    with TemporaryDirectory(prefix="tidings-", ignore_cleanup_errors=True) as folder:
        running = server.make(Path(folder) / "postgres")
        with psycopg.connect(running.get_uri(), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET wal_level = logical")
        server.crash(running)
        server.start(running)
        try:
            yield running
        finally:
            running.cleanup()


@contextmanager
def open_shop(running: Any) -> Iterator[psycopg.Connection[Any]]:
    """Yield a connection to a new database with two tables, a publication of one, and a slot."""
    address = server.database(running, "shop")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE TABLE films (id INT PRIMARY KEY, title TEXT, rating NUMERIC)")
        connection.execute("CREATE TABLE logs (line TEXT)")
        connection.execute("CREATE PUBLICATION tidings FOR TABLE films")
        connection.execute("SELECT pg_create_logical_replication_slot('tidings', 'pgoutput')")
        try:
            yield connection
        finally:
            slots = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
            connection.execute(slots)


def address_of(shop: psycopg.Connection[Any]) -> str:
    """Return the address of a database that a connection leads to."""
    info = shop.info
    return f"postgresql://{info.user}@/{info.dbname}?host={info.host}"


def publish_events(shop: psycopg.Connection[Any]) -> dict[str, Any]:
    """Create a table whose rows are messages; return options that read them."""
    shop.execute("CREATE TABLE events (id SERIAL PRIMARY KEY, event BYTEA)")
    shop.execute("ALTER PUBLICATION tidings ADD TABLE events")
    return {**NAMES, "url": address_of(shop), "value": "event"}


def insert(shop: psycopg.Connection[Any], values: Iterable[str]) -> None:
    """Insert messages, each in a transaction."""
    for value in values:
        shop.execute("INSERT INTO events (event) VALUES (%s)", (value.encode(),))


def fill(shop: psycopg.Connection[Any], folder: Path) -> dict[str, Any]:
    """Insert the lines of a stream, each in a transaction; return options that read them."""
    options = publish_events(shop)
    insert(shop, lines(folder))
    return options
