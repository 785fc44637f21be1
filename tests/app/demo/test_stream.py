"""The demo through Spark delivers what the engine delivers."""

import json
from pathlib import Path
from threading import Event as Wish
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import dataset
from pyspark.sql import SparkSession

from tidings import Delivery, Engine, Event
from tidings.app.demo.state import Batch, Board
from tidings.app.demo.stream import play
from tidings.app.demo.subscribers import cast
from tidings.app.demo.workspace import prepare
from tidings.formats.arrow import read_events
from tidings.model.values import time_us

pytestmark = pytest.mark.spark
# More than six hours of films, so that the long periods end too.
FILMS = 2200


def expected(films: pa.Table) -> list[Delivery]:
    engine = Engine()
    for role in cast():
        engine.subscribe(role.subscriber)
        for each in role.subscriptions:
            engine.add(each)
    events = [each for each in read_events(films) if isinstance(each, Event)]
    return in_order(engine.publish_many(events))


def in_order(deliveries: list[Delivery]) -> list[Delivery]:
    return sorted(deliveries, key=lambda each: (each.subscriber, each.sequence))


def written(folder: Path) -> list[Delivery]:
    rows = dataset.dataset(folder / "deliveries", partitioning=None).to_table().to_pylist()
    return in_order([delivery(row) for row in rows])


def delivery(row: dict[str, Any]) -> Delivery:
    at_us = time_us(row.pop("delivered_at"))
    window, matched = json.loads(row.pop("window")), tuple(row.pop("matched"))
    return Delivery(**row, window=window, matched=matched, delivered_us=at_us)


def test_the_stream_delivers_what_the_engine_delivers(
    spark: SparkSession, films: pa.Table, tmp_path: Path
) -> None:
    few, roles, folder = films.slice(0, FILMS), cast(), tmp_path / "demo"
    prepare(folder, few, roles, files=4)
    board = Board(roles, few, [FILMS // 2, FILMS // 2])
    assert play(spark, roles, folder, board.take)
    wanted = expected(few)
    assert written(folder) == wanted
    assert board.counts()["published"] == FILMS
    assert (board.delivered, board.late, board.dead) == (len(wanted), 0, 0)
    assert {each.subscriber for each in wanted} >= {"addison", "carson", "dana", "bob", "erin"}


def test_a_wish_stops_the_stream_after_its_batch(
    spark: SparkSession, films: pa.Table, tmp_path: Path
) -> None:
    few, roles, folder, asked = films.slice(0, 40), cast(), tmp_path / "demo", Wish()
    prepare(folder, few, roles, files=4)
    heard: list[Batch] = []

    def told(batch: Batch) -> None:
        heard.append(batch)
        asked.set()

    assert not play(spark, roles, folder, told, asked)
    assert [batch.number for batch in heard] == [0]
    assert written(folder)
