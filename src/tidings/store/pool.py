"""A connection pool: a thread borrows a connection for one transaction and returns it."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any, Generic, Protocol, TypeVar

from tidings.errors import StoreError


class Connection(Protocol):
    """The part of a connection that a pool needs; both drivers have it."""

    def execute(self, query: Any, /) -> Any:
        """Run a statement."""

    def close(self) -> None:
        """Close the connection."""


C = TypeVar("C", bound=Connection)


class ConnectionPool(Generic[C]):
    """A pool that grows to the largest number of connections used at once.

    After a fork, the child opens its own connections and never closes those of its parent. A
    connection that raised an error is closed.
    """

    def __init__(self, name: str, connect: Callable[[], C]) -> None:
        self._name = name
        self._connect = connect
        self._idle: list[C] = []
        self._parents: list[C] = []
        self._lock = Lock()
        self._owner: int | None = os.getpid()

    @contextmanager
    def transaction(self, begin: str) -> Iterator[C]:
        """Lend a connection for one transaction, which an error rolls back."""
        connection = self._take() or self._connect()
        try:
            connection.execute(begin)
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            _roll_back_and_close(connection)
            raise
        self._give_back(connection)

    def _take(self) -> C | None:
        with self._lock:
            if self._owner is None:
                raise StoreError(f"the store {self._name} is closed; open it again")
            self._disown_parents()
            return self._idle.pop() if self._idle else None

    def _disown_parents(self) -> None:
        """Set aside the connections of a parent process.

        They are kept referenced: garbage collection would close them for the parent, too.
        """
        if self._owner not in (None, os.getpid()):
            self._owner = os.getpid()
            self._parents += self._idle
            self._idle = []

    def _give_back(self, connection: C) -> None:
        with self._lock:
            if self._owner is not None:
                self._idle.append(connection)
                return
        connection.close()

    def drop(self) -> None:
        """Close the idle connections; if the others are broken, their errors will close them."""
        with self._lock:
            self._disown_parents()
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def close(self) -> None:
        """Close all connections; those that are lent are closed when they are returned."""
        with self._lock:
            self._disown_parents()
            self._owner = None
        self.drop()


def _roll_back_and_close(connection: Connection) -> None:
    """Roll back and close; an error here would hide the one that led here."""
    for end in (lambda: connection.execute("ROLLBACK"), connection.close):
        with suppress(Exception):
            end()
