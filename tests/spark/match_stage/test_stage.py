"""The match stage on Arrow batches, without Spark, against the plain matcher."""

import json
import pickle
from itertools import chain, product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.spark.match_stage.test_bucketize import expected, written_out

from tidings import Event, Policy, Sliding, Subscriber, Subscription
from tidings.errors import InvalidPolicy
from tidings.formats.arrow import events_to_table, read_events
from tidings.index_files.base_files import build_folder
from tidings.index_files.publisher import Publisher
from tidings.index_files.subscriber_bundle import SubscriberBundle, bundle_subscribers
from tidings.rank.matcher import Matcher
from tidings.score.relaxed import Relaxed
from tidings.spark.match_stage import stage
from tidings.spark.match_stage.match_batch import MatchBatch
from tidings.spark.match_stage.matcher_source import FolderSource, PickledSource
from tidings.spark.match_stage.results import match_batches
from tidings.spark.match_stage.stage import BUCKET_ROWS, LAST, PART, MatchStage, bucket_of
from tidings.spark.publications import ReadLines
from tidings.store import open_store
from tidings.testing import Workload, workload

WORK = workload(seed=21, events=60, subscribers=36)
SCAN = Matcher(WORK.subscribers, WORK.subscriptions, index="scan")
MEMBERS = bundle_subscribers(WORK.subscribers, WORK.subscriptions)
Row = dict[str, Any]


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[int, FolderSource]:
    """Return the same subscribers in one part and in several."""
    paths = {parts: tmp_path_factory.mktemp(f"parts{parts}") for parts in (1, 2, 4)}
    return {
        parts: FolderSource(build_folder(path, MEMBERS, parts), 1) for parts, path in paths.items()
    }


def batches(events: list[Event], size: int = 25) -> list[pa.RecordBatch]:
    return list(events_to_table(events).combine_chunks().to_batches(max_chunksize=size))


def to_parts(batches: list[pa.RecordBatch], parts: int) -> list[pa.RecordBatch]:
    """Return rows for each part, shuffled, as Spark may pass them."""
    table = pa.concat_tables(
        pa.Table.from_batches([batch]).append_column(PART, [pa.array([part] * batch.num_rows)])
        for batch in batches
        for part in range(parts)
    )
    shuffled = table.take([row * 7 % table.num_rows for row in range(table.num_rows)])
    assert table.num_rows % 7
    return list(shuffled.combine_chunks().to_batches(max_chunksize=40))


def sent(stage: MatchStage, batches: list[pa.RecordBatch]) -> list[Row]:
    return [row for batch in stage.batches(batches) for row in batch.to_pylist()]


def matches(rows: list[Row]) -> list[Any]:
    batches = [MatchBatch.unpack(row["body"]) for row in rows if row["kind"] == "matches"]
    return sorted(chain(*map(written_out, batches)))


def test_every_bucket_gets_every_tick_and_its_matches(folders):
    rows = sent(MatchStage(folders[1], read_events, 8), batches(WORK.events))
    assert matches(rows) == sorted(expected(SCAN, WORK.events))
    newest = [max(e.published_us for e in WORK.events[at : at + 25]) for at in (0, 25, 50)]
    numbers = [25, 50, 60]
    ticks = [(row["bucket"], row["published_us"], row["sequence"]) for row in rows]
    expected_ticks = [(b, us, n) for us, n in zip(newest, numbers, strict=True) for b in range(8)]
    assert sorted(ticks) == sorted(expected_ticks)
    assert {row["kind"] for row in rows} <= {"matches", "tick"}
    for row in rows:
        if row["kind"] == "matches":
            subscribers = MatchBatch.unpack(row["body"]).subscribers
            assert {bucket_of(name, 8) for name in subscribers} == {row["bucket"]}
        else:
            assert row["body"] is None


@pytest.mark.parametrize("parts", [2, 4])
def test_parts_together_send_the_same_matches_as_one(folders, parts):
    alone = sent(MatchStage(folders[1], read_events, 4), batches(WORK.events))
    split = MatchStage(folders[parts], read_events, 4)
    rows = sent(split, to_parts(batches(WORK.events), parts))
    assert matches(rows) == matches(alone)
    for row in rows:
        if row["kind"] == "matches":
            events = MatchBatch.unpack(row["body"]).events
            assert len(set(events)) == len(events)
    assert {row["bucket"] for row in rows} == set(range(4))


def test_buckets_must_be_a_multiple_of_the_parts(folders):
    with pytest.raises(InvalidPolicy, match="6 buckets cannot be split over 4 parts"):
        MatchStage(folders[4], read_events, 6)


def test_rows_are_read_some_at_a_time(folders, monkeypatch):
    monkeypatch.setattr(stage, "MAX_ROWS", 7)
    rows = sent(MatchStage(folders[1], read_events, 2), batches(WORK.events, size=60))
    assert matches(rows) == sorted(expected(SCAN, WORK.events))
    assert len(rows) == 2 * 9


def test_events_with_many_matches_are_sent_in_several_batches(folders, monkeypatch):
    monkeypatch.setattr(stage, "MAX_MATCHES", 100)
    rows = sent(MatchStage(folders[1], read_events, 1), batches(WORK.events, size=60))
    assert matches(rows) == sorted(expected(SCAN, WORK.events))
    sizes = [
        len(MatchBatch.unpack(row["body"]).matches.ranks)
        for row in rows
        if row["kind"] == "matches"
    ]
    assert len(sizes) > 3
    assert max(sizes) <= 200
    matched = list(match_batches(folders[1], read_events, batches(WORK.events, size=60)))
    assert [batch.num_rows for batch in matched] == sizes


def lines(*texts: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": list(texts)})


@pytest.mark.parametrize("parts", [1, 4])
def test_a_bad_record_is_sent_once(folders, parts):
    batch = lines('{"id": "e1"}', json.dumps(WORK.events[0].to_dict()), "nonsense")
    arrived = [batch] if parts == 1 else to_parts([batch], parts)
    rows = sent(MatchStage(folders[parts], ReadLines(), 4), arrived)
    dead = [json.loads(row["body"]) for row in rows if row["kind"] == "dead"]
    assert sorted(each["reason"] for each in dead) == [
        "Expecting value: line 1 column 1 (char 0)",
        "event e1: field 'published_at' is missing",
    ]
    assert {row["bucket"] for row in rows if row["kind"] == "dead"} == {0}
    assert matches(rows) == sorted(expected(SCAN, WORK.events[:1]))


def test_a_batch_of_bad_records_has_no_ticks(folders):
    rows = sent(MatchStage(folders[1], ReadLines(), 2), [lines("nonsense")])
    assert [row["kind"] for row in rows] == ["dead"]
    assert list(MatchStage(folders[1], ReadLines(), 2).batches([lines()])) == []


def counting_source(parts: int, path: Path) -> FolderSource:
    subscribers = [Subscriber(name, Policy(window=Sliding(3))) for name in "abcdef"]
    subscribers.append(Subscriber("z", Policy(window=Sliding(3, count="published"))))
    owned = [Subscription(f"s{each.id}", each.id, "x = 1") for each in subscribers]
    return FolderSource(build_folder(path, bundle_subscribers(subscribers, owned), parts), 1)


@pytest.mark.parametrize("parts", [1, 2])
def test_only_counting_subscribers_miss_an_event_without_sequence(tmp_path, parts):
    events = [
        Event("e1", {"x": 1}, 0, sequence=1),
        Event("e2", {"x": 1}, 0),
        Event("e3", {"x": 2}, 0),
    ]
    arrived = batches(events) if parts == 1 else to_parts(batches(events), 2)
    rows = sent(MatchStage(counting_source(parts, tmp_path), read_events, 2), arrived)
    pairs = {(event, subscriber) for event, subscriber, _, _ in matches(rows)}
    assert pairs == {*product(["e1"], "abcdefz"), *product(["e2"], "abcdef")}
    dead = [json.loads(row["body"]) for row in rows if row["kind"] == "dead"]
    assert [(each["event"], each["record"]["id"]) for each in dead] == [("e2", "e2")]
    assert 'count="published"' in dead[0]["reason"]


def test_a_counting_subscriber_added_during_the_stream_does_not_stop_others(tmp_path):
    with open_store(tmp_path / "tidings.db") as store:
        store.catalogue.put(Subscriber("ann"), Subscription("s", "ann", "x = 1"))
        with Publisher(tmp_path / "index", store.history) as publisher:
            event = [Event("e", {"x": 1}, 0)]
            counts = Policy(window=Sliding(5, count="published"))
            for change in (
                lambda: None,
                lambda: store.catalogue.put(Subscriber("eve", counts)),
                lambda: store.catalogue.remove("subscriber", "eve"),
            ):
                change()
                source = FolderSource(publisher.folder, publisher.publish())
                rows = sent(MatchStage(source, read_events, 1), batches(event))
                assert [row["kind"] for row in rows] == ["matches"]


def test_members_may_be_pickled():
    policy = Policy(scorer=Relaxed(aggregate=lambda weights: 2 * sum(weights)))
    member = SubscriberBundle(
        "ann", Subscriber("ann", policy), [Subscription("s", "ann", "x = 1 or y = 1")]
    )
    source = PickledSource.of([member])
    assert source.matcher(0) is source.matcher(0)
    rows = sent(MatchStage(source, read_events, 2), batches([Event("e", {"x": 1}, 0)]))
    assert matches(rows) == [("e", "ann", 2.0, ("s",))]


@given(st.integers(0, 50), st.integers(1, 30), st.integers(1, 3))
@settings(max_examples=15)
def test_all_matches_of_any_workload_in_any_batches_are_sent(seed, size, buckets):
    work: Workload = workload(seed, events=30, subscribers=15)
    source = PickledSource.of(bundle_subscribers(work.subscribers, work.subscriptions))
    rows = sent(MatchStage(source, read_events, buckets), batches(work.events, size))
    scan = Matcher(work.subscribers, work.subscriptions, index="scan")
    assert matches(rows) == sorted(expected(scan, work.events))


def test_a_pickled_folder_source_has_every_policy(folders):
    policies = pickle.loads(pickle.dumps(folders[4].policy_source())).policies()
    assert [policies.policy(each.id) for each in WORK.subscribers] == [
        each.policy for each in WORK.subscribers
    ]
    assert policies.policy("nobody") is None
    assert policies.version == folders[4].folder.manifest(1).source


def test_rows_between_the_stages_have_these_columns():
    assert BUCKET_ROWS.names == ["bucket", "kind", "published_us", "sequence", "body"]


@pytest.mark.parametrize("parts", [1, 2])
def test_rows_of_the_last_file_end_the_stream_in_every_bucket(
    folders: dict[int, FolderSource], parts: int
) -> None:
    work = MatchStage(folders[parts], read_events, 4)
    for marks, ends in (([False] * 3, 0), ([False, True, False], 4)):
        sent = [batch.append_column(LAST, pa.array(marks)) for batch in batches(WORK.events[:3])]
        rows = [
            row
            for batch in (to_parts(sent, parts) if parts > 1 else sent)
            for each in work.batches([batch])
            for row in each.to_pylist()
        ]
        assert len({row["bucket"] for row in rows if row["kind"] == "end"}) == ends
        assert any(row["kind"] == "matches" for row in rows)
