"""Outcomes in a store: each batch once, also from a new checkpoint."""

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tidings import Engine
from tidings.formats.arrow import DELIVERIES
from tidings.formats.event_source import find_source
from tidings.formats.files import write_events
from tidings.spark import outcomes, store_sink
from tidings.spark.ops.query_control import SinkGate, follow, start
from tidings.spark.sinks.store import append_outcomes
from tidings.spark.sources.read_stream import read_stream
from tidings.store import Store, open_store
from tidings.testing import Workload, workload

LETTER = pa.schema({"kind": pa.string(), "record": pa.string(), "reason": pa.string()})
OUTCOMES = pa.unify_schemas([DELIVERIES, LETTER])


def delivery(subscriber: str, event: str, sequence: int) -> dict[str, Any]:
    window = json.dumps({"name": "sliding"})
    won = {"rank": 0.5, "position": 1, "window": window, "matched": ["s1"], "delivered_at": 5}
    return {
        "kind": "delivery",
        "subscriber": subscriber,
        "event": event,
        "sequence": sequence,
    } | won


def letter(kind: str, event: str | None, reason: str = "no good") -> dict[str, Any]:
    return {"kind": kind, "event": event, "record": json.dumps({"id": event}), "reason": reason}


def table(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), OUTCOMES)


def test_deliveries_of_a_subscriber_are_in_order_for_any_partition(
    address: str,
) -> None:
    found = table(delivery("a", "e3", 3), delivery("b", "e1", 1), delivery("a", "e1", 1))
    with open_store(address) as store:
        assert append_outcomes(store, "q", 0, found).delivered == 3
        append_outcomes(store, "q", 1, table(delivery("a", "e4", 4)))
        assert [d.event for d in store.notifications.after("a")] == ["e1", "e3", "e4"]
        assert [d.event for d in store.notifications.after("b")] == ["e1"]


def test_an_event_that_several_buckets_refuse_is_one_letter(tmp_path: Path) -> None:
    account = {"kind": "account", "subscriber": "a", "rank": 0.5, "position": 3}
    late = [letter("late", "e1"), letter("late", "e2"), letter("late", "e1")]
    twice = [letter("dead", "e3", "published before"), letter("dead", "e3", "published before")]
    unread = [letter("dead", None, "no JSON"), letter("dead", None, "no JSON")]
    with open_store(tmp_path / "s.db") as store:
        found = append_outcomes(store, "q", 0, table(account, *late, *twice, *unread))
        assert (found.delivered, found.late, found.dead) == (0, 2, 3)
        assert [letter.record for letter in store.letters.page("late")] == [
            {"id": "e1"},
            {"id": "e2"},
        ]
        reasons = [letter.reason for letter in store.letters.page("dead")]
        assert reasons == ["published before", "no JSON", "no JSON"]


def test_a_stored_batch_stays_and_new_rows_are_added_with_a_warning(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    first = table(delivery("a", "e1", 1), letter("late", "e0"))
    with open_store(address) as store:
        append_outcomes(store, "q", 0, first)
        for run in ("one", "one", "two"):
            assert append_outcomes(store, "q", 0, first, run).skipped
        assert not caplog.records
        assert store.letters.count("late") == 1
        other = table(delivery("a", "e1", 1), delivery("a", "e2", 1), letter("dead", "e3"))
        assert append_outcomes(store, "q", 0, other, "three").skipped
        assert [d.event for d in store.notifications.after("a")] == ["e1", "e2"]
        assert [store.letters.count(kind) for kind in ("late", "dead")] == [1, 1]
    (record,) = caplog.records
    assert "batch 0 of q is already stored, with 1 deliveries, 1 late" in record.getMessage()
    assert "there were 2, 0 and 1, and 1 deliveries were added" in record.getMessage()


def test_a_delivery_that_the_store_cannot_hold_does_not_repeat_letters(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found = table(delivery("a", "e" * 1001, 1), letter("late", "e1"), letter("dead", None))
    with open_store(tmp_path / "s.db") as store:
        for run in ("one", "two", "three"):
            append_outcomes(store, "q", 0, found, run)
            assert [store.letters.count(kind) for kind in ("late", "dead")] == [1, 2]
    assert not caplog.records


def test_another_batch_of_the_same_size_under_a_stored_number_is_not_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with open_store(tmp_path / "s.db") as store:
        append_outcomes(store, "q", 0, table(delivery("a", "e1", 1)))
        append_outcomes(store, "q", 0, table(delivery("a", "e2", 1)))
        assert [d.event for d in store.notifications.after("a")] == ["e1", "e2"]
    assert len(caplog.records) == 1


@pytest.mark.spark
def test_a_stream_run_again_from_the_start_stores_each_delivery_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    films, told = workload(4), list[int]()
    write_events(films.events, tmp_path / "films.jsonl")
    found = outcomes(
        read_stream(spark, find_source(tmp_path, "films.jsonl")),
        films.subscriptions,
        films.subscribers,
    )
    address, check = str(tmp_path / "s.db"), tmp_path / "check"
    sink = store_sink(address, "films", lambda number, _: told.append(number))
    for _ in range(2):
        running = start(found.writeStream, SinkGate(sink), str(check))
        assert [progress.batch for progress in follow(running)] == [0]
        with open_store(address) as store:
            expect(store, films)
            queries = store.database.read(lambda s: s.rows("SELECT DISTINCT query FROM batches"))
        shutil.rmtree(check)
    assert told == [0, 0]
    assert len(queries) == 2
    assert all(name.startswith("films/") for (name,) in queries)


def expect(store: Store, films: Workload) -> None:
    """Check that a store holds the deliveries of the engine."""
    engine = Engine()
    for person in films.subscribers:
        engine.subscribe(person)
    engine.add_many(films.subscriptions)
    deliveries = engine.publish_many(films.events)
    for person in films.subscribers:
        own = [delivery for delivery in deliveries if delivery.subscriber == person.id]
        assert store.notifications.after(person.id, limit=1000) == own
    assert len(deliveries) > 20
