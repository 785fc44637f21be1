"""The match stage on Arrow batches alone: what is sent is what the plain matcher finds."""

import json
from collections.abc import Iterator
from itertools import chain, product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.spark.match_stage.test_bucketize import expected, opened

from tidings import Event, Policy, Sliding, Subscriber, Subscription
from tidings.errors import InvalidPolicy
from tidings.formats.arrow import events_to_table, matches_to_table, read_events
from tidings.index_files.base_files import build_folder
from tidings.index_files.publisher import Publisher
from tidings.index_files.subscriber_bundle import SubscriberBundle, bundle_subscribers
from tidings.model.dead_letter import BadRecord
from tidings.model.records import Event as Publication
from tidings.rank.matcher import Matcher
from tidings.score.exact import Exact
from tidings.score.preference import Preference
from tidings.score.relaxed import Relaxed
from tidings.spark.match_stage import batch_size as paces
from tidings.spark.match_stage import stage as flows
from tidings.spark.match_stage.match_batch import Parcel
from tidings.spark.match_stage.matcher_source import Objects, PinnedRoster, Versions
from tidings.spark.match_stage.results import ROW, Targets, match_batches
from tidings.spark.match_stage.stage import FLOW, PART, Flow, bucket_of, read_lines
from tidings.store import open_store
from tidings.testing import Workload, workload

WORK = workload(seed=21, events=60, subscribers=36)
SCAN = Matcher(WORK.subscribers, WORK.subscriptions, index="scan")
EVERYBODY = bundle_subscribers(WORK.subscribers, WORK.subscriptions)
Row = dict[str, Any]


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[int, Versions]:
    """Give the same subscribers in one part and in several."""
    made = {parts: tmp_path_factory.mktemp(f"parts{parts}") for parts in (1, 2, 4)}
    return {
        parts: Versions(build_folder(path, EVERYBODY, parts), 1) for parts, path in made.items()
    }


def batches(events: list[Event], size: int = 25) -> list[pa.RecordBatch]:
    return list(events_to_table(events).combine_chunks().to_batches(max_chunksize=size))


def to_parts(given: list[pa.RecordBatch], parts: int) -> list[pa.RecordBatch]:
    """Send rows to each part, mixed, as Spark may hand them over."""
    table = pa.concat_tables(
        pa.Table.from_batches([each]).append_column(PART, [pa.array([part] * each.num_rows)])
        for each in given
        for part in range(parts)
    )
    shuffled = table.take([at * 7 % table.num_rows for at in range(table.num_rows)])
    assert table.num_rows % 7
    return list(shuffled.combine_chunks().to_batches(max_chunksize=40))


def sent(flow: Flow, given: list[pa.RecordBatch]) -> list[Row]:
    return [row for batch in flow.batches(given) for row in batch.to_pylist()]


def matches(rows: list[Row]) -> list[Any]:
    parcels = [Parcel.unpack(row["body"]) for row in rows if row["kind"] == "parcel"]
    return sorted(chain(*map(opened, parcels)))


def test_every_bucket_hears_of_every_batch_and_of_its_matches(folders):
    rows = sent(Flow(folders[1], read_events, 8), batches(WORK.events))
    assert matches(rows) == sorted(expected(SCAN, WORK.events))
    newest = [max(e.published_us for e in WORK.events[at : at + 25]) for at in (0, 25, 50)]
    numbers = [25, 50, 60]
    heard = [(row["bucket"], row["published_us"], row["sequence"]) for row in rows]
    wanted = [(b, us, n) for us, n in zip(newest, numbers, strict=True) for b in range(8)]
    assert sorted(heard) == sorted(wanted)
    assert {row["kind"] for row in rows} <= {"parcel", "tick"}
    for row in rows:
        if row["kind"] == "parcel":
            people = Parcel.unpack(row["body"]).subscribers
            assert {bucket_of(name, 8) for name in people} == {row["bucket"]}
        else:
            assert row["body"] is None


@pytest.mark.parametrize("parts", [2, 4])
def test_parts_send_together_what_one_sends(folders, parts):
    alone = sent(Flow(folders[1], read_events, 4), batches(WORK.events))
    flow = Flow(folders[parts], read_events, 4)
    rows = sent(flow, to_parts(batches(WORK.events), parts))
    assert matches(rows) == matches(alone)
    for row in rows:
        if row["kind"] == "parcel":
            assert len(set(Parcel.unpack(row["body"]).events)) == len(
                Parcel.unpack(row["body"]).events
            )
    assert {row["bucket"] for row in rows} == set(range(4))


def test_buckets_must_be_a_multiple_of_the_parts(folders):
    with pytest.raises(InvalidPolicy, match="6 buckets cannot be split over 4 parts"):
        Flow(folders[4], read_events, 6)


def test_many_events_are_taken_some_at_a_time(folders, monkeypatch):
    monkeypatch.setattr(flows, "TOGETHER", 7)
    rows = sent(Flow(folders[1], read_events, 2), batches(WORK.events, size=60))
    assert matches(rows) == sorted(expected(SCAN, WORK.events))
    assert len(rows) == 2 * 9


def test_events_with_many_matches_are_sent_in_portions(folders, monkeypatch):
    monkeypatch.setattr(paces, "MOST", 100)
    rows = sent(Flow(folders[1], read_events, 1), batches(WORK.events, size=60))
    assert matches(rows) == sorted(expected(SCAN, WORK.events))
    sizes = [
        len(Parcel.unpack(row["body"]).matches.ranks) for row in rows if row["kind"] == "parcel"
    ]
    assert len(sizes) > 3
    assert max(sizes) <= 200
    found = list(match_batches(folders[1], read_events, batches(WORK.events, size=60)))
    assert [each.num_rows for each in found] == sizes


def lines(*texts: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": list(texts)})


@pytest.mark.parametrize("parts", [1, 4])
def test_what_cannot_be_read_is_sent_once(folders, parts):
    batch = lines('{"id": "e1"}', json.dumps(WORK.events[0].to_dict()), "nonsense")
    given = [batch] if parts == 1 else to_parts([batch], parts)
    rows = sent(Flow(folders[parts], read_lines, 4), given)
    dead = [json.loads(row["body"]) for row in rows if row["kind"] == "dead"]
    assert sorted(each["reason"] for each in dead) == [
        "Expecting value: line 1 column 1 (char 0)",
        "event e1: field 'published_at' is missing",
    ]
    assert {row["bucket"] for row in rows if row["kind"] == "dead"} == {0}
    assert matches(rows) == sorted(expected(SCAN, WORK.events[:1]))


def test_a_batch_of_bad_records_has_no_ticks(folders):
    rows = sent(Flow(folders[1], read_lines, 2), [lines("nonsense")])
    assert [row["kind"] for row in rows] == ["dead"]
    assert list(Flow(folders[1], read_lines, 2).batches([lines()])) == []


def counting(parts: int, path: Path) -> Versions:
    people = [Subscriber(name, Policy(window=Sliding(3))) for name in "abcdef"]
    people.append(Subscriber("z", Policy(window=Sliding(3, count="published"))))
    wanted = [Subscription(f"s{each.id}", each.id, "x = 1") for each in people]
    return Versions(build_folder(path, bundle_subscribers(people, wanted), parts), 1)


@pytest.mark.parametrize("parts", [1, 2])
def test_who_counts_gets_no_event_without_a_number_and_all_others_do(tmp_path, parts):
    events = [
        Event("e1", {"x": 1}, 0, sequence=1),
        Event("e2", {"x": 1}, 0),
        Event("e3", {"x": 2}, 0),
    ]
    given = batches(events) if parts == 1 else to_parts(batches(events), 2)
    rows = sent(Flow(counting(parts, tmp_path), read_events, 2), given)
    got = {(event, who) for event, who, _, _ in matches(rows)}
    assert got == {*product(["e1"], "abcdefz"), *product(["e2"], "abcdef")}
    dead = [json.loads(row["body"]) for row in rows if row["kind"] == "dead"]
    assert [(each["event"], each["record"]["id"]) for each in dead] == [("e2", "e2")]
    assert 'count="published"' in dead[0]["reason"]


def test_who_counts_and_comes_while_events_are_matched_stops_nobody_else(tmp_path):
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
                found = Versions(publisher.folder, publisher.publish())
                rows = sent(Flow(found, read_events, 1), batches(event))
                assert [row["kind"] for row in rows] == ["parcel"]


def test_members_may_travel_as_objects():
    policy = Policy(scorer=Relaxed(aggregate=lambda weights: 2 * sum(weights)))
    member = SubscriberBundle(
        "ann", Subscriber("ann", policy), [Subscription("s", "ann", "x = 1 or y = 1")]
    )
    found = Objects([member])
    assert found.serve(0) is found.serve(0)
    rows = sent(Flow(found, read_events, 2), batches([Event("e", {"x": 1}, 0)]))
    assert matches(rows) == [("e", "ann", 2.0, ("s",))]


@given(st.integers(0, 50), st.integers(1, 30), st.integers(1, 3))
@settings(max_examples=15)
def test_any_workload_in_any_batches_is_sent_whole(seed, size, buckets):
    work: Workload = workload(seed, events=30, subscribers=15)
    found = Objects(bundle_subscribers(work.subscribers, work.subscriptions))
    rows = sent(Flow(found, read_events, buckets), batches(work.events, size))
    scan = Matcher(work.subscribers, work.subscriptions, index="scan")
    assert matches(rows) == sorted(expected(scan, work.events))


@pytest.mark.parametrize("parts", [1, 2])
def test_matches_are_rows(folders, parts):
    given = batches(WORK.events) if parts == 1 else to_parts(batches(WORK.events), parts)
    found = pa.Table.from_batches(list(match_batches(folders[parts], read_events, given)))
    wanted = matches_to_table(chain(*map(SCAN.matches, WORK.events)))
    order = [("event", "ascending"), ("subscriber", "ascending")]
    assert found.sort_by(order).to_pylist() == wanted.sort_by(order).to_pylist()
    assert found.schema == wanted.schema


def reader(batch: pa.RecordBatch) -> Iterator[Publication | BadRecord]:
    """Refuse the first row."""
    _, *others = read_events(batch)
    yield BadRecord({}, "it is the first", 1)
    yield from others


@pytest.mark.parametrize("scorer", [Exact(), Relaxed()])
def test_targets_are_rows(folders, scorer):
    (batch,) = batches(WORK.events, 60)
    numbered = batch.append_column(ROW, pa.array(range(60), pa.int64()))
    found = [
        row
        for b in Targets(folders[1], reader, 3, scorer).batches([numbered])
        for row in b.to_pylist()
    ]
    assert [
        (row[ROW], row["event"], row["position"], row["subscription"], row["score"])
        for row in found
    ] == [
        (at, event.id, place, name, score)
        for at, event in enumerate(WORK.events)
        if at
        for place, (name, score) in enumerate(SCAN.top(event, 3, scorer), start=1)
    ]


def test_targets_by_other_scorers_need_the_objects():
    (batch,) = batches(WORK.events, 60)
    work = Targets(Objects(EVERYBODY), read_events, 2, Preference())
    found = [row for each in work.batches([batch]) for row in each.to_pylist()]
    assert [(row["event"], row["subscription"]) for row in found] == [
        (event.id, name) for event in WORK.events for name, _ in SCAN.top(event, 2, Preference())
    ]


def test_a_roster_travels_and_knows_every_policy(folders):
    roster = PinnedRoster(folders[4]).__reduce__()[1]
    found = PinnedRoster(*roster)
    assert [found.policy(each.id) for each in WORK.subscribers] == [
        each.policy for each in WORK.subscribers
    ]
    assert found.policy("nobody") is None
    assert found.version == folders[4].folder.manifest(1).source


def test_the_schema_is_kept():
    assert FLOW.names == ["bucket", "kind", "published_us", "sequence", "body"]
