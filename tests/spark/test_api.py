"""The functions of `tidings.spark` on DataFrames, batch and streaming."""

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pytest
from pyspark.sql import DataFrame, SparkSession

import tidings.spark as ts
from tidings import (
    Delivery,
    Engine,
    Event,
    Limits,
    Policy,
    Sliding,
    Subscriber,
    Subscription,
    TidingsError,
)
from tidings.app.config.sink import KAFKA
from tidings.formats.arrow import events_to_table, matches_to_table, subscriptions_to_table
from tidings.formats.files import write_events, write_subscriptions
from tidings.index_files.publisher import Publisher
from tidings.rank.matcher import Matcher
from tidings.score.relaxed import Relaxed
from tidings.spark.api import Options, read_options
from tidings.spark.state_stage.bucket import BucketSettings
from tidings.store import open_store
from tidings.testing import Workload, workload

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def work() -> Workload:
    return workload(seed=11, events=60, subscribers=12)


@pytest.fixture(scope="module")
def expected(work: Workload) -> list[dict[str, Any]]:
    engine = Engine()
    for subscriber in work.subscribers:
        engine.subscribe(subscriber)
    for subscription in work.subscriptions:
        engine.add(subscription)
    return in_order(map(Delivery.to_dict, engine.publish_many(work.events)))


def in_order(forms: Any) -> list[dict[str, Any]]:
    return sorted(forms, key=lambda form: (form["subscriber"], form["sequence"]))


def as_forms(deliveries: pa.Table) -> list[dict[str, Any]]:
    rows = deliveries.to_pylist()
    for row in rows:
        row["window"] = json.loads(row["window"])
        content = row.pop("content")
        if content is not None:
            row["content"] = json.loads(content)
        row["delivered_at"] = row["delivered_at"].isoformat().replace("+00:00", "Z")
    return in_order(rows)


def frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    return spark.createDataFrame(table)


def write_files(folder: Path, events: list[Event], size: int = 17) -> list[Path]:
    """Write events as files of `size` events; Spark takes files in order of modification."""
    paths = []
    for start in range(0, len(events), size):
        paths.append(folder / f"{events[start].id}.jsonl")
        write_events(events[start : start + size], paths[-1])
        os.utime(paths[-1], (start + 1, start + 1))
    return paths


def stream(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder))


def run(query: DataFrame, out: Path) -> None:
    writer = query.writeStream.foreachBatch(ts.parquet_sink(out)).trigger(availableNow=True)
    writer.option("checkpointLocation", str(out / "_checkpoint")).start().awaitTermination()


def read(out: Path, kind: str) -> pa.Table:
    return pyarrow.dataset.dataset(out / kind, partitioning=None).to_table()


def test_a_batch_delivers_as_the_engine_does(
    spark: SparkSession, work: Workload, expected: list[dict[str, Any]]
) -> None:
    """Columns that are also content leave the deliveries as they are, but for their content."""
    table = events_to_table(work.events).drop_columns(["content"])
    seen = pa.array([{"by": [event.id]} for event in work.events])
    publications = frame(spark, table.append_column("seen", seen))
    options = {"content": ["title", "seen"]}
    deliveries = ts.feed(publications, work.subscriptions, work.subscribers, **options).toArrow()
    titles = {event.id: event.attributes["title"] for event in work.events}
    contents = {name: {"title": title, "seen": {"by": [name]}} for name, title in titles.items()}
    forms = [form | {"content": contents[form["event"]]} for form in expected]
    assert as_forms(deliveries) == forms
    frame(spark, deliveries).createOrReplaceTempView("deliveries")
    messages = in_order(json.loads(row["value"]) for row in spark.sql(KAFKA).collect())
    assert [*map(Delivery.from_dict, messages)] == [*map(Delivery.from_dict, forms)]


def test_a_stream_delivers_as_the_engine_does_and_resumes_after_a_stop(
    spark: SparkSession, work: Workload, expected: list[dict[str, Any]], tmp_path: Path
) -> None:
    source, later = tmp_path / "in", tmp_path / "later"
    source.mkdir()
    later.mkdir()
    for path in write_files(later, work.events)[:2]:
        path.rename(source / path.name)
    run(ts.outcomes(stream(spark, source), work.subscriptions, work.subscribers), tmp_path / "out")
    for path in sorted(later.iterdir()):
        path.rename(source / path.name)
    run(ts.outcomes(stream(spark, source), work.subscriptions, work.subscribers), tmp_path / "out")
    assert as_forms(read(tmp_path / "out", "deliveries")) == expected


def test_only_the_content_of_a_delivery_may_be_null(
    spark: SparkSession, work: Workload, tmp_path: Path
) -> None:
    write_files(tmp_path, work.events)
    for publications in (frame(spark, events_to_table(work.events)), stream(spark, tmp_path)):
        deliveries = ts.feed(publications, work.subscriptions, work.subscribers)
        assert [field.name for field in deliveries.schema if field.nullable] == ["content"]


def test_writing_a_batch_again_changes_nothing(
    spark: SparkSession, work: Workload, expected: list[dict[str, Any]], tmp_path: Path
) -> None:
    publications = frame(spark, events_to_table(work.events))
    found = ts.outcomes(publications, work.subscriptions, work.subscribers)
    sink = ts.parquet_sink(tmp_path)
    sink(found, 3)
    sink(found, 3)
    assert as_forms(read(tmp_path, "deliveries")) == expected


def test_matches_equal_those_of_the_matcher(spark: SparkSession, work: Workload) -> None:
    publications = frame(spark, events_to_table(work.events))
    found = ts.match(publications, work.subscriptions, work.subscribers).toArrow()
    matcher = Matcher(work.subscribers, work.subscriptions)
    wanted = matches_to_table(m for event in work.events for m in matcher.matches(event))
    order = [("event", "ascending"), ("subscriber", "ascending")]
    assert found.sort_by(order).to_pylist() == wanted.sort_by(order).to_pylist()


@pytest.mark.parametrize("scorer", ["exact", "relaxed", "preference", "graph"])
def test_targets_equal_those_of_the_engine(
    spark: SparkSession, work: Workload, scorer: str
) -> None:
    events = frame(spark, events_to_table(work.events[:20]))
    subscriptions = frame(spark, subscriptions_to_table(work.subscriptions))
    rows = ts.target(events, subscriptions, k=3, scorer=scorer).orderBy("event", "position")
    engine = Engine()
    for subscription in work.subscriptions:
        engine.add(subscription)
    assert [(row.event, row.subscription, row.score) for row in rows.collect()] == [
        (event.id, name, score)
        for event in work.events[:20]
        for name, score in engine.target(event, 3, scorer)
    ]


def test_a_plan_tells_parts_buckets_and_indexes(spark: SparkSession, work: Workload) -> None:
    events = frame(spark, events_to_table(work.events))
    plan = ts.describe(events, work.subscriptions, work.subscribers, parts=2, buckets=4)
    assert (plan.buckets, plan.version, plan.follows, plan.streaming) == (4, 1, False, False)
    sizes = [part.index.subscriptions + part.beside for part in plan.parts]
    assert len(sizes) == 2
    assert sum(sizes) == len(work.subscriptions)
    assert "windows: 4 buckets in memory, as it is a batch." in str(plan)
    assert "part 1: access: " in str(plan)
    assert json.loads(json.dumps(plan.to_dict()))["parts"][0]["beside"] == plan.parts[0].beside


def test_subscribers_that_hold_functions_are_planned_as_objects(spark: SparkSession) -> None:
    events = frame(spark, events_to_table([Event("e", {"a": 1}, published_at=0)]))
    policy = Policy(scorer=Relaxed(aggregate=max))
    plan = ts.describe(events, [Subscription("s", "ada", "a = 1")], policy)
    assert (plan.version, plan.parts[0].beside) == (None, 1)
    assert "objects, since a policy holds a function of the user" in str(plan)


def test_targets_use_preferences_of_subscribers(spark: SparkSession) -> None:
    events = spark.sql("select 'e' id, timestamp_seconds(5) published_at, 1 x")
    wanted = [Subscription("s1", "a", where="x = 1"), Subscription("s2", "a", where="x >= 0")]
    person = Subscriber("a", Policy(), prefers=(("s2", "s1"),))
    engine = Engine()
    engine.subscribe(person)
    engine.add_many(wanted)
    rows = ts.target(events, wanted, 2, "preference", subscribers=[person]).orderBy("position")
    found = [(row.subscription, row.score) for row in rows.collect()]
    assert found == engine.target(Event("e", {"x": 1}, 5), 2, "preference")
    assert found[0][0] == "s2"


def test_until_closes_the_last_period_of_a_batch(spark: SparkSession) -> None:
    publications = spark.sql(
        "select 'e1' id, timestamp_seconds(5) published_at, array('drama') genre, map('x', 1) more"
    )
    person = Subscriber("a", Policy(k=1, window={"name": "periodic", "length": "1m"}))
    wanted = [Subscription("s", "a", where="genre = 'drama' and x = 1")]
    assert ts.feed(publications, wanted, [person]).collect() == []
    closed = ts.feed(publications, wanted, [person], until=60).collect()
    assert [(row.event, row.matched) for row in closed] == [("e1", ["s"])]


def test_bad_lines_are_dead_letters(spark: SparkSession, tmp_path: Path) -> None:
    lines = tmp_path / "in"
    lines.mkdir()
    good = '{"id": "e1", "published_at": 0, "attributes": {"genre": "drama"}}'
    (lines / "a.jsonl").write_text(f'{good}\nnot json\n{{"id": "e2", "attributes": {{}}}}\n')
    source = spark.readStream.text(str(lines))
    run(ts.outcomes(source, [Subscription("s", "a", where="genre = 'drama'")]), tmp_path / "out")
    assert read(tmp_path / "out", "deliveries")["event"].to_pylist() == ["e1"]
    letters = read(tmp_path / "out", "dead_letters").to_pylist()
    assert sorted(letter["reason"] for letter in letters) == [
        "Expecting value: line 1 column 1 (char 0)",
        "event e2: field 'published_at' is missing",
    ]


def test_rows_that_match_and_target_skip_are_dead_letters(spark: SparkSession) -> None:
    rows = spark.sql(
        "select if(id = 3, null, concat('e', id)) id, timestamp_seconds(id) published_at, "
        "if(id = 4, double('nan'), id) x from range(6)"
    )
    letters = {row.reason: json.loads(row.record) for row in ts.dead_letters(rows).collect()}
    matches = ts.match(rows, [Subscription("s", "a", where="x >= 0")])
    assert {row.event for row in matches.collect()} == {"e0", "e1", "e2", "e5"}
    assert {record["x"] for record in letters.values()} == {3.0, "nan"}
    assert any("id" in reason for reason in letters)


def test_wrong_columns_of_publications_are_named(spark: SparkSession) -> None:
    wanted = [Subscription("s", "a", where="x = 1")]
    with pytest.raises(TidingsError, match="published_at"):
        ts.feed(spark.sql("select 'e' id, 1 x"), wanted)
    with pytest.raises(TidingsError, match="blob"):
        ts.feed(spark.sql("select 'e' id, now() published_at, unhex('00') blob"), wanted)
    counting = [Subscriber("a", Policy(window=Sliding(3, count="published")))]
    with pytest.raises(TidingsError, match="sequence"):
        ts.feed(spark.sql("select 'e' id, now() published_at, 1 x"), wanted, counting)
    with pytest.raises(TidingsError, match=r"an option is one of 'lateness', .*, not 'latenes'"):
        ts.feed(spark.sql("select 'e' id, now() published_at, 1 x"), wanted, latenes="1s")


def test_a_counting_subscriber_of_a_followed_store_only_warns(
    spark: SparkSession, tmp_path: Path
) -> None:
    stream = spark.readStream.schema("id string, published_at timestamp, x int")
    counts = Policy(window=Sliding(3, count="published"))
    with open_store(tmp_path / "tidings.db") as store:
        store.catalogue.put(Subscriber("a", counts), Subscription("s", "a", where="x = 1"))
        with Publisher(tmp_path / "index", store.history) as publisher:
            publisher.publish()
            with pytest.warns(UserWarning, match="need a column sequence; without it, such"):
                ts.feed(stream.parquet(str(tmp_path)), publisher.folder, buckets=2)


def test_bad_subscriptions_are_named(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "subscriptions.jsonl"
    write_subscriptions([Subscription("s", "a", where="x = 1")], path)
    path.write_text(path.read_text() + '{"id": "s2", "subscriber": "a", "where": "x ="}\n')
    publications = spark.sql("select 'e' id, now() published_at, 1 x")
    with pytest.raises(TidingsError, match=r"1 of 2 subscriptions.*\n.*s2"):
        ts.feed(publications, path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("title", "content must be a list of column names, not 'title'"),
        (["title", 5], "content must be a list of column names, not"),
        (["titel"], "publications lack the columns .'titel'."),
    ],
)
def test_content_is_a_list_of_columns(
    spark: SparkSession, work: Workload, content: object, reason: str
) -> None:
    publications = frame(spark, events_to_table(work.events))
    with pytest.raises(TidingsError, match=reason):
        ts.feed(publications, work.subscriptions, work.subscribers, content=content)


def test_null_tests_pauses_and_default_policies_are_those_of_the_engine(
    spark: SparkSession,
) -> None:
    titles = ["Big Fish", "BIGGER", "Ed Wood", None, "Mars"]
    events = [
        Event(f"e{number}", {} if title is None else {"title": title}, number)
        for number, title in enumerate(titles)
    ]
    wheres = {"ann": "title ilike 'BIG%'", "bob": "title is null", "cy": "title not like '%i%'"}
    wanted = [Subscription(name, name, where=where) for name, where in wheres.items()]
    wanted.append(Subscription("all", "dan", where="true"))
    people = [Subscriber("ann"), Subscriber("dan", Policy(k=1), paused=True)]
    default = Policy(k=2, decay={"name": "exponential", "half_life": "1h"})
    engine = Engine(default_policy=default)
    for subscriber in people:
        engine.subscribe(subscriber)
    engine.add_many(wanted)
    due = in_order(map(Delivery.to_dict, engine.publish_many(events)))
    assert [(form["subscriber"], form["event"]) for form in due] == [
        *[("ann", "e0"), ("ann", "e1"), ("bob", "e3")],
        *[("cy", "e1"), ("cy", "e2"), ("cy", "e4")],
    ]
    publications = frame(spark, events_to_table(events))
    rows = ts.outcomes(publications, wanted, people, default_policy=default).toArrow()
    kinds = {
        kind: rows.filter(pa.compute.field("kind") == kind) for kind in ("delivery", "dropped")
    }
    columns = [name for name in rows.column_names if name not in ("kind", "record", "reason")]
    assert as_forms(kinds["delivery"].select(columns)) == due
    assert {*kinds["dropped"]["reason"].to_pylist()} == {"the subscriber is paused"}
    assert len(kinds["dropped"]) == engine.quality().dropped
    fed = ts.feed(publications, wanted, people, default_policy=default).toArrow()
    assert as_forms(fed) == due


def test_options_are_read_by_name():
    options = read_options({"lateness": "2s", "buckets": 4, "limits": Limits.public()})
    assert options == Options(lateness="2s", buckets=4, limits=Limits.public())
    assert options.bucket_settings(streaming=True) == BucketSettings(2_000_000, buckets=4)


def test_nothing_waits_in_a_batch():
    assert read_options({"lateness": "2s"}).bucket_settings(streaming=False).lateness_us == 0


@pytest.mark.parametrize(("future", "us"), [("5m", 300_000_000), ("0s", 0), (None, None)])
def test_future_is_a_duration_or_none(future: object, us: int | None):
    assert Options(future=future).future_us == us


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"latenes": "2s"}, "an option is one of 'lateness', .*, not 'latenes'"),
        ({"buckets": 0}, "buckets is a whole number of at least 1"),
        ({"remember": "soon"}, "soon"),
        ({"limits": {"attributes": 3}}, "limits"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], reason: str):
    with pytest.raises(TidingsError, match=reason):
        read_options(options).bucket_settings(streaming=True)
