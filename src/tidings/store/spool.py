"""A spool: messages of sources that cannot be read again, kept until they are processed.

A message gets the next number of its source in the transaction that makes it durable, so a reader
never misses one. Marks identify messages that were stored before; they outlive the messages.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from tidings.store.open import open_spool_database
from tidings.store.protocol import Database, Session, read_row

_TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS tidings_spool (
        source TEXT NOT NULL, number BIGINT NOT NULL, message TEXT NOT NULL,
        PRIMARY KEY (source, number))""",
    """CREATE TABLE IF NOT EXISTS tidings_spool_marks (
        source TEXT NOT NULL, name TEXT NOT NULL, mark TEXT NOT NULL, at_s BIGINT NOT NULL,
        PRIMARY KEY (source, name))""",
    """CREATE TABLE IF NOT EXISTS tidings_spool_sources (
        source TEXT NOT NULL PRIMARY KEY, first BIGINT NOT NULL, next BIGINT NOT NULL,
        state TEXT NOT NULL)""",
)
_MARK: Final = """
    INSERT INTO tidings_spool_marks (source, name, mark, at_s) VALUES (?, ?, ?, ?)
    ON CONFLICT (source, name) DO UPDATE SET mark = excluded.mark, at_s = excluded.at_s"""


class SpoolEntry(NamedTuple):
    """A message as text, and the mark by which it is recognised.

    If it `may_repeat`, it is dropped if its name already has this mark.
    """

    name: str
    mark: str
    message: str
    may_repeat: bool


class SpoolBounds(NamedTuple):
    """The number of the first message that is still kept, and that of the next one."""

    first: int
    next: int


class NumberedMessage(NamedTuple):
    """A message and its number."""

    number: int
    message: str


@dataclass(frozen=True)
class Spool:
    """The messages of one source in a database."""

    database: Database
    source: str

    @classmethod
    def open(cls, address: str | Path, source: str) -> "Spool":
        """Open the spool of a source in a SQLite file or in PostgreSQL; create what is missing."""
        database = open_spool_database(address)

        def create(session: Session) -> None:
            session.lock()
            if database.dialect == "postgres":
                session.run(f"CREATE SCHEMA IF NOT EXISTS {database.schema}")
            for table in _TABLES:
                session.run(table)
            session.run(
                "INSERT INTO tidings_spool_sources VALUES (?, 1, 1, '') ON CONFLICT DO NOTHING",
                source,
            )

        try:
            database.write(create)
        except BaseException:
            database.close()
            raise
        return cls(database, source)

    def append(self, entries: Iterable[SpoolEntry], now_s: int, state: str | None = None) -> int:
        """Keep new messages, and the `state` of the source; return how many were new."""
        listed = list(entries)

        def write(session: Session) -> int:
            session.lock()
            number = begin = self._bounds(session).next
            for entry in listed:
                is_new = not entry.may_repeat or self._mark(session, entry.name) != entry.mark
                if is_new:
                    sql = "INSERT INTO tidings_spool VALUES (?, ?, ?)"
                    session.run(sql, self.source, number, entry.message)
                    number += 1
                session.run(_MARK, self.source, entry.name, entry.mark, now_s)
            sql = "UPDATE tidings_spool_sources SET next = ?, state = coalesce(?, state)"
            session.run(f"{sql} WHERE source = ?", number, state, self.source)
            return number - begin

        return self.database.write(write)

    def bounds(self) -> SpoolBounds:
        """Return the numbers of the messages that are kept."""
        return self.database.read(self._bounds)

    def state(self) -> str:
        """Return the state that was kept with the last messages."""
        sql = "SELECT state FROM tidings_spool_sources WHERE source = ?"
        return self.database.read(lambda session: str(session.rows(sql, self.source)[0][0]))

    def page(self, start: int, end: int, size: int) -> list[NumberedMessage]:
        """Return up to `size` messages from one number to before another."""
        sql = """SELECT number, coalesce(CAST(message AS TEXT), '') FROM tidings_spool
            WHERE source = ? AND number >= ? AND number < ? ORDER BY number LIMIT ?"""
        cells = (self.source, start, end, size)
        return self.database.read(
            lambda session: [read_row(NumberedMessage, row) for row in session.rows(sql, *cells)]
        )

    def delete_before(self, number: int) -> None:
        """Delete messages that were processed."""

        def delete(session: Session) -> None:
            session.run(
                "DELETE FROM tidings_spool WHERE source = ? AND number < ?", self.source, number
            )
            session.run(
                "UPDATE tidings_spool_sources SET first = ? WHERE source = ? AND first < ?",
                *(number, self.source, number),
            )

        self.database.write(delete)

    def forget_marks(self, before_s: int) -> None:
        """Delete marks that were last seen before a time."""
        sql = "DELETE FROM tidings_spool_marks WHERE source = ? AND at_s < ?"
        self.database.write(lambda session: session.run(sql, self.source, before_s))

    def close(self) -> None:
        """Close all connections."""
        self.database.close()

    def _bounds(self, session: Session) -> SpoolBounds:
        sql = "SELECT first, next FROM tidings_spool_sources WHERE source = ?"
        return read_row(SpoolBounds, session.rows(sql, self.source)[0])

    def _mark(self, session: Session, name: str) -> str | None:
        sql = "SELECT mark FROM tidings_spool_marks WHERE source = ? AND name = ?"
        rows = session.rows(sql, self.source, name)
        return str(rows[0][0]) if rows else None
