"""The match stage on Arrow batches, without Spark, against the plain matcher."""

import json
import pickle
from itertools import chain, product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.index_files.test_overlay_matcher import groups, scan
from tests.rank.bulk.test_ranker import EVENTS

from tidings import Event, Policy, Sliding, Subscriber, Subscription
from tidings.errors import InvalidPolicy
from tidings.formats.arrow import events_to_table, read_events
from tidings.index_files.base_files import build_folder
from tidings.index_files.mapped_matcher import build_base
from tidings.index_files.overlay_matcher import OverlayMatcher, in_memory_matcher
from tidings.index_files.publisher import Publisher
from tidings.index_files.subscriber_bundle import SubscriberBundle, bundle_subscribers
from tidings.model.event_columns import UNNUMBERED
from tidings.rank.matcher import Matcher
from tidings.score.relaxed import Relaxed
from tidings.spark.match_stage import stage
from tidings.spark.match_stage.match_batch import MatchBatch
from tidings.spark.match_stage.matcher_source import FolderSource, PickledSource
from tidings.spark.match_stage.results import match_batches
from tidings.spark.match_stage.stage import (
    BUCKET_ROWS,
    LAST,
    PART,
    MatchStage,
    PrunablePeriod,
    bucket_of,
    mark_beaten,
    match_by_bucket,
    prune_periods,
)
from tidings.spark.publications import ReadLines
from tidings.spark.state_stage.bucket import Bucket, BucketSettings
from tidings.spark.state_stage.policies import ListedPolicies
from tidings.spark.state_stage.watermark import Tick
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
    owned = [
        Subscription(f"s{subscriber.id}", subscriber.id, "x = 1") for subscriber in subscribers
    ]
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
    assert [policies.policy(subscriber.id) for subscriber in WORK.subscribers] == [
        subscriber.policy for subscriber in WORK.subscribers
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


MatchSet = set[tuple[str, str, float, tuple[str, ...]]]


def written_out(batch: MatchBatch) -> list[tuple[str, str, float, tuple[str, ...]]]:
    """Return the matches of a batch: event, subscriber, rank, subscriptions."""
    rows = []
    for number, event in enumerate(batch.events):
        for subscriber, rank, matched in batch.matches.rows(number):
            ids = tuple(batch.subscriptions[each] for each in matched)
            rows.append((event, batch.subscribers[subscriber], rank, ids))
    return rows


def expected(matcher: Matcher, events: list[Event]) -> MatchSet:
    return {
        (event.id, match.subscriber, match.score, match.matched)
        for event in events
        for match in matcher.matches(event)
    }


@given(groups, groups, st.integers(1, 4))
def test_batches_have_all_matches_in_the_buckets_of_their_subscribers(first, later, buckets):
    batches = match_by_bucket(OverlayMatcher(build_base(first), later), EVENTS, buckets).batches
    addressed = [
        (bucket, match)
        for bucket, batch in batches.items()
        for match in written_out(MatchBatch.unpack(batch.pack()))
    ]
    assert all(bucket_of(name, buckets) == bucket for bucket, (_, name, _, _) in addressed)
    present = {each.name: each for each in [*first, *later]}
    matches = [match for _, match in addressed]
    assert len(set(matches)) == len(matches)
    assert set(matches) == expected(scan(present), EVENTS)
    for batch in batches.values():
        order = [[event.id for event in EVENTS].index(id) for id in batch.events]
        assert order == sorted(order)
        assert all(np.diff(batch.matches.starts) > 0)


def test_events_have_their_times_and_sequence_numbers():
    member = SubscriberBundle("ann", Subscriber("ann"), [Subscription("s", "ann", "a = 1")])
    events = [
        Event("e1", {"a": 1}, published_at=3, sequence=9),
        Event("e2", {"a": 2}, published_at=4, sequence=10),
        Event("e3", {"a": 1}, published_at=2),
    ]
    batch = match_by_bucket(in_memory_matcher([member]), events, 1).batches[0]
    assert batch.events == ["e1", "e3"]
    assert batch.us.tolist() == [3_000_000, 2_000_000]
    assert batch.sequence.tolist() == [9, UNNUMBERED]
    assert not batch.forms


@pytest.mark.parametrize(
    "policy", [Policy(diversify="maxmin"), Policy(window={"name": "history", "length": 3})]
)
def test_forms_are_sent_to_subscribers_that_compare_events(policy):
    plain = SubscriberBundle("ann", Subscriber("ann"), [Subscription("s1", "ann", "a = 1")])
    other = SubscriberBundle("bob", Subscriber("bob", policy), [Subscription("s2", "bob", "b = 1")])
    events = [Event("e1", {"a": 1}, 0), Event("e2", {"b": 1}, 0), Event("e3", {"a": 1, "b": 1}, 0)]
    batch = match_by_bucket(OverlayMatcher(build_base([plain, other])), events, 1).batches[0]
    assert batch.forms[0] == ""
    assert [json.loads(form) for form in batch.forms[1:]] == [e.to_dict() for e in events[1:]]


def test_a_workload_with_every_policy_is_split_whole():
    work = workload(seed=9, events=50, subscribers=40)
    compiled = OverlayMatcher(build_base(bundle_subscribers(work.subscribers, work.subscriptions)))
    batches = match_by_bucket(compiled, work.events, 8).batches
    matches = [
        match
        for batch in batches.values()
        for match in written_out(MatchBatch.unpack(batch.pack()))
    ]
    matcher = Matcher(work.subscribers, work.subscriptions, index="scan")
    assert sorted(matches) == sorted(expected(matcher, work.events))


def test_nothing_is_sent_if_nothing_matches():
    assert match_by_bucket(in_memory_matcher([]), EVENTS, 3) == ({}, [], [])
    assert match_by_bucket(in_memory_matcher([]), [], 3) == ({}, [], [])


PERIODS: list[dict[str, Any]] = [
    {"window": {"name": "periodic", "length": "10s"}},
    {"window": {"name": "periodic", "length": "7s", "origin": 3, "wait": True}},
    {
        "window": {"name": "periodic", "length": "30s"},
        "decay": {"name": "exponential", "rate": 0.1},
    },
]
OTHERS: list[dict[str, Any]] = [
    {"window": {"name": "periodic", "length": 5}},
    {"window": {"name": "periodic", "length": "10s"}, "diversify": "divrank"},
    {"window": {"name": "sliding", "length": "10s"}},
    {"window": "continuous"},
    {"window": {"name": "history", "length": 5}},
    {"window": {"name": "jumping", "length": "10s", "step": "5s"}},
]


def member(name: str, k: int, form: dict[str, Any]) -> SubscriberBundle:
    ranks = [Subscription(f"{name}{n}", name, f"n = {n}", prefrank=n / 4) for n in range(4)]
    return SubscriberBundle(name, Subscriber(name, Policy(k=k, **form)), ranks)


def stream(seed: int, count: int = 60) -> list[Event]:
    chance = Random(seed)
    times = sorted(chance.randrange(60) for _ in range(count))
    return [Event(f"e{n}", {"n": chance.randrange(4)}, at) for n, at in enumerate(times)]


def delivered(
    matcher: OverlayMatcher, batches: list[list[Event]], lateness_us: int, prune: bool
) -> Any:
    """Run batches through one bucket; return the deliveries in order."""
    subscribers = {name: Subscriber(name, matcher.policy(name) or Policy()) for name in "pqr"}
    bucket = Bucket(ListedPolicies.of(subscribers), BucketSettings(lateness_us))
    rows = []
    for events in batches:
        matched = list(match_by_bucket(matcher, events, 1, prune=prune).batches.values())
        ticks = [Tick(max(event.published_us for event in events), 0)]
        rows += bucket.run(matched, ticks).to_pylist()
    rows += bucket.run([], [Tick(10**9, 0)]).to_pylist()
    columns = ("subscriber", "event", "rank", "position", "matched", "sequence")
    return [tuple(row[name] for name in columns) for row in rows if row["kind"] == "delivery"]


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from([0, 8_000_000]))
def test_deliveries_stay_the_same(seed: int, k: int, lateness_us: int) -> None:
    matcher = OverlayMatcher(
        build_base([member(name, k, form) for name, form in zip("pqr", PERIODS, strict=True)])
    )
    chance, events = Random(seed), stream(seed)
    if chance.random() < 0.5:
        chance.shuffle(events)
    cuts = sorted(chance.sample(range(1, 60), 3))
    batches = [events[a:b] for a, b in zip([0, *cuts], [*cuts, 60], strict=True)]
    plain, fewer = (delivered(matcher, batches, lateness_us, prune) for prune in (False, True))
    assert sorted(fewer) == sorted(plain)


@pytest.mark.parametrize("form", PERIODS)
def test_most_matches_of_an_event_that_matches_everything_are_pruned(form: dict[str, Any]) -> None:
    matcher, events = OverlayMatcher(build_base([member("p", 2, form)])), stream(7, 400)
    matches = matcher.match_many(events)
    kept = prune_periods(matcher, events, matches)
    assert len(matches.subscribers) == 400
    assert len(kept.subscribers) < 100
    assert len(kept.matched) == len(kept.subscribers)
    assert np.all(np.diff(kept.starts) >= 0)


@pytest.mark.parametrize("form", OTHERS)
def test_other_policies_are_not_pruned(form: dict[str, Any]) -> None:
    matcher, events = OverlayMatcher(build_base([member("p", 1, form)])), stream(7)
    assert PrunablePeriod.of(matcher.policy("p")).k == 0
    assert len(prune_periods(matcher, events, matcher.match_many(events)).subscribers) == 60


def test_changed_subscribers_are_pruned_as_well() -> None:
    changed = [member("p", 1, PERIODS[0]), member("q", 1, OTHERS[3])]
    matcher, events = OverlayMatcher(build_base([member("o", 1, PERIODS[0])]), changed), stream(3)
    kept = prune_periods(matcher, events, matcher.match_many(events))
    counts = np.bincount(kept.subscribers, minlength=3)
    assert counts[0] < 30
    assert max(counts[1:].tolist()) == 60
    assert min(counts[1:].tolist()) < 30


GROUPS = st.lists(
    st.tuples(st.integers(1, 3), st.lists(st.integers(-2, 4), min_size=1, max_size=9)), max_size=4
)


@given(GROUPS)
def test_mark_beaten_agrees_with_counting(drawn: list[tuple[int, list[int]]]) -> None:
    groups = [number for number, (_, times) in enumerate(drawn) for _ in times]
    k = [size for size, times in drawn for _ in times]
    us = [time for _, times in drawn for time in times]
    beaten = np.zeros(len(us), np.bool_)
    mark_beaten(np.array(groups, np.int64), np.array(us, np.int64), np.array(k, np.int64), beaten)
    expected = [
        sum(earlier >= times[row] for earlier in times[:row]) >= size
        for size, times in drawn
        for row in range(len(times))
    ]
    assert beaten.tolist() == expected
