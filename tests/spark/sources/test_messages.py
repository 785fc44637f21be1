"""`tidings run` from a broker, with restarts, limits and poison, against the engine."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.kill.stream import Expected, write_stream
from tests.sources.brokers import Brokers
from tests.sources.pipelines import check, check_restarts, kafka, lines, run

from tidings import Engine
from tidings.errors import TidingsError
from tidings.formats.files import write_subscribers, write_subscriptions
from tidings.spark import register_sources
from tidings.testing import workload

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


@pytest.fixture
def brokers() -> Brokers:
    return Brokers()


def test_a_restart_resumes_and_everything_is_delivered_once(
    tmp_path: Path, brokers: Brokers
) -> None:
    check_restarts(tmp_path, brokers, run)


def test_all_partitions_are_read_side_by_side(tmp_path: Path, brokers: Brokers) -> None:
    """Events of one stream are in four partitions; no batch exceeds the limit."""
    films = workload(5, events=200, subscribers=12)
    write_subscribers(films.subscribers, tmp_path / "subscribers.jsonl")
    write_subscriptions(films.subscriptions, tmp_path / "subscriptions.jsonl")
    engine = Engine(lateness="120s")
    for person in films.subscribers:
        engine.subscribe(person)
    engine.add_many(films.subscriptions)
    brokers.send("films", [json.dumps(event.to_dict()) for event in films.events])
    account = run(kafka(tmp_path, brokers.address, maxOffsetsPerTrigger=40))
    assert (account.batches, account.events) == (5, 200)
    told = [json.loads(line) for line in (tmp_path / "batches.jsonl").read_text().splitlines()]
    assert [each["events"] for each in told] == [40] * 5
    assert [each["behind"] for each in told] == [
        {"offsetsBehindLatest": left} for left in (160, 120, 80, 40, 0)
    ]
    deliveries = engine.publish_many(films.events)
    assert len(deliveries) > 100
    check(tmp_path, Expected(films.subscribers, deliveries, late=[], dead=0))


def test_lost_records_stop_the_run_with_a_reason(tmp_path: Path, brokers: Brokers) -> None:
    write_stream(tmp_path, files=4)
    brokers.send("films", lines(tmp_path)[:2], partition=0)
    config = kafka(tmp_path, brokers.address)
    assert run(config).events == 2
    brokers.send("films", lines(tmp_path)[2:], partition=0)
    brokers.overflow("films", partition=0)
    with pytest.raises(TidingsError) as error:
        run(config)
    assert str(error.value).startswith(
        "the stream stopped: tidings-kafka: partition films-0 no longer has offset 2; records may"
    )
    going_on = run(kafka(tmp_path, brokers.address, failOnDataLoss=False))
    assert going_on.events == going_on.dead > 5


def test_a_wrong_option_is_an_error_before_anything_is_created(tmp_path: Path) -> None:
    write_stream(tmp_path, files=4)
    with pytest.raises(TidingsError) as error:
        run(kafka(tmp_path, "127.0.0.1:1", minPartitions=3))
    assert str(error.value).startswith("tidings-kafka: unknown option 'minPartitions'; expected")
    assert not (tmp_path / "out").exists()


def test_a_session_of_the_user_reads_batches(spark: SparkSession, brokers: Brokers) -> None:
    brokers.send("films", map(str, range(30)))
    own = spark.newSession()
    register_sources(own)
    reader = own.read.format("tidings-kafka").option("kafka.bootstrap.servers", brokers.address)
    rows = reader.option("subscribe", "films").load()
    assert rows.columns == [
        "key",
        "value",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestampType",
    ]
    found = rows.selectExpr(
        "cast(cast(value as string) as int) as n", "offset", "partition"
    ).collect()
    assert sorted((row.n, row.partition, row.offset) for row in found) == [
        (n, n % 4, n // 4) for n in range(30)
    ]
