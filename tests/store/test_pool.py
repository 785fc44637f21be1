"""The connection pool: reuse, errors, forks."""

import os
import weakref
from collections.abc import Callable

import pytest

from tidings.errors import StoreError
from tidings.store.pool import ConnectionPool


class Recorded:
    """A connection that records its calls."""

    def __init__(self, broken: str = "") -> None:
        self.done: list[str] = []
        self.broken = broken

    def execute(self, query: str) -> None:
        self.done.append(query)
        if query == self.broken:
            raise OSError(query)

    def close(self) -> None:
        self.done.append("close")


@pytest.fixture
def opened() -> list[Recorded]:
    return []


@pytest.fixture
def pool(opened: list[Recorded]) -> ConnectionPool[Recorded]:
    def connect() -> Recorded:
        opened.append(Recorded())
        return opened[-1]

    return ConnectionPool("here", connect)


def test_consecutive_transactions_share_a_connection(
    pool: ConnectionPool[Recorded], opened: list[Recorded]
) -> None:
    for _ in range(3):
        with pool.transaction("BEGIN"):
            pass
    assert [connection.done for connection in opened] == [["BEGIN", "COMMIT"] * 3]


def test_concurrent_transactions_use_two_connections(
    pool: ConnectionPool[Recorded], opened: list[Recorded]
) -> None:
    with pool.transaction("BEGIN") as one, pool.transaction("BEGIN") as other:
        assert one is not other
    assert len(opened) == 2


def broken_at(statement: str) -> tuple[ConnectionPool[Recorded], list[Recorded]]:
    opened: list[Recorded] = []

    def connect() -> Recorded:
        opened.append(Recorded(statement))
        return opened[-1]

    return ConnectionPool("here", connect), opened


@pytest.mark.parametrize("statement", ["BEGIN", "COMMIT"])
def test_a_failed_statement_rolls_back_and_closes(statement: str) -> None:
    pool, opened = broken_at(statement)
    for _ in range(2):
        with pytest.raises(OSError, match=statement), pool.transaction("BEGIN"):
            pass
    assert [connection.done[-3:] for connection in opened] == [[statement, "ROLLBACK", "close"]] * 2


@pytest.mark.parametrize("statement", ["", "ROLLBACK"])
def test_failed_work_rolls_back_and_raises_its_own_error(statement: str) -> None:
    pool, opened = broken_at(statement)
    for _ in range(2):
        with pytest.raises(KeyError), pool.transaction("BEGIN"):
            raise KeyError
    assert [connection.done for connection in opened] == [["BEGIN", "ROLLBACK", "close"]] * 2


def test_a_lent_connection_is_closed_when_it_comes_back(
    pool: ConnectionPool[Recorded], opened: list[Recorded]
) -> None:
    with pool.transaction("BEGIN"):
        pool.close()
        assert opened[0].done == ["BEGIN"]
    assert opened[0].done == ["BEGIN", "COMMIT", "close"]
    with pytest.raises(StoreError, match="the store here is closed"):
        pool.transaction("BEGIN").__enter__()


def test_drop_closes_idle_connections(
    pool: ConnectionPool[Recorded], opened: list[Recorded]
) -> None:
    with pool.transaction("BEGIN"):
        pass
    pool.drop()
    assert opened[0].done[-1] == "close"
    with pool.transaction("BEGIN"):
        pass
    assert len(opened) == 2


def test_a_child_process_does_not_use_its_parents_connections(
    pool: ConnectionPool[Recorded], opened: list[Recorded], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pool.transaction("BEGIN"):
        pass
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pool.transaction("BEGIN"):
        pass
    assert [connection.done for connection in opened] == [["BEGIN", "COMMIT"]] * 2


@pytest.mark.parametrize("end", [ConnectionPool.drop, ConnectionPool.close])
def test_a_child_process_does_not_close_its_parents_connections(
    pool: ConnectionPool[Recorded],
    opened: list[Recorded],
    monkeypatch: pytest.MonkeyPatch,
    end: Callable[[ConnectionPool[Recorded]], None],
) -> None:
    with pool.transaction("BEGIN"):
        pass
    kept = weakref.ref(opened[0])
    monkeypatch.setattr(os, "getpid", lambda: -1)
    end(pool)
    assert opened.pop().done == ["BEGIN", "COMMIT"]
    assert kept() is not None, "a driver closes a connection that is garbage-collected"
