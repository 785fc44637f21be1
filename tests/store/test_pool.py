"""Connections that threads share."""

import os
import weakref
from collections.abc import Callable

import pytest

from tidings.errors import StoreError
from tidings.store.pool import ConnectionPool


class Recorded:
    """A connection that remembers what was done with it."""

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
def made() -> list[Recorded]:
    return []


@pytest.fixture
def connections(made: list[Recorded]) -> ConnectionPool[Recorded]:
    def connect() -> Recorded:
        made.append(Recorded())
        return made[-1]

    return ConnectionPool("here", connect)


def test_one_after_the_other_uses_the_same(
    connections: ConnectionPool[Recorded], made: list[Recorded]
) -> None:
    for _ in range(3):
        with connections.transaction("BEGIN"):
            pass
    assert [each.done for each in made] == [["BEGIN", "COMMIT"] * 3]


def test_two_at_once_use_two(connections: ConnectionPool[Recorded], made: list[Recorded]) -> None:
    with connections.transaction("BEGIN") as one, connections.transaction("BEGIN") as other:
        assert one is not other
    assert len(made) == 2


def broken_at(statement: str) -> tuple[ConnectionPool[Recorded], list[Recorded]]:
    found: list[Recorded] = []

    def connect() -> Recorded:
        found.append(Recorded(statement))
        return found[-1]

    return ConnectionPool("here", connect), found


@pytest.mark.parametrize("statement", ["BEGIN", "COMMIT"])
def test_a_statement_that_fails_rolls_back_and_closes(statement: str) -> None:
    connections, found = broken_at(statement)
    for _ in range(2):
        with pytest.raises(OSError, match=statement), connections.transaction("BEGIN"):
            pass
    assert [each.done[-3:] for each in found] == [[statement, "ROLLBACK", "close"]] * 2


@pytest.mark.parametrize("statement", ["", "ROLLBACK"])
def test_work_that_fails_rolls_back_and_its_error_is_the_one_shown(statement: str) -> None:
    connections, found = broken_at(statement)
    for _ in range(2):
        with pytest.raises(KeyError), connections.transaction("BEGIN"):
            raise KeyError
    assert [each.done for each in found] == [["BEGIN", "ROLLBACK", "close"]] * 2


def test_a_lent_connection_is_closed_when_it_comes_back(
    connections: ConnectionPool[Recorded], made: list[Recorded]
) -> None:
    with connections.transaction("BEGIN"):
        connections.close()
        assert made[0].done == ["BEGIN"]
    assert made[0].done == ["BEGIN", "COMMIT", "close"]
    with pytest.raises(StoreError, match="the store here is closed"):
        connections.transaction("BEGIN").__enter__()


def test_idle_ones_are_dropped(connections: ConnectionPool[Recorded], made: list[Recorded]) -> None:
    with connections.transaction("BEGIN"):
        pass
    connections.drop()
    assert made[0].done[-1] == "close"
    with connections.transaction("BEGIN"):
        pass
    assert len(made) == 2


def test_another_process_leaves_them_alone(
    connections: ConnectionPool[Recorded], made: list[Recorded], monkeypatch: pytest.MonkeyPatch
) -> None:
    with connections.transaction("BEGIN"):
        pass
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with connections.transaction("BEGIN"):
        pass
    assert [each.done for each in made] == [["BEGIN", "COMMIT"]] * 2


@pytest.mark.parametrize("end", [ConnectionPool.drop, ConnectionPool.close])
def test_another_process_does_not_close_them(
    connections: ConnectionPool[Recorded],
    made: list[Recorded],
    monkeypatch: pytest.MonkeyPatch,
    end: Callable[[ConnectionPool[Recorded]], None],
) -> None:
    with connections.transaction("BEGIN"):
        pass
    kept = weakref.ref(made[0])
    monkeypatch.setattr(os, "getpid", lambda: -1)
    end(connections)
    assert made.pop().done == ["BEGIN", "COMMIT"]
    assert kept() is not None, "a driver closes what is let go of"
