"""Processes that write at once, and processes that are killed while they write."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.store.people import USERS, delivered, undisturbed

from tidings.store import Store, open_store

pytestmark = pytest.mark.slow
APPENDER = Path(__file__).with_name("appender.py")
BATCHES, SIZE = 12, 600


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(APPENDER), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def finish(*children: subprocess.Popen[str]) -> None:
    for child in children:
        child.communicate(timeout=120)
        assert child.returncode == 0


def check_whole(store: Store) -> int:
    """Check that every batch is there with all its rows, or not at all; give how many are."""
    batches = store.database.read(
        lambda session: session.rows(
            "SELECT batch, delivered, dead, "
            "(SELECT count(*) FROM deliveries d WHERE d.query = b.query AND d.batch = b.batch), "
            "(SELECT count(*) FROM letters l WHERE l.query = b.query AND l.batch = b.batch) "
            "FROM batches b ORDER BY batch"
        )
    )
    assert [row[0] for row in batches] == list(range(len(batches)))
    assert all((row[1], row[2]) == (row[3], row[4]) == (row[1], 5) for row in batches)
    rows = store.database.read(lambda s: s.rows("SELECT count(*) FROM deliveries"))[0][0]
    assert rows == sum(row[1] for row in batches)
    return len(batches)


def kill_while_it_writes(child: subprocess.Popen[str], chance: random.Random) -> None:
    """Let a child finish some batches, and kill it somewhere within one."""
    assert child.stdout
    for _ in range(chance.randint(1, 3)):
        child.stdout.readline()
    time.sleep(chance.random() * 0.03)
    child.send_signal(signal.SIGKILL)
    child.communicate(timeout=60)


def test_a_killed_writer_leaves_whole_batches_only(address: str) -> None:
    chance, seen = random.Random(8), []
    for _ in range(4):
        kill_while_it_writes(start(address, "append", "q", str(BATCHES), str(SIZE)), chance)
        with open_store(address) as store:
            seen.append(check_whole(store))
    finish(start(address, "append", "q", str(BATCHES), str(SIZE)))
    assert seen == sorted(seen)
    assert seen[0] >= 1
    with open_store(address) as store:
        assert check_whole(store) == BATCHES
        assert {name: delivered(store, name) for name in USERS} == undisturbed(BATCHES, SIZE)


def test_the_same_batches_from_two_processes_are_written_once(address: str) -> None:
    finish(*(start(address, "append", "q", str(BATCHES), "60") for _ in range(2)))
    with open_store(address) as store:
        assert check_whole(store) == BATCHES


def test_two_processes_append_for_the_same_subscribers(address: str) -> None:
    finish(*(start(address, "append", query, "8", "60") for query in ("q", "r")))
    with open_store(address) as store:
        for name, expected in undisturbed(8, 60).items():
            found = delivered(store, name)
            assert [sequence for sequence, _ in found] == [sequence for sequence, _ in expected]
            assert {event for _, event in found} == {event for _, event in expected}


def test_two_processes_change_the_catalogue(address: str) -> None:
    finish(*(start(address, "put", name, "40") for name in ("a", "b")))
    with open_store(address) as store:
        changes = store.history.changes(0)
        assert [entry.version for entry in changes] == list(range(1, 81))
        for name in ("a", "b"):
            own = [entry.id for entry in changes if entry.id.startswith(name)]
            assert own == [f"{name}-{number}" for number in range(40)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_uses_connections_of_its_own(address: str) -> None:
    with open_store(address) as store:
        store.catalogue.put({"id": "parent"})
        child = os.fork()
        if child == 0:
            store.catalogue.put({"id": "child"})
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        store.catalogue.put({"id": "parent2"})
        assert [entry.id for entry in store.history.changes(0)] == ["parent", "child", "parent2"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_that_closes_its_store_leaves_the_parent_its_connections(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    with open_store(address) as store:
        store.catalogue.put({"id": "parent"})
        child = os.fork()
        if child == 0:
            store.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        store.catalogue.put({"id": "parent2"})
        assert [entry.id for entry in store.history.changes(0)] == ["parent", "parent2"]
    assert not caplog.records, "the parent had to connect again"
