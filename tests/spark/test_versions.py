"""Versions of a folder in streams: a new one reaches the next batch, a replay has its old one."""

import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import tidings.spark as ts
from tidings import Event, Subscriber, Subscription, TidingsError
from tidings.errors import InvalidForm
from tidings.formats.arrow import events_to_table
from tidings.formats.files import write_events
from tidings.index_files.base_files import build_folder
from tidings.index_files.publisher import Publisher
from tidings.index_files.subscriber_bundle import bundle_subscribers
from tidings.index_files.versions import IndexFolder
from tidings.rank.matcher import Matcher
from tidings.score.exact import Exact
from tidings.score.preference import Preference
from tidings.spark.ops.error_messages import SPARK_ERRORS, describe_error
from tidings.store import Store, open_store
from tidings.testing import workload

pytestmark = pytest.mark.spark
WORK = workload(seed=31, events=40, subscribers=20)
SCAN = Matcher(WORK.subscribers, WORK.subscriptions, index="scan")


@pytest.fixture(scope="module")
def publications(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(events_to_table(WORK.events))


def found(frame: DataFrame, *names: str) -> list[Any]:
    return sorted(tuple(row[name] for name in names) for row in frame.collect())


@pytest.mark.parametrize("parts", [1, 3])
def test_matches_equal_those_of_the_plain_matcher_in_any_parts(publications, parts):
    frame = ts.match(publications, WORK.subscriptions, WORK.subscribers, parts=parts)
    rows = [
        (*row[:-1], tuple(row[-1]))
        for row in found(frame, "event", "subscriber", "score", "matched")
    ]
    assert rows == sorted(
        (event.id, match.subscriber, match.score, match.matched)
        for event in WORK.events
        for match in SCAN.matches(event)
    )


@pytest.mark.parametrize(("parts", "scorer"), [(1, Exact()), (3, Exact()), (3, Preference())])
def test_targets_equal_those_of_the_plain_matcher_in_any_parts(publications, parts, scorer):
    people = [Subscriber(subscriber.id) for subscriber in WORK.subscribers]
    scan = Matcher(people, WORK.subscriptions, index="scan")
    frame = ts.target(publications, WORK.subscriptions, k=3, scorer=scorer, parts=parts)
    assert found(frame, "event", "position", "subscription", "score") == sorted(
        (event.id, place, name, score)
        for event in WORK.events
        for place, (name, score) in enumerate(scan.top(event, 3, scorer), start=1)
    )


class Streamed:
    """A stream of files through `ts.match` over a folder, as batches of matches by number."""

    def __init__(self, spark: SparkSession, place: Path, wanted: IndexFolder | Store) -> None:
        self.spark, self.place, self.wanted = spark, place, wanted
        self.batches: dict[int, list[Any]] = {}
        (place / "in").mkdir()

    def run(self, write: Any = None) -> None:
        """Process the new files."""

        def note(batch: DataFrame, number: int) -> None:
            self.batches[number] = found(batch, "event", "subscriber")
            if write:
                write(number)

        lines = self.spark.readStream.option("maxFilesPerTrigger", 1).text(str(self.place / "in"))
        query = ts.match(lines, self.wanted).writeStream.foreachBatch(note)
        query = query.option("checkpointLocation", str(self.place / "checkpoint"))
        query.trigger(availableNow=True).start().awaitTermination()

    def put(self, name: str, at: int) -> None:
        path = self.place / "in" / f"{name}.jsonl"
        write_events([Event(name, {"x": 1}, published_at=at)], path)
        os.utime(path, (at, at))


def test_a_change_reaches_the_next_batch_and_no_replay(spark, tmp_path):
    with (
        open_store(tmp_path / "store.db") as store,
        Publisher(tmp_path / "index", store.history, parts=2) as publisher,
    ):

        def wants(name: str) -> None:
            store.catalogue.put(Subscriber(name), Subscription(f"s-{name}", name, "x = 1"))
            publisher.publish()

        wants("ann")
        stream = Streamed(spark, tmp_path, publisher.folder)
        for number, name in enumerate(("e1", "e2"), start=1):
            stream.put(name, number)

        def change_then_fail(number: int) -> None:
            if number == 0:
                wants("bob")
            else:
                wants("cy")
                raise RuntimeError("the sink is away")

        with pytest.raises(Exception, match="the sink is away"):
            stream.run(change_then_fail)
        assert stream.batches == {0: [("e1", "ann")], 1: [("e2", "ann"), ("e2", "bob")]}
        stream.batches.clear()
        stream.put("e3", 3)
        stream.run()
        assert stream.batches == {
            1: [("e2", "ann"), ("e2", "bob")],
            2: [("e3", "ann"), ("e3", "bob"), ("e3", "cy")],
        }


@pytest.mark.usefixtures("unfollowed")
def test_a_restarted_stream_over_a_store_sees_the_same_versions(spark, tmp_path):
    spark.conf.set("spark.tidings.index", str(tmp_path / "index"))
    try:
        with open_store(tmp_path / "store.db") as store:
            store.catalogue.put(Subscriber("ann"), Subscription("s-ann", "ann", "x = 1"))
            stream = Streamed(spark, tmp_path, store)
            stream.put("e1", 1)

            def change_then_fail(_: int) -> None:
                store.catalogue.put(Subscriber("bob"), Subscription("s-bob", "bob", "x = 1"))
                raise RuntimeError("the sink is away")

            with pytest.raises(Exception, match="the sink is away"):
                stream.run(change_then_fail)
        assert stream.batches == {0: [("e1", "ann")]}
        stream.batches.clear()
        stream.put("e2", 2)
        with open_store(tmp_path / "store.db") as again:
            stream.wanted = again
            stream.run()
        assert stream.batches == {0: [("e1", "ann")], 1: [("e2", "ann"), ("e2", "bob")]}
    finally:
        spark.conf.unset("spark.tidings.index")


@pytest.mark.parametrize("damage", [os.unlink, lambda path: os.truncate(path, 100)])
def test_a_damaged_index_file_stops_a_running_query_and_is_rebuilt(spark, tmp_path, damage):
    """The query names the file; it resumes once a publisher is restarted."""
    with open_store(tmp_path / "store.db") as store:

        def wants(publisher: Publisher, name: str) -> None:
            store.catalogue.put(Subscriber(name), Subscription(f"s-{name}", name, "x = 1"))
            publisher.publish()

        with Publisher(tmp_path / "index", store.history) as publisher:
            wants(publisher, "ann")
            stream = Streamed(spark, tmp_path, publisher.folder)
            for number, name in enumerate(("e1", "e2"), start=1):
                stream.put(name, number)

            def change_and_damage(number: int) -> None:
                wants(publisher, "bob")
                damage(next((tmp_path / "index").glob("*-change.sealed")))

            with pytest.raises(SPARK_ERRORS) as caught:
                stream.run(change_and_damage)
        assert stream.batches == {0: [("e1", "ann")]}
        assert f"{tmp_path}/index/00000002-0-change.sealed " in describe_error(caught.value)
        assert "restart its publisher, which builds it again" in describe_error(caught.value)
        with Publisher(tmp_path / "index", store.history) as publisher:
            publisher.publish()
            stream.run()
        assert stream.batches[1] == [("e2", "ann"), ("e2", "bob")]


def test_targets_of_several_parts_are_for_batches(spark, tmp_path):
    folder = build_folder(
        tmp_path, bundle_subscribers(WORK.subscribers, WORK.subscriptions), parts=2
    )
    (tmp_path / "in").mkdir()
    lines = spark.readStream.text(str(tmp_path / "in"))
    with pytest.raises(TidingsError, match="in a stream use one part"):
        ts.target(lines, folder)
    with pytest.raises(TidingsError, match="are ranked by 'exact' or 'relaxed'"):
        ts.target(lines, folder, scorer="preference")


def test_a_store_is_matched_at_its_present_version(spark, publications, tmp_path):
    with open_store(tmp_path / "store.db") as store:
        store.catalogue.put(*WORK.subscribers, *WORK.subscriptions)
        expected = ts.match(publications, WORK.subscriptions, WORK.subscribers)
        place = tmp_path / "index"
        place.mkdir()
        spark.conf.set("spark.tidings.index", str(place))
        try:
            matches = ts.match(publications, store, parts=2)
        finally:
            spark.conf.unset("spark.tidings.index")
        columns = ("subscriber", "event", "score")
        assert found(matches, *columns) == found(expected, *columns)
        assert len(list(place.glob("tidings-index-*/*-index.sealed"))) == 2
        with pytest.raises(InvalidForm, match="come with their subscribers"):
            ts.match(publications, store, WORK.subscribers)
