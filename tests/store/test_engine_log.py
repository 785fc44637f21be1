"""The log of a durable engine: each step once, and a checkpoint from which a restart repeats."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.store.appender import delivery

from tidings import Event, Subscription
from tidings.errors import StoreError
from tidings.store import Store, open_store
from tidings.store.append_batch import BatchAppend
from tidings.store.engine_log import (
    QUERY,
    Checkpoint,
    EngineLog,
    EngineStep,
    IndexVersion,
)
from tidings.store.publications import NewPublication


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "tidings.db")) as opened:
        yield opened


@pytest.fixture
def log(store: Store) -> EngineLog:
    return EngineLog(store.database)


def output(number: int, *events: str) -> BatchAppend:
    deliveries = [delivery("ada", event) for event in events]
    return BatchAppend.of(QUERY, number, deliveries, late=[], dead=[])


def append(log: EngineLog, *steps: EngineStep) -> list[bool]:
    return [log.append(step, output(step.number)) for step in steps]


def publish(store: Store, *names: str) -> None:
    store.publications.accept([NewPublication(Event(name, {}, 1)) for name in names], 1)


def test_before_the_first_step_there_is_one_of_number_0(log: EngineLog) -> None:
    assert log.last() == EngineStep(0, None, 0, 0)
    assert log.after(0) == []
    assert log.checkpoint() is None
    assert log.index_versions() == []


def test_steps_are_returned_in_order_after_a_number(log: EngineLog) -> None:
    steps = [EngineStep(1, None, 2, 3), EngineStep(2, 50, 2, 3), EngineStep(3, 60, 4, 9)]
    assert append(log, *steps) == [True] * 3
    assert log.last() == steps[-1]
    assert log.after(0) == steps
    assert log.after(1) == steps[1:]
    assert log.after(3) == []


def test_a_step_is_written_once_with_the_deliveries_of_the_first(
    log: EngineLog, store: Store
) -> None:
    assert log.append(EngineStep(1, None, 0, 1), output(1, "a", "b"))
    assert not log.append(EngineStep(1, 7, 7, 7), output(1, "c"))
    assert log.last() == EngineStep(1, None, 0, 1)
    assert [each.event for each in store.notifications.after("ada")] == ["a", "b"]


def test_a_step_whose_deliveries_fail_is_not_written(log: EngineLog, store: Store) -> None:
    class Failing:
        def write(self, session: Any) -> None:
            session.run("INSERT INTO outbox VALUES (2, 5)")  # only one row is allowed

    with pytest.raises(StoreError):
        log.append(EngineStep(1), Failing())  # type: ignore[arg-type]
    assert log.last() == EngineStep()
    assert log.append(EngineStep(1), output(1))


def test_many_steps_come_in_pages(log: EngineLog, store: Store) -> None:
    rows = ", ".join(f"({number}, NULL, 0, 0)" for number in range(1, 1_206))
    sql = f"INSERT INTO steps (number, clock_us, version, upto) VALUES {rows}"
    store.database.write(lambda session: session.run(sql))
    first = log.after(0)
    assert [step.number for step in first] == [*range(1, 1_001)]
    assert [step.number for step in log.after(first[-1].number)] == [*range(1_001, 1_206)]


def test_pending_work_is_of_one_moment(log: EngineLog, store: Store) -> None:
    publish(store, "a", "b", "c")
    version = store.catalogue.put(Subscription("s", "ada", where="a = 1"))
    pending = log.pending(EngineStep(), 10)
    assert pending.version == version == store.catalogue.version()
    assert [each.number for each in pending.publications] == [1, 2, 3]
    assert [each.number for each in log.pending(EngineStep(upto=1), 1).publications] == [2]
    assert log.pending(EngineStep(upto=3), 10).publications == []


def test_a_checkpoint_deletes_the_steps_before_it(log: EngineLog, store: Store) -> None:
    steps = [EngineStep(number, None, number, number) for number in range(1, 5)]
    append(log, *steps)
    log.save(Checkpoint(steps[1], '{"state": 2}'))
    assert log.checkpoint() == Checkpoint(steps[1], '{"state": 2}')
    assert log.after(0) == steps[1:]
    log.save(Checkpoint(steps[3], "{}"))
    assert log.checkpoint() == Checkpoint(steps[3], "{}")
    assert log.after(0) == [log.last()] == steps[3:]


def test_an_earlier_checkpoint_changes_nothing(log: EngineLog, store: Store) -> None:
    steps = [EngineStep(number, None, number, number) for number in range(1, 4)]
    append(log, *steps)
    log.save(Checkpoint(steps[1], "new"))
    for late in (steps[0], steps[1]):
        log.save(Checkpoint(late, "old"))
        assert log.checkpoint() == Checkpoint(steps[1], "new")
        assert log.after(0) == steps[1:]
    assert _pin(store) == [(QUERY, 2, 2)]


def _pin(store: Store) -> list[Any]:
    return store.database.read(lambda s: s.rows("SELECT query, batch, version FROM pins"))


def test_a_checkpoint_pins_the_version_that_it_needs(log: EngineLog, store: Store) -> None:
    assert _pin(store) == []
    append(log, EngineStep(1, None, 5, 1), EngineStep(2, None, 8, 1))
    log.save(Checkpoint(EngineStep(1, None, 5, 1), ""))
    assert _pin(store) == [(QUERY, 1, 5)]
    log.save(Checkpoint(EngineStep(2, None, 8, 1), ""))
    assert _pin(store) == [(QUERY, 2, 8)]


def test_a_tick_is_later_than_all_before(log: EngineLog) -> None:
    assert [log.tick(us) for us in (10, 10, 9, 11)] == [True, False, False, True]
    assert [log.tick_us(number) for number in (0, 1, 2, 3)] == [None, 10, 11, None]


def test_there_is_no_tick_while_publications_are_waiting(log: EngineLog, store: Store) -> None:
    publish(store, "a", "b")
    assert not log.tick(10)
    append(log, EngineStep(1, None, 0, 1))
    assert not log.tick(10)
    append(log, EngineStep(2, None, 0, 2))
    assert log.tick(10)
    assert log.tick_us(1) == 10


def test_the_last_thousand_ticks_are_kept(log: EngineLog, store: Store) -> None:
    rows = ", ".join(f"({number}, {number})" for number in range(1, 1_001))
    store.database.write(lambda s: s.run(f"INSERT INTO ticks (number, clock_us) VALUES {rows}"))
    assert log.tick(5_000)
    assert [log.tick_us(number) for number in (1, 2, 1_001)] == [None, 2, 5_000]


def test_the_last_ten_versions_of_index_files_are_listed(log: EngineLog) -> None:
    versions = [IndexVersion(n, n + 100, 4, n % 3, n * 1_000) for n in range(1, 15)]
    for version in versions:
        log.note_index(version)
    assert log.index_versions() == versions[:3:-1]
    assert len(log.index_versions()) == 10


def test_an_index_that_starts_again_replaces_later_versions(log: EngineLog) -> None:
    for number in (1, 2, 3):
        log.note_index(IndexVersion(number, 7, 4, 0, 0))
    log.note_index(IndexVersion(2, 9, 1, 5, 50))
    assert log.index_versions() == [IndexVersion(2, 9, 1, 5, 50), IndexVersion(1, 7, 4, 0, 0)]
    log.note_index(IndexVersion(1, 10, 1, 0, 60))
    assert log.index_versions() == [IndexVersion(1, 10, 1, 0, 60)]


def test_two_logs_of_a_store_see_the_same_steps(store: Store, tmp_path: Path) -> None:
    with open_store(str(tmp_path / "tidings.db")) as other:
        first, second = EngineLog(store.database), EngineLog(other.database)
        assert first.append(EngineStep(1, 5, 0, 0), output(1, "a"))
        assert not second.append(EngineStep(1, 9, 0, 0), output(1, "b"))
        assert second.last() == EngineStep(1, 5, 0, 0)
