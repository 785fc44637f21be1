"""A table of another application, in each kind of database, and its writers."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from tidings.store import AppendOnlyTable, open_database

SQLITE = """CREATE TABLE outbox (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, score REAL,
    at TIMESTAMP, good BOOLEAN, bytes BLOB, "group" TEXT)"""
POSTGRES = """CREATE TABLE outbox (id bigserial PRIMARY KEY, name text, score numeric,
    at timestamptz, good boolean, bytes bytea, "group" jsonb)"""


def connect(address: str) -> Any:
    """Open a connection of another application; its transactions end with `commit`."""
    if address.startswith("postgresql"):
        return psycopg.connect(address)
    return sqlite3.connect(address)


def make(address: str, sql: str | None = None) -> str:
    """Create the table again."""
    default = POSTGRES if address.startswith("postgresql") else SQLITE
    with closed(address) as connection:
        connection.execute("DROP TABLE IF EXISTS outbox")
        connection.execute(sql or default)
        connection.commit()
    return address


def insert(connection: Any, *names: str) -> None:
    """Insert rows without a commit."""
    for name in names:
        connection.execute(f"INSERT INTO outbox (name) VALUES ('{name}')")


def add(address: str, *names: str) -> None:
    """Insert rows in one transaction."""
    with closed(address) as connection:
        insert(connection, *names)
        connection.commit()


@contextmanager
def closed(address: str) -> Iterator[Any]:
    connection = connect(address)
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def opened(address: str, table: str = "outbox", key: str = "id") -> Iterator[AppendOnlyTable]:
    """Open the table for reading."""
    database = open_database(address)
    try:
        yield AppendOnlyTable(database, table, key)
    finally:
        database.close()
