"""Processes that write at the same time, and processes that are killed while they write."""

import os
import random
import time

import pytest
from tests.store.appender import Child, append, put, writing
from tests.store.people import USERS, delivered, undisturbed

from tidings.store import Store, open_store

BATCHES, SIZE = 12, 600


def check_whole(store: Store) -> int:
    """Check that every batch is stored with all its rows, or not at all; return how many are."""
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


def kill_within_a_batch(child: Child, chance: random.Random) -> None:
    """Let a child finish some batches, and kill it somewhere within one."""
    for _ in range(chance.randint(1, 3)):
        child.reports.recv()
    time.sleep(chance.random() * 0.03)
    child.process.kill()
    child.process.join(60)


def test_a_killed_writer_leaves_only_whole_batches(address: str) -> None:
    chance, counts = random.Random(8), []
    for _ in range(4):
        with writing(append, address, "q", BATCHES, SIZE) as child:
            kill_within_a_batch(child, chance)
        with open_store(address) as store:
            counts.append(check_whole(store))
    with writing(append, address, "q", BATCHES, SIZE) as child:
        child.finish()
    assert counts == sorted(counts)
    assert counts[0] >= 1
    with open_store(address) as store:
        assert check_whole(store) == BATCHES
        assert {name: delivered(store, name) for name in USERS} == undisturbed(BATCHES, SIZE)


def test_the_same_batches_from_two_processes_are_written_once(address: str) -> None:
    arguments = (address, "q", BATCHES, 60)
    with writing(append, *arguments) as first, writing(append, *arguments) as second:
        first.finish()
        second.finish()
    with open_store(address) as store:
        assert check_whole(store) == BATCHES


def test_two_processes_append_for_the_same_subscribers(address: str) -> None:
    with (
        writing(append, address, "q", 8, 60) as first,
        writing(append, address, "r", 8, 60) as second,
    ):
        first.finish()
        second.finish()
    with open_store(address) as store:
        for name, expected in undisturbed(8, 60).items():
            stored = delivered(store, name)
            assert [sequence for sequence, _ in stored] == [sequence for sequence, _ in expected]
            assert {event for _, event in stored} == {event for _, event in expected}


def test_two_processes_change_the_catalogue(address: str) -> None:
    with writing(put, address, "a", 40) as first, writing(put, address, "b", 40) as second:
        first.finish()
        second.finish()
    with open_store(address) as store:
        changes = store.history.changes(0)
        assert [entry.version for entry in changes] == list(range(1, 81))
        for name in ("a", "b"):
            ids = [entry.id for entry in changes if entry.id.startswith(name)]
            assert ids == [f"{name}-{number}" for number in range(40)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_opens_its_own_connections(address: str) -> None:
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
def test_a_forked_child_that_closes_its_store_keeps_the_parents_connections_open(
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
