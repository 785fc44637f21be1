"""Buckets and streams go on despite poison events and subscribers, and name the culprits."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.fuzz import cases
from tests.spark.match_stage.match_batches import deliveries, rows, sent

from tidings import DivRank, Engine, Event, Policy, Sliding, Subscriber, Subscription
from tidings.diversify.distance import Overlap
from tidings.diversify.hashed_distances import EventHashes
from tidings.errors import InvalidPolicy
from tidings.rank.matcher import Matcher
from tidings.score.relaxed import Relaxed
from tidings.spark import outcomes
from tidings.spark.sinks.files import parquet_sink
from tidings.spark.state_stage.bucket import BucketSettings
from tidings.spark.state_stage.policies import ListedPolicies
from tidings.spark.state_stage.processor import BucketInput, BucketState, run_isolated
from tidings.spark.state_stage.watermark import BucketClock


def brittle_distance() -> Any:
    """Return a user-defined distance that fails for some events; it is pickled by value."""

    @dataclass(frozen=True)
    class Brittle(Overlap):
        def between(self, one: Event, other: Event) -> float:
            if 6 in (one.attributes["n"], other.attributes["n"]):
                raise ZeroDivisionError("a distance of zero")
            return 1.0

    return Brittle()


def other_distance() -> Any:
    """Return a distance that is the same for all pairs, also called Brittle."""

    @dataclass(frozen=True)
    class Brittle(Overlap):
        def between(self, one: Event, other: Event) -> float:
            return 0.25

    return Brittle()


def closed_window() -> Any:
    """Return a user-defined window that cannot be opened."""

    @dataclass(frozen=True)
    class Closed(Sliding):
        def open(self, *arguments: Any) -> Any:
            raise LookupError("no window")

    return Closed(4)


def brittle_aggregate() -> Any:
    """Return a user-defined aggregate that fails if both predicates hold."""

    def brittle(weights: Sequence[float]) -> float:
        if len(weights) > 1:
            raise LookupError("no such weight")
        return sum(weights)

    return brittle


EVENTS = [Event(f"e{at:02}", {"n": at, "half": at // 2}, at, at + 1) for at in range(24)]
GOOD = [
    Subscriber("ann", Policy(k=2, window=Sliding(4))),
    Subscriber("bob", Policy(k=2, window=Sliding(5), diversify=DivRank())),
    Subscriber("cat", Policy(k=3, window={"name": "periodic", "length": "5s"})),
]
BRITTLE = DivRank(distance=brittle_distance())
OTHER = DivRank(distance=other_distance())
POISON = [
    Subscriber("dan", Policy(k=2, window=Sliding(4), diversify=BRITTLE)),
    Subscriber("eve", Policy(k=2, window=Sliding(4), diversify=BRITTLE)),
]
SUBSCRIPTIONS = [
    Subscription(f"s{each.id}", each.id, "n >= 10" if each.id == "eve" else "n >= 0", prefrank=0.5)
    for each in [*GOOD, *POISON]
]
SUBSCRIBERS = {each.id: each for each in [*GOOD, *POISON]}


def by_engine(names: Sequence[str], events: Sequence[Event]) -> dict[str, Any]:
    engine = Engine()
    for name in names:
        engine.subscribe(SUBSCRIBERS[name])
    for owned in SUBSCRIPTIONS:
        if owned.subscriber in names:
            engine.add(owned)
    by_subscriber: dict[str, Any] = {}
    for delivery in engine.publish_many(events):
        by_subscriber.setdefault(delivery.subscriber, []).append(delivery.to_dict())
    return by_subscriber


def run(
    events: Sequence[Event],
    cuts: Sequence[int],
    subscribers: dict[str, Subscriber] | None = None,
    config: BucketSettings | None = None,
) -> list[pa.Table]:
    """Run a bucket over micro-batches with packed state in between, and replay each."""
    matcher = Matcher(SUBSCRIBERS.values(), SUBSCRIPTIONS)
    blob, clock, tables = None, BucketClock(), list[pa.Table]()
    edges = [0, *sorted(cuts), len(events)]
    for begin, end in itertools.pairwise(edges):
        if begin == end:
            continue
        batches, ticks = sent(matcher, events[begin:end], SUBSCRIBERS)
        state = BucketState(
            ListedPolicies.of(subscribers or SUBSCRIBERS), config or BucketSettings(), blob, clock
        )
        ran, again = (run_isolated(state, BucketInput(batches, ticks, [], [])) for _ in range(2))
        assert ran.outcomes.equals(again.outcomes)
        blob, clock = ran.bucket.pack(), BucketClock.unpack(ran.bucket.clock.pack())
        tables.append(ran.outcomes)
    return tables


def letters(tables: Sequence[pa.Table]) -> list[tuple[Any, str]]:
    dead = [row for table in tables for row in rows(table, "dead")]
    return [(json.loads(row["record"]), row["reason"]) for row in dead]


@pytest.mark.parametrize("seed", range(4))
def test_a_subscriber_whose_distance_fails_is_set_aside_and_the_others_go_on(seed: int) -> None:
    chance = Random(seed)
    cuts = [] if seed == 0 else [chance.randrange(24) for _ in range(seed * 2)]
    tables = run(EVENTS, cuts)
    got = deliveries(tables)
    fine = ["ann", "bob", "cat", "eve"]  # no event that eve matches fails
    assert {name: got.get(name) for name in fine} == by_engine(fine, EVENTS)
    [(record, reason)] = letters(tables)
    assert record == {"subscriber": "dan"}
    assert "'dan' is set aside" in reason
    assert "ZeroDivisionError: a distance of zero" in reason
    assert all(each["event"] < "e06" for each in got.get("dan", []))


@settings(max_examples=cases(25), deadline=None)
@given(st.lists(st.integers(0, 24), max_size=8), st.integers(0, 6))
def test_any_split_into_batches_delivers_the_same_and_names_the_same_culprit(
    cuts: list[int], lateness: int
) -> None:
    config = BucketSettings(lateness_us=lateness)
    tables, whole = (run(EVENTS, some, config=config) for some in (cuts, []))
    fine = ["ann", "bob", "cat", "eve"]
    got, expected = deliveries(tables), deliveries(whole)
    assert {name: got.get(name) for name in fine} == {name: expected.get(name) for name in fine}
    assert sorted(map(str, letters(tables))) == sorted(map(str, letters(whole)))
    assert len(letters(tables)) == 1


def test_a_distance_derived_from_a_built_in_one_is_not_mistaken_for_it() -> None:
    """Both have the same name and parameters and differ only in their classes."""
    same = {
        name: Subscriber(name, Policy(k=2, window=Sliding(4), diversify=part))
        for name, part in {"ann": DivRank(), "dan": BRITTLE, "eve": OTHER}.items()
    }
    blob, clock, tables = None, BucketClock(), list[pa.Table]()
    matcher = Matcher(same.values(), [each for each in SUBSCRIPTIONS if each.subscriber in same])
    for some in (EVENTS[:10], EVENTS[10:]):
        state = BucketState(ListedPolicies.of(same), BucketSettings(), blob, clock)
        ran = run_isolated(state, BucketInput(*sent(matcher, some, same), [], []))
        blob, clock = ran.bucket.pack(), BucketClock.unpack(ran.bucket.clock.pack())
        tables.append(ran.outcomes)
    assert [record for record, _ in letters(tables)] == [{"subscriber": "dan"}]
    engine = Engine()
    for each in same.values():
        engine.subscribe(each)
        engine.add(next(owned for owned in SUBSCRIPTIONS if owned.subscriber == each.id))
    expected: dict[str, Any] = {}
    for delivery in engine.publish_many(EVENTS):
        expected.setdefault(delivery.subscriber, []).append(delivery.to_dict())
    got = deliveries(tables)
    assert {name: got[name] for name in ("ann", "eve")} == {
        name: expected[name] for name in ("ann", "eve")
    }
    with pytest.raises(InvalidPolicy, match=r"Brittle' is not registered, so it has no JSON form"):
        same["dan"].policy.to_dict()


def test_a_subscriber_whose_policy_opens_no_feed_is_set_aside() -> None:
    subscribers = SUBSCRIBERS | {"dan": Subscriber("dan", Policy(window=closed_window()))}
    tables = run(EVENTS, [5, 9], subscribers)
    [(record, reason)] = letters(tables)
    assert record == {"subscriber": "dan"}
    assert "LookupError: no window" in reason
    got, fine = deliveries(tables), ["ann", "bob", "cat", "eve"]
    assert {name: got.get(name) for name in fine} == by_engine(fine, EVENTS)


def test_a_removed_subscriber_is_no_longer_set_aside() -> None:
    matcher = Matcher(SUBSCRIBERS.values(), SUBSCRIPTIONS)
    inputs = [
        BucketInput(*sent(matcher, some, SUBSCRIBERS), [], [])
        for some in (EVENTS[:12], EVENTS[12:])
    ]
    ran = run_isolated(
        BucketState(ListedPolicies.of(SUBSCRIBERS), BucketSettings(), None, BucketClock()),
        inputs[0],
    )
    assert ran.bucket.aside.keys() == {"dan"}
    fewer = {name: each for name, each in SUBSCRIBERS.items() if name != "dan"}
    clock = BucketClock.unpack(ran.bucket.clock.pack())
    later = run_isolated(
        BucketState(ListedPolicies.of(fewer), BucketSettings(), ran.bucket.pack(), clock), inputs[1]
    )
    assert not later.bucket.aside


def test_a_subscriber_set_aside_returns_with_another_policy() -> None:
    matcher = Matcher(SUBSCRIBERS.values(), SUBSCRIPTIONS)
    first, later = (
        BucketInput(*sent(matcher, some, SUBSCRIBERS), [], [])
        for some in (EVENTS[:12], EVENTS[12:])
    )
    ran = run_isolated(
        BucketState(ListedPolicies.of(SUBSCRIBERS), BucketSettings(), None, BucketClock()), first
    )
    assert ran.bucket.aside.keys() == {"dan"}
    blob, clock = ran.bucket.pack(), BucketClock.unpack(ran.bucket.clock.pack())
    same = run_isolated(
        BucketState(ListedPolicies.of(SUBSCRIBERS), BucketSettings(), blob, clock), later
    )
    assert "dan" not in deliveries([same.outcomes])
    assert not letters([same.outcomes])
    changed = SUBSCRIBERS | {"dan": Subscriber("dan", Policy(k=1))}
    other = run_isolated(
        BucketState(ListedPolicies.of(changed), BucketSettings(), blob, clock), later
    )
    assert deliveries([other.outcomes])["dan"]
    assert not other.bucket.aside


def test_an_event_that_built_in_policies_cannot_take_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    add_many = EventHashes.add_many

    def failing(self: EventHashes, events: Sequence[Event]) -> Any:
        if any(event.id in ("e03", "e17") for event in events):
            raise TypeError("unforeseen")
        return add_many(self, events)

    monkeypatch.setattr(EventHashes, "add_many", failing)
    names = ["ann", "bob", "cat"]
    few = {name: SUBSCRIBERS[name] for name in names}
    for cuts in ([], [2, 4, 15], range(24)):
        tables = run(EVENTS, list(cuts), few)
        assert sorted((record["id"], reason) for record, reason in letters(tables)) == [
            (name, "the event cannot be compared with others: TypeError: unforeseen")
            for name in ("e03", "e17")
        ]
        others = [event for event in EVENTS if event.id not in ("e03", "e17")]
        assert deliveries(tables)["bob"] == by_engine(names, others)["bob"]


def test_a_failure_that_no_item_causes_stops_the_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def failing(*_: object) -> Any:
        raise OSError("the disk is gone")

    monkeypatch.setattr("tidings.spark.state_stage.bucket.hash_ids", failing)
    state = BucketState(ListedPolicies.of(SUBSCRIBERS), BucketSettings(), None, BucketClock())
    with pytest.raises(OSError, match="the disk is gone"):
        run_isolated(state, BucketInput([], [], [], []))


LINES = [json.dumps(event.to_dict()).encode() for event in EVENTS]
BAD_LINES = [
    b'{"id": "range", "published_at": 1, "attributes": {"t": {"range": [{"time": 1}, [2]]}}}',
    b'{"id": "\xff\xfe", "published_at": 1, "attributes": {}}',
    b"[" * 50_000,
    b'{"id": "big", "published_at": 1, "attributes": {"n": ' + b"9" * 5_000 + b"}}",
    b'{"id": "\\ud800", "published_at": 1, "attributes": {}}',
    b'{"id": ["e"], "published_at": 1, "attributes": {"n": {}}}',
    b'{"id": "far", "published_at": "9999-12-31T23:59:59Z", "attributes": {"n": 1}}',
    b"null",
]


def parquet(spark: SparkSession, folder: Path) -> list[dict[str, Any]]:
    if not folder.exists():
        return []
    return [row.asDict() for row in spark.read.parquet(f"{folder}/batch=*").collect()]


@pytest.mark.spark
def test_a_stream_goes_on_despite_poison_records_and_subscribers(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The stream is stopped in the middle and resumes from its checkpoint."""
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    lost = Subscriber("fay", Policy(k=2, scorer=Relaxed(brittle_aggregate())))
    owned = [*SUBSCRIPTIONS, Subscription("sfay", "fay", any=[("n >= 0", 1.0), ("n = 9", 1.0)])]

    def resume() -> None:
        stream = spark.readStream.option("maxFilesPerTrigger", 1).text(str(source))
        rows = outcomes(stream, owned, [*SUBSCRIBERS.values(), lost], buckets=2)
        writer = rows.writeStream.foreachBatch(parquet_sink(out)).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        query.awaitTermination()

    for part in range(2):
        body = [*LINES[12 * part : 12 * part + 12], *BAD_LINES]
        (source / f"{part}.jsonl").write_bytes(b"\n".join(body) + b"\n")
        resume()
    got: dict[str, Any] = {}
    for row in sorted(parquet(spark, out / "deliveries"), key=lambda each: each["sequence"]):
        got.setdefault(row["subscriber"], []).append(row["event"])
    fine = ["ann", "bob", "cat", "eve"]
    expected = {
        name: [delivery["event"] for delivery in delivered]
        for name, delivered in by_engine(fine, EVENTS).items()
    }
    assert {name: got.get(name) for name in fine} == expected
    dead = parquet(spark, out / "dead_letters")
    reasons = [row["reason"] for row in dead]
    aside = [reason for reason in reasons if "'dan' is set aside" in reason]
    assert len(aside) == 1
    assert (
        len([reason for reason in reasons if "subscriber 'fay' did not get event 'e09'" in reason])
        == 1
    )
    assert len([reason for reason in reasons if "ahead of the clock" in reason]) == 2
    assert len(dead) == 2 * len(BAD_LINES) + 2
    assert not parquet(spark, out / "late")
