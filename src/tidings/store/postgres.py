"""A store in PostgreSQL: for many machines. The only import of psycopg."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

import psycopg
from psycopg.adapt import Buffer
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.string import StrDumper, TextLoader

from tidings.errors import StoreError, TidingsError
from tidings.store.address import Address
from tidings.store.pool import ConnectionPool
from tidings.store.protocol import DAMAGE_ERRORS, Cell, Row, Session, StagingTable, damage_error

T = TypeVar("T")

_LOG: Final = logging.getLogger(__name__)
_LOCK: Final = 0x71D1465
_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 2.0
_TELL_EVERY_S: Final = 10.0
_DEFAULTS: Final = {
    "application_name": "tidings",
    "connect_timeout": "10",
    "keepalives_idle": "15",
    "tcp_user_timeout": "30000",
}
_SCHEMA: Final = "-c search_path=tidings"
_READ_ONLY: Final = "-c default_transaction_read_only=on"
# Lost or refused for now: broken connections, shutdowns and starts, conflicts, too many clients.
_PASSING: Final = ("08", "40001", "40P01", "57P01", "57P02", "57P03", "53300")
_STARTING: Final = ("the database system is", "too many clients", "terminating connection")
# Asked of the catalogue itself: functions such as to_regclass may answer from before a wait.
_TABLE: Final = "SELECT 1 FROM pg_tables WHERE schemaname = 'tidings' AND tablename = ?"
_ESCAPE: Final = "\x1a"


class _TextDumper(StrDumper):
    """Writes text, also with the character NUL, which PostgreSQL does not take."""

    def dump(self, obj: str) -> Buffer | None:
        if "\0" in obj or _ESCAPE in obj:
            obj = obj.replace(_ESCAPE, _ESCAPE + "1").replace("\0", _ESCAPE + "0")
        return super().dump(obj)


class _Text(TextLoader):
    """Reads what `_TextDumper` wrote."""

    def load(self, data: Buffer) -> str:
        text = str(super().load(data))
        if _ESCAPE in text:
            text = text.replace(_ESCAPE + "0", "\0").replace(_ESCAPE + "1", _ESCAPE)
        return text


class PostgresSession:
    """A transaction on a connection to PostgreSQL."""

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection

    def rows(self, sql: str, *values: Cell) -> list[Row]:
        return self._execute(sql, values).fetchall()

    def run(self, sql: str, *values: Cell) -> int:
        return self._execute(sql, values).rowcount

    def _execute(self, sql: str, values: tuple[Cell, ...]) -> psycopg.Cursor[Row]:
        return self._connection.execute(sql.replace("?", "%s").encode(), values)

    def stage(self, table: StagingTable, rows: Iterable[tuple[Cell, ...]]) -> None:
        self.run(f"{table.definition} ON COMMIT DELETE ROWS")
        self.run(f"TRUNCATE {table.name}")
        copying = f"COPY {table.name} ({', '.join(table.columns)}) FROM STDIN"
        with self._connection.cursor() as cursor, cursor.copy(copying.encode()) as copy:
            for row in rows:
                copy.write_row(row)

    def alone(self) -> None:
        self.rows("SELECT pg_advisory_xact_lock(?)", _LOCK)

    def has_table(self, name: str) -> bool:
        return bool(self.rows(_TABLE, name))


class PostgresDatabase:
    """The schema `tidings` of a PostgreSQL database; if that is not `ours`, all of it, to read.

    When the server goes away, work is tried again from its start for up to `patience_s`.
    """

    dialect = "postgres"

    def __init__(self, address: Address, patience_s: float = 30.0, *, ours: bool = True) -> None:
        self.name = address.shown
        self._hide = address.hide
        given = _conninfo(address)
        options = f"{given.get('options') or ''} {_SCHEMA if ours else _READ_ONLY}"
        self._address = make_conninfo(address.url, **_filled(given), options=options)
        self._ours = ours
        self._patience_s = patience_s
        self._connections = ConnectionPool(self.name, self._connect)

    def read(self, work: Callable[[Session], T]) -> T:
        return self._work("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", work)

    def write(self, work: Callable[[Session], T]) -> T:
        return self._work("BEGIN ISOLATION LEVEL READ COMMITTED", work)

    def close(self) -> None:
        self._connections.close()

    def _work(self, begin: str, work: Callable[[Session], T]) -> T:
        pause_s, tell_at = _FIRST_PAUSE_S, time.monotonic()
        deadline = tell_at + self._patience_s
        while True:
            try:
                with self._connections.transaction(begin) as connection:
                    return self._done(work, PostgresSession(connection))
            except psycopg.Error as error:
                self._connections.drop()
                refusal = self._refusal(error, lasting=time.monotonic() + pause_s > deadline)
                if refusal is None and time.monotonic() >= tell_at:
                    self._tell(error, deadline - time.monotonic())
                    tell_at = time.monotonic() + _TELL_EVERY_S
            if refusal is not None:
                # Raised here, it has no context: the driver's error may show parts of the address.
                raise refusal
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _done(self, work: Callable[[Session], T], session: Session) -> T:
        """Do work; cells of types that no store has are said to be damage."""
        try:
            return work(session)
        except (TidingsError, psycopg.Error):
            raise
        except DAMAGE_ERRORS as error:
            raise damage_error(self.name, error) from error

    def _tell(self, error: psycopg.Error, left_s: float) -> None:
        """Log what is waited for, and for how much longer."""
        words = self._hide(_said(error))
        _LOG.warning("%s: waiting up to %.0f s for PostgreSQL: %s", self.name, left_s, words)

    def _connect(self) -> psycopg.Connection[Row]:
        connection = psycopg.connect(self._address, autocommit=True)
        if self._ours:
            connection.adapters.register_dumper(str, _TextDumper)
            connection.adapters.register_loader("text", _Text)
        return connection

    def _refusal(self, error: psycopg.Error, *, lasting: bool) -> StoreError | None:
        """Return what to raise; None where the error may pass, and has not lasted long enough."""
        said = _said(error)
        words = self._hide(said)
        if not _passing(error, said):
            return StoreError(f"{self.name}: PostgreSQL refuses: {words}")
        if lasting:
            return StoreError(
                f"{self.name}: PostgreSQL has not answered for {self._patience_s:g} s; see that it "
                f"runs and can be reached, and do it again: what was not written is not there, and "
                f"no batch is written twice ({words})"
            )
        return None


def _conninfo(address: Address) -> Mapping[str, Any]:
    """Read an address as the driver does; what it refuses is not shown, as it may be secret."""
    try:
        return conninfo_to_dict(address.url)
    except (psycopg.Error, ValueError, UnicodeError):
        refused = StoreError(
            f"{address.shown}: PostgreSQL does not take the parameters of this address"
        )
    raise refused


def _said(error: psycopg.Error) -> str:
    return " ".join(str(error).split())


def _passing(error: psycopg.Error, said: str) -> bool:
    """Tell whether an error may pass by itself."""
    if error.sqlstate is not None:
        return error.sqlstate.startswith(_PASSING)
    if not isinstance(error, psycopg.OperationalError):
        return False
    return "FATAL:" not in said or any(words in said for words in _STARTING)


def _filled(given: Mapping[str, Any]) -> dict[str, str]:
    """Give the defaults for what an address leaves out."""
    return {name: value for name, value in _DEFAULTS.items() if name not in given}
