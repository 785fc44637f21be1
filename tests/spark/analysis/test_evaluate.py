"""The quality of DataFrames equals the quality that the engine measures for the same stream."""

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import tidings.spark as ts
from tidings import Delivery, Engine, Event, Match
from tidings.diversify.distance import Overlap
from tidings.engine.quality import Quality
from tidings.errors import TidingsError
from tidings.formats.arrow import (
    deliveries_to_table,
    events_to_table,
    matches_to_table,
    read_events,
)
from tidings.rank.matcher import Matcher
from tidings.spark.analysis.evaluate import DISTANCES, sum_distances
from tidings.testing import workload

WORK = workload(seed=5, events=60)
FIGURES = (
    *("matches", "delivered", "share", "mean_score", "mean_rank", "mean_age_s"),
    *("diversity", "coverage"),
)


def streamed() -> tuple[Engine, list[Delivery], list[Match]]:
    engine = Engine()
    for subscriber in WORK.subscribers:
        engine.subscribe(subscriber)
    for subscription in WORK.subscriptions:
        engine.add(subscription)
    deliveries = engine.publish_many(WORK.events) + engine.advance(10_000)
    matcher = Matcher(WORK.subscribers, WORK.subscriptions)
    return engine, deliveries, [m for event in WORK.events for m in matcher.matches(event)]


def frames(spark: SparkSession) -> tuple[Engine, DataFrame, DataFrame, DataFrame]:
    engine, deliveries, matches = streamed()
    tables = (deliveries_to_table(deliveries), matches_to_table(matches))
    delivered, matched = (spark.createDataFrame(table) for table in tables)
    return (engine, delivered, matched, spark.createDataFrame(events_to_table(WORK.events)))


@pytest.mark.spark
def test_all_figures_are_those_of_the_engine(spark: SparkSession) -> None:
    engine, deliveries, matches, events = frames(spark)
    row = ts.evaluate(deliveries, matches, events, by=None).collect()[0].asDict()
    expected = engine.quality().to_dict()
    assert row == {name: pytest.approx(expected[name]) for name in FIGURES}
    assert row["delivered"] > 0
    assert 0 < row["diversity"] < 1


@pytest.mark.spark
def test_decimals_count_as_the_numbers_that_they_are(spark: SparkSession) -> None:
    sent = [Delivery("ann", name, 0.5, 1, {}, ("s",), n, n) for n, name in enumerate("abc", 1)]
    events = [Event(name, {"price": n / 2}, 0) for n, name in enumerate("abc")]
    matches = [Match("ann", event, 0.25, ("s",)) for event in events]
    tables = deliveries_to_table(sent), matches_to_table(matches), events_to_table(events)
    frames = [spark.createDataFrame(table) for table in tables]
    decimals = [
        frame.withColumn(name, f.col(name).cast("decimal(10, 4)"))
        for frame, name in zip(frames, ("rank", "score", "price"), strict=True)
    ]
    [row], [expected] = (
        ts.evaluate(deliveries, matched, published).collect()
        for deliveries, matched, published in (decimals, frames)
    )
    assert row == expected
    assert {type(row[name]) for name in ("mean_score", "mean_rank", "diversity")} == {float}


@pytest.mark.spark
def test_figures_by_subscriber_are_those_of_its_own_stream(spark: SparkSession) -> None:
    _, deliveries, matches, events = frames(spark)
    _, sent, matched = streamed()
    rows = ts.evaluate(deliveries, matches, events).collect()
    assert {row.subscriber for row in rows} == {match.subscriber for match in matched}
    by_id = {event.id: event for event in WORK.events}
    for row in rows:
        alone = Quality()
        alone.matched(match for match in matched if match.subscriber == row.subscriber)
        received = [delivery for delivery in sent if delivery.subscriber == row.subscriber]
        alone.delivered(received, by_id.get)
        expected = alone.report().to_dict()
        for name in FIGURES:
            assert row[name] == pytest.approx(expected[name]), (row.subscriber, name)


@pytest.mark.spark
def test_an_event_published_twice_counts_as_one_delivery(spark: SparkSession) -> None:
    _, deliveries, matches, _ = frames(spark)
    once = ts.evaluate(deliveries, matches, by=None).collect()[0]
    twice = ts.evaluate(deliveries, matches.union(matches), by=None).collect()[0]
    assert (twice.matches, twice.delivered) == (2 * once.matches, once.delivered)
    assert (twice.mean_age_s, twice.mean_rank) == pytest.approx((once.mean_age_s, once.mean_rank))


@pytest.mark.spark
def test_figures_without_deliveries_or_publications_are_null(spark: SparkSession) -> None:
    _, deliveries, matches, _ = frames(spark)
    row = ts.evaluate(deliveries.limit(0), matches, by=None).collect()[0]
    assert (row.delivered, row.share, row.coverage) == (0, 0.0, 0.0)
    assert (row.mean_rank, row.mean_age_s, row.diversity) == (None, None, None)
    with pytest.raises(TidingsError, match="span"):
        ts.evaluate(deliveries, matches, span=1)


def test_distances_are_summed_across_batches() -> None:
    events = [Event(f"e{i}", {"genre": genre}, i) for i, genre in enumerate("xyxx")]
    table = events_to_table(events)
    table = table.append_column("_subscriber", pa.array(["a", "a", "a", "b"]))
    table = table.append_column("_sequence", pa.array([1, 2, 3, 1]))
    batches = [table.slice(0, 2).to_batches()[0], table.slice(2).to_batches()[0]]
    sums = pa.Table.from_batches(sum_distances(batches, read_events, span=10), DISTANCES)
    assert sums.to_pylist() == [
        {"subscriber": "a", "distances": 2 * Overlap().between(*events[:2]), "pairs": 3},
        {"subscriber": "b", "distances": 0.0, "pairs": 0},
    ]
