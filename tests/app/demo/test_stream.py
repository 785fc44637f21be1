"""The demo through Spark delivers what the engine delivers."""

import json
from pathlib import Path
from threading import Event as Flag
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import dataset
from pyspark.sql import SparkSession

from tidings import Delivery, Engine, Event
from tidings.app.demo.state import DemoState, OutcomeBatch
from tidings.app.demo.stream import run_stream
from tidings.app.demo.subscribers import demo_subscribers
from tidings.app.demo.workspace import prepare
from tidings.formats.arrow import read_events
from tidings.model.values import time_us

pytestmark = pytest.mark.spark
# More than six hours of films, so that the long periods end too.
FILMS = 2200


def expected(films: pa.Table) -> list[Delivery]:
    engine = Engine()
    for owner in demo_subscribers():
        engine.subscribe(owner.subscriber)
        for subscription in owner.subscriptions:
            engine.add(subscription)
    events = [event for event in read_events(films) if isinstance(event, Event)]
    return in_order(engine.publish_many(events))


def in_order(deliveries: list[Delivery]) -> list[Delivery]:
    return sorted(deliveries, key=lambda delivery: (delivery.subscriber, delivery.sequence))


def written(folder: Path) -> list[Delivery]:
    rows = dataset.dataset(folder / "deliveries", partitioning=None).to_table().to_pylist()
    return in_order([read_delivery(row) for row in rows])


def read_delivery(row: dict[str, Any]) -> Delivery:
    delivered_us = time_us(row.pop("delivered_at"))
    window, matched = json.loads(row.pop("window")), tuple(row.pop("matched"))
    content = row.pop("content")
    return Delivery(
        **row, window=window, matched=matched, delivered_us=delivered_us, content_json=content
    )


def test_the_stream_delivers_what_the_engine_delivers(
    spark: SparkSession, films: pa.Table, tmp_path: Path
) -> None:
    few, subscribers, folder = films.slice(0, FILMS), demo_subscribers(), tmp_path / "demo"
    prepare(folder, few, subscribers, files=4)
    state = DemoState(subscribers, few, [FILMS // 2, FILMS // 2])
    assert run_stream(spark, subscribers, folder, state.add)
    deliveries = expected(few)
    assert written(folder) == deliveries
    assert state.counts()["published"] == FILMS
    assert (state.delivered, state.late, state.dead) == (len(deliveries), 0, 0)
    assert {delivery.subscriber for delivery in deliveries} >= {
        *("addison", "carson", "dana", "bob", "erin")
    }


def test_a_stop_request_ends_the_stream_after_its_batch(
    spark: SparkSession, films: pa.Table, tmp_path: Path
) -> None:
    few, subscribers, folder = films.slice(0, 40), demo_subscribers(), tmp_path / "demo"
    prepare(folder, few, subscribers, files=4)
    batches: list[OutcomeBatch] = []
    stop_requested = Flag()

    def on_batch(batch: OutcomeBatch) -> None:
        batches.append(batch)
        stop_requested.set()

    assert not run_stream(spark, subscribers, folder, on_batch, stop_requested)
    assert [batch.number for batch in batches] == [0]
    assert written(folder)
