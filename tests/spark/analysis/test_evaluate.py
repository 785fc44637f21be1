"""Quality of whole DataFrames: what the engine measures of the same stream."""

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

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
from tidings.spark.analysis.evaluate import APART, apart
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
    found = [spark.createDataFrame(table) for table in (*tables, events_to_table(WORK.events))]
    return (engine, found[0], found[1], found[2])


@pytest.mark.spark
def test_all_figures_are_those_of_the_engine(spark: SparkSession) -> None:
    engine, deliveries, matches, events = frames(spark)
    row = ts.evaluate(deliveries, matches, events, by=None).collect()[0].asDict()
    expected = engine.quality().to_dict()
    assert row == {name: pytest.approx(expected[name]) for name in FIGURES}
    assert row["delivered"] > 0
    assert 0 < row["diversity"] < 1


@pytest.mark.spark
def test_each_subscriber_is_measured_alone(spark: SparkSession) -> None:
    _, deliveries, matches, events = frames(spark)
    _, sent, matched = streamed()
    rows = ts.evaluate(deliveries, matches, events).collect()
    assert {row.subscriber for row in rows} == {each.subscriber for each in matched}
    by_id = {each.id: each for each in WORK.events}
    for row in rows:
        alone = Quality()
        alone.matched(each for each in matched if each.subscriber == row.subscriber)
        alone.delivered((each for each in sent if each.subscriber == row.subscriber), by_id.get)
        expected = alone.report().to_dict()
        for name in FIGURES:
            assert row[name] == pytest.approx(expected[name]), (row.subscriber, name)


@pytest.mark.spark
def test_an_event_that_was_published_twice_is_delivered_once(spark: SparkSession) -> None:
    _, deliveries, matches, _ = frames(spark)
    once = ts.evaluate(deliveries, matches, by=None).collect()[0]
    twice = ts.evaluate(deliveries, matches.union(matches), by=None).collect()[0]
    assert (twice.matches, twice.delivered) == (2 * once.matches, once.delivered)
    assert (twice.mean_age_s, twice.mean_rank) == pytest.approx((once.mean_age_s, once.mean_rank))


@pytest.mark.spark
def test_nothing_delivered_and_no_attributes(spark: SparkSession) -> None:
    _, deliveries, matches, _ = frames(spark)
    row = ts.evaluate(deliveries.limit(0), matches, by=None).collect()[0]
    assert (row.delivered, row.share, row.coverage) == (0, 0.0, 0.0)
    assert (row.mean_rank, row.mean_age_s, row.diversity) == (None, None, None)
    with pytest.raises(TidingsError, match="span"):
        ts.evaluate(deliveries, matches, span=1)


def test_distances_are_added_up_across_batches() -> None:
    events = [Event(f"e{i}", {"genre": genre}, i) for i, genre in enumerate("xyxx")]
    table = events_to_table(events)
    table = table.append_column("_subscriber", pa.array(["a", "a", "a", "b"]))
    table = table.append_column("_turn", pa.array([1, 2, 3, 1]))
    batches = [table.slice(0, 2).to_batches()[0], table.slice(2).to_batches()[0]]
    found = pa.Table.from_batches(apart(batches, read_events, span=10), APART).to_pylist()
    assert found == [
        {"subscriber": "a", "apart": 2 * Overlap().between(*events[:2]), "pairs": 3},
        {"subscriber": "b", "apart": 0.0, "pairs": 0},
    ]
