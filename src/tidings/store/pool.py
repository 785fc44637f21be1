"""Connections that threads share: each works alone on one, and gives it back."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any, Generic, Protocol, TypeVar

from tidings.errors import StoreError


class Connection(Protocol):
    """What is needed of a connection here; both drivers have it."""

    def execute(self, query: Any, /) -> Any:
        """Run a statement."""

    def close(self) -> None:
        """Close it."""


C = TypeVar("C", bound=Connection)


class ConnectionPool(Generic[C]):
    """As many open connections as were ever used at once.

    After a fork, the child opens its own, and never closes those of its parent. One that an error
    came through is closed.
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
            _quietly(connection)
            raise
        self._give_back(connection)

    def _take(self) -> C | None:
        with self._lock:
            if self._owner is None:
                raise StoreError(f"the store {self._name} is closed; open it again")
            self._own()
            return self._idle.pop() if self._idle else None

    def _own(self) -> None:
        """Put aside what a parent has opened; to be let go of would close it for the parent too."""
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
        """Close those that nobody works on: the others will be closed by their errors."""
        with self._lock:
            self._own()
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def close(self) -> None:
        """Close all; those that are lent, when they come back."""
        with self._lock:
            self._own()
            self._owner = None
        self.drop()


def _quietly(connection: Connection) -> None:
    """Undo and close; an error here would hide the one that led here."""
    for end in (lambda: connection.execute("ROLLBACK"), connection.close):
        with suppress(Exception):
            end()
