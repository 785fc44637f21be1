"""A store in PostgreSQL, for many machines. Only this module imports psycopg."""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import psycopg
from psycopg.adapt import Buffer
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.sql import SQL, Identifier
from psycopg.types.string import StrDumper, TextLoader

from tidings.errors import StoreError, TidingsError
from tidings.store.address import Address
from tidings.store.pool import ConnectionPool
from tidings.store.protocol import (
    DAMAGE_ERRORS,
    Cell,
    ChangeWatch,
    Row,
    Session,
    StagingTable,
    damage_error,
)

T = TypeVar("T")

_LOG: Final = logging.getLogger(__name__)
_LOCK_KEY: Final = 0x71D1465
_FIRST_PAUSE_S: Final = 0.05  # doubled by each retry
_LONGEST_PAUSE_S: Final = 2.0
_LOG_EVERY_S: Final = 10.0
_DEFAULTS: Final = {
    "application_name": "tidings",
    "connect_timeout": "10",
    "keepalives_idle": "15",
    "tcp_user_timeout": "30000",
}
_READ_ONLY: Final = "-c default_transaction_read_only=on"
# Broken connections, shutdowns and starts, conflicts, too many clients, a slot that is in use.
_TRANSIENT: Final = ("08", "40001", "40P01", "57P01", "57P02", "57P03", "53300", "55006")
_TRANSIENT_WORDS: Final = ("the database system is", "too many clients", "terminating connection")
# From the catalogue itself: functions such as to_regclass may answer as of before a lock.
_TABLE: Final = "SELECT 1 FROM pg_tables WHERE schemaname = ? AND tablename = ?"
_ESCAPE: Final = "\x1a"


class _TextDumper(StrDumper):
    """Dumper of text that escapes the character NUL, which PostgreSQL does not accept."""

    def dump(self, obj: str) -> Buffer | None:
        if "\0" in obj or _ESCAPE in obj:
            obj = obj.replace(_ESCAPE, _ESCAPE + "1").replace("\0", _ESCAPE + "0")
        return super().dump(obj)


class _TextLoader(TextLoader):
    """Loader of text that `_TextDumper` wrote."""

    def load(self, data: Buffer) -> str:
        text = str(super().load(data))
        if _ESCAPE in text:
            text = text.replace(_ESCAPE + "0", "\0").replace(_ESCAPE + "1", _ESCAPE)
        return text


class PostgresSession:
    """A transaction on a connection to PostgreSQL."""

    def __init__(self, connection: psycopg.Connection[Row], schema: str) -> None:
        self._connection = connection
        self._schema = schema

    def rows(self, sql: str, *values: Cell) -> list[Row]:
        return self._execute(sql, values).fetchall()

    def run(self, sql: str, *values: Cell) -> int:
        return self._execute(sql, values).rowcount

    def _execute(self, sql: str, values: tuple[Cell, ...]) -> psycopg.Cursor[Row]:
        return self._connection.execute(sql.replace("?", "%s").encode(), values)

    def stage(self, table: StagingTable, rows: Iterable[tuple[Cell, ...]]) -> None:
        self.run(f"{table.definition} ON COMMIT DELETE ROWS")
        self.run(f"TRUNCATE {table.name}")
        command = f"COPY {table.name} ({', '.join(table.columns)}) FROM STDIN"
        with self._connection.cursor() as cursor, cursor.copy(command.encode()) as copy:
            for row in rows:
                copy.write_row(row)

    def lock(self) -> None:
        self.rows("SELECT pg_advisory_xact_lock(?)", _LOCK_KEY)

    def has_table(self, name: str) -> bool:
        return bool(self.rows(_TABLE, self._schema, name))

    def check_tables(self, names: Collection[str]) -> None:
        """Do nothing: there is no file to forge, and only the owner can change the schema."""

    def notify(self) -> None:
        """Wake the watches of this store after the commit; the channel is named for its schema."""
        self.rows("SELECT pg_notify(?, '')", self._schema)


class PostgresWatch:
    """A watch over a store in PostgreSQL, which notifies of every commit.

    After a lost connection it reports a change, since it may have missed one.
    """

    def __init__(self, connect: Callable[[], psycopg.Connection[Row]], channel: str) -> None:
        self._connect, self._channel = connect, channel
        self._connection: psycopg.Connection[Row] | None = None
        self._listen()

    def wait(self, timeout_s: float) -> bool:
        try:
            if self._connection is None:
                self._listen()
                return True
            return any(self._connection.notifies(timeout=timeout_s, stop_after=1))
        except psycopg.Error:
            self.close()
            time.sleep(min(timeout_s, _FIRST_PAUSE_S))
            return True

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _listen(self) -> None:
        self._connection = self._connect()
        self._connection.execute(SQL("LISTEN {}").format(Identifier(self._channel)))


class PostgresDatabase:
    """A schema of a PostgreSQL database, or all of one that is not a store, to read.

    If the server becomes unreachable, work is retried from its start for up to `patience_s`.
    """

    dialect = "postgres"

    def __init__(
        self, address: Address, patience_s: float = 30.0, *, is_store: bool = True
    ) -> None:
        self.name = address.shown
        self.schema = address.schema
        self._hide = address.hide
        parameters = _conninfo(address)
        search_path = f"-c search_path={self.schema}"
        options = f"{parameters.get('options') or ''} {search_path if is_store else _READ_ONLY}"
        defaults = {name: value for name, value in _DEFAULTS.items() if name not in parameters}
        self._address = make_conninfo(address.url, **defaults, options=options)
        self._is_store = is_store
        self._patience_s = patience_s
        self._connections = ConnectionPool(self.name, self._connect)

    def read(self, work: Callable[[Session], T]) -> T:
        return self._work("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", work)

    def write(self, work: Callable[[Session], T]) -> T:
        return self._work("BEGIN ISOLATION LEVEL READ COMMITTED", work, notify=True)

    def back_up(self, path: Path) -> None:
        raise StoreError(
            f"{self.name} is in PostgreSQL, which has its own tool for backups: "
            f"pg_dump --schema={self.schema}"
        )

    def watch(self, channel: str | None = None) -> ChangeWatch:
        return PostgresWatch(self._connect, channel or self.schema)

    def close(self) -> None:
        self._connections.close()

    def _work(self, begin: str, work: Callable[[Session], T], *, notify: bool = False) -> T:
        pause_s, log_at = _FIRST_PAUSE_S, time.monotonic()
        deadline = log_at + self._patience_s
        while True:
            try:
                with self._connections.transaction(begin) as connection:
                    session = PostgresSession(connection, self.schema)
                    result = self._run(work, session)
                    if notify:
                        session.notify()
                    return result
            except psycopg.Error as error:
                self._connections.drop()
                refusal = self._refusal(error, expired=time.monotonic() + pause_s > deadline)
                if refusal is None and time.monotonic() >= log_at:
                    self._log_wait(error, deadline - time.monotonic())
                    log_at = time.monotonic() + _LOG_EVERY_S
            if refusal is not None:
                # Raised outside the handler, so without context: the driver's may show secrets.
                raise refusal
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _run(self, work: Callable[[Session], T], session: Session) -> T:
        """Run work; cells of unexpected types are reported as damage."""
        try:
            return work(session)
        except (TidingsError, psycopg.Error):
            raise
        except DAMAGE_ERRORS as error:
            raise damage_error(self.name, error) from error

    def _log_wait(self, error: psycopg.Error, left_s: float) -> None:
        """Log the reason for waiting, and the time that is left."""
        message = self._hide(_message(error))
        _LOG.warning("%s: waiting up to %.0f s for PostgreSQL: %s", self.name, left_s, message)

    def _connect(self) -> psycopg.Connection[Row]:
        connection = psycopg.connect(self._address, autocommit=True)
        if self._is_store:
            connection.adapters.register_dumper(str, _TextDumper)
            connection.adapters.register_loader("text", _TextLoader)
        return connection

    def _refusal(self, error: psycopg.Error, *, expired: bool) -> StoreError | None:
        """Return the error to raise, or None if it is transient and there is time for a retry."""
        message = _message(error)
        if not _is_transient(error, message):
            return StoreError(f"{self.name}: PostgreSQL refuses: {self._hide(message)}")
        if expired:
            return StoreError(
                f"{self.name}: PostgreSQL has not answered for {self._patience_s:g} s; check that "
                f"it is running and reachable, and try again: nothing is half-written, and no "
                f"batch is written twice ({self._hide(message)})"
            )
        return None


def _conninfo(address: Address) -> Mapping[str, Any]:
    """Parse an address as the driver does.

    Its errors may contain secrets, so they are not shown.
    """
    try:
        return conninfo_to_dict(address.url)
    except (psycopg.Error, ValueError, UnicodeError):
        refusal = StoreError(
            f"{address.shown}: PostgreSQL does not accept the parameters of this address"
        )
    raise refusal


def _message(error: psycopg.Error) -> str:
    return " ".join(str(error).split())


def _is_transient(error: psycopg.Error, message: str) -> bool:
    """Return whether an error may go away without intervention."""
    if error.sqlstate is not None:
        return error.sqlstate.startswith(_TRANSIENT)
    if not isinstance(error, psycopg.OperationalError):
        return False
    return "FATAL:" not in message or any(words in message for words in _TRANSIENT_WORDS)
