"""Buckets and streams go on beside poison events and poison subscribers, and name the culprits."""

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
from tidings.diversify.event_hashes import EventHashes
from tidings.errors import InvalidPolicy
from tidings.rank.matcher import Matcher
from tidings.score.relaxed import Relaxed
from tidings.spark import outcomes
from tidings.spark.sinks.parquet import parquet_sink
from tidings.spark.state_stage.bucket import Terms
from tidings.spark.state_stage.isolation import Opening, Sent, run_isolated
from tidings.spark.state_stage.policies import roster
from tidings.spark.state_stage.progress_mark import Pulse


def brittle_distance() -> Any:
    """Return a distance of a user that fails for some events; workers get it by value."""

    @dataclass(frozen=True)
    class Brittle(Overlap):
        def between(self, one: Event, other: Event) -> float:
            if 6 in (one.attributes["n"], other.attributes["n"]):
                raise ZeroDivisionError("a distance of zero")
            return 1.0

    return Brittle()


def other_distance() -> Any:
    """Return a distance by which all events are equally far apart, also called Brittle."""

    @dataclass(frozen=True)
    class Brittle(Overlap):
        def between(self, one: Event, other: Event) -> float:
            return 0.25

    return Brittle()


def closed_window() -> Any:
    """Return a window of a user that cannot be opened."""

    @dataclass(frozen=True)
    class Closed(Sliding):
        def open(self, *given: Any) -> Any:
            raise LookupError("no window")

    return Closed(4)


def brittle_aggregate() -> Any:
    """Return an aggregate of a user that fails where both predicates hold."""

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
WANTED = [
    Subscription(f"s{each.id}", each.id, "n >= 10" if each.id == "eve" else "n >= 0", prefrank=0.5)
    for each in [*GOOD, *POISON]
]
PEOPLE = {each.id: each for each in [*GOOD, *POISON]}


def by_engine(names: Sequence[str], events: Sequence[Event]) -> dict[str, Any]:
    engine = Engine()
    for name in names:
        engine.subscribe(PEOPLE[name])
    for wish in WANTED:
        if wish.subscriber in names:
            engine.add(wish)
    found: dict[str, Any] = {}
    for each in engine.publish_many(events):
        found.setdefault(each.subscriber, []).append(each.to_dict())
    return found


def run(
    events: Sequence[Event],
    cuts: Sequence[int],
    people: dict[str, Subscriber] | None = None,
    terms: Terms | None = None,
) -> list[pa.Table]:
    """Run a bucket over micro-batches, packed in between, with a replay of each."""
    matcher = Matcher(PEOPLE.values(), WANTED)
    blob, pulse, found = None, Pulse(), list[pa.Table]()
    edges = [0, *sorted(cuts), len(events)]
    for begin, end in itertools.pairwise(edges):
        if begin == end:
            continue
        parcels, ticks = sent(matcher, events[begin:end], PEOPLE)
        opening = Opening(roster(people or PEOPLE), terms or Terms(), blob, pulse)
        ran, again = (run_isolated(opening, Sent(parcels, ticks, [], [])) for _ in range(2))
        assert ran.outcomes.equals(again.outcomes)
        blob, pulse = ran.bucket.pack(), Pulse.unpack(ran.bucket.pulse.pack())
        found.append(ran.outcomes)
    return found


def letters(found: Sequence[pa.Table]) -> list[tuple[Any, str]]:
    dead = [row for table in found for row in rows(table, "dead")]
    return [(json.loads(row["record"]), row["reason"]) for row in dead]


@pytest.mark.parametrize("seed", range(4))
def test_a_subscriber_whose_distance_fails_is_set_aside_and_the_others_go_on(seed: int) -> None:
    chance = Random(seed)
    cuts = [] if seed == 0 else [chance.randrange(24) for _ in range(seed * 2)]
    found = run(EVENTS, cuts)
    got = deliveries(found)
    fine = ["ann", "bob", "cat", "eve"]  # what eve wants never fails
    assert {name: got.get(name) for name in fine} == by_engine(fine, EVENTS)
    [(record, reason)] = letters(found)
    assert record == {"subscriber": "dan"}
    assert "'dan' is set aside" in reason
    assert "ZeroDivisionError: a distance of zero" in reason
    assert all(each["event"] < "e06" for each in got.get("dan", []))


@settings(max_examples=cases(25), deadline=None)
@given(st.lists(st.integers(0, 24), max_size=8), st.integers(0, 6))
def test_any_split_into_batches_delivers_the_same_and_names_the_same(
    cuts: list[int], lateness: int
) -> None:
    terms = Terms(lateness_us=lateness)
    found, whole = (run(EVENTS, some, terms=terms) for some in (cuts, []))
    fine = ["ann", "bob", "cat", "eve"]
    got, expected = deliveries(found), deliveries(whole)
    assert {name: got.get(name) for name in fine} == {name: expected.get(name) for name in fine}
    assert sorted(map(str, letters(found))) == sorted(map(str, letters(whole)))
    assert len(letters(found)) == 1


def test_a_distance_derived_from_a_built_in_one_is_never_taken_for_it() -> None:
    """Both have the same name and parameters, so that only their classes tell them apart."""
    same = {
        name: Subscriber(name, Policy(k=2, window=Sliding(4), diversify=part))
        for name, part in {"ann": DivRank(), "dan": BRITTLE, "eve": OTHER}.items()
    }
    blob, pulse, found = None, Pulse(), list[pa.Table]()
    matcher = Matcher(same.values(), [each for each in WANTED if each.subscriber in same])
    for some in (EVENTS[:10], EVENTS[10:]):
        opening = Opening(roster(same), Terms(), blob, pulse)
        ran = run_isolated(opening, Sent(*sent(matcher, some, same), [], []))
        blob, pulse = ran.bucket.pack(), Pulse.unpack(ran.bucket.pulse.pack())
        found.append(ran.outcomes)
    assert [record for record, _ in letters(found)] == [{"subscriber": "dan"}]
    engine = Engine()
    for each in same.values():
        engine.subscribe(each)
        engine.add(next(wish for wish in WANTED if wish.subscriber == each.id))
    expected: dict[str, Any] = {}
    for delivery in engine.publish_many(EVENTS):
        expected.setdefault(delivery.subscriber, []).append(delivery.to_dict())
    got = deliveries(found)
    assert {name: got[name] for name in ("ann", "eve")} == {
        name: expected[name] for name in ("ann", "eve")
    }
    with pytest.raises(InvalidPolicy, match=r"Brittle' is not registered, so it has no written"):
        same["dan"].policy.to_dict()


def test_who_has_a_policy_that_opens_no_feed_is_set_aside() -> None:
    people = PEOPLE | {"dan": Subscriber("dan", Policy(window=closed_window()))}
    found = run(EVENTS, [5, 9], people)
    [(record, reason)] = letters(found)
    assert record == {"subscriber": "dan"}
    assert "LookupError: no window" in reason
    got, fine = deliveries(found), ["ann", "bob", "cat", "eve"]
    assert {name: got.get(name) for name in fine} == by_engine(fine, EVENTS)


def test_who_is_gone_is_not_remembered_as_set_aside() -> None:
    matcher = Matcher(PEOPLE.values(), WANTED)
    sends = [Sent(*sent(matcher, some, PEOPLE), [], []) for some in (EVENTS[:12], EVENTS[12:])]
    ran = run_isolated(Opening(roster(PEOPLE), Terms(), None, Pulse()), sends[0])
    assert ran.bucket.aside.keys() == {"dan"}
    fewer = {name: each for name, each in PEOPLE.items() if name != "dan"}
    pulse = Pulse.unpack(ran.bucket.pulse.pack())
    later = run_isolated(Opening(roster(fewer), Terms(), ran.bucket.pack(), pulse), sends[1])
    assert not later.bucket.aside


def test_who_is_set_aside_comes_back_with_another_policy() -> None:
    matcher = Matcher(PEOPLE.values(), WANTED)
    first, later = (
        Sent(*sent(matcher, some, PEOPLE), [], []) for some in (EVENTS[:12], EVENTS[12:])
    )
    ran = run_isolated(Opening(roster(PEOPLE), Terms(), None, Pulse()), first)
    assert ran.bucket.aside.keys() == {"dan"}
    blob, pulse = ran.bucket.pack(), Pulse.unpack(ran.bucket.pulse.pack())
    same = run_isolated(Opening(roster(PEOPLE), Terms(), blob, pulse), later)
    assert "dan" not in deliveries([same.outcomes])
    assert not letters([same.outcomes])
    changed = PEOPLE | {"dan": Subscriber("dan", Policy(k=1))}
    other = run_isolated(Opening(roster(changed), Terms(), blob, pulse), later)
    assert deliveries([other.outcomes])["dan"]
    assert not other.bucket.aside


def test_an_event_that_built_in_policies_cannot_take_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    add_many = EventHashes.add_many

    def failing(self: EventHashes, events: Sequence[Event]) -> Any:
        if any(each.id in ("e03", "e17") for each in events):
            raise TypeError("nobody foresaw this")
        return add_many(self, events)

    monkeypatch.setattr(EventHashes, "add_many", failing)
    names = ["ann", "bob", "cat"]
    few = {name: PEOPLE[name] for name in names}
    for cuts in ([], [2, 4, 15], range(24)):
        found = run(EVENTS, list(cuts), few)
        assert sorted((record["id"], reason) for record, reason in letters(found)) == [
            (name, "the event cannot be compared with others: TypeError: nobody foresaw this")
            for name in ("e03", "e17")
        ]
        others = [each for each in EVENTS if each.id not in ("e03", "e17")]
        assert deliveries(found)["bob"] == by_engine(names, others)["bob"]


def test_what_fails_for_nobody_in_particular_stops_the_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def failing(*_: object) -> Any:
        raise OSError("the disk is gone")

    monkeypatch.setattr("tidings.spark.state_stage.bucket.merge", failing)
    opening = Opening(roster(PEOPLE), Terms(), None, Pulse())
    with pytest.raises(OSError, match="the disk is gone"):
        run_isolated(opening, Sent([], [], [], []))


LINES = [json.dumps(each.to_dict()).encode() for each in EVENTS]
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
def test_a_stream_goes_on_beside_poison_records_and_poison_subscribers(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The stream is stopped in the middle and goes on from its checkpoint."""
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    lost = Subscriber("fay", Policy(k=2, scorer=Relaxed(brittle_aggregate())))
    wanted = [*WANTED, Subscription("sfay", "fay", any=[("n >= 0", 1.0), ("n = 9", 1.0)])]

    def go_on() -> None:
        stream = spark.readStream.option("maxFilesPerTrigger", 1).text(str(source))
        found = outcomes(stream, wanted, [*PEOPLE.values(), lost], buckets=2)
        writer = found.writeStream.foreachBatch(parquet_sink(out)).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        query.awaitTermination()

    for part in range(2):
        body = [*LINES[12 * part : 12 * part + 12], *BAD_LINES]
        (source / f"{part}.jsonl").write_bytes(b"\n".join(body) + b"\n")
        go_on()
    got: dict[str, Any] = {}
    for row in sorted(parquet(spark, out / "deliveries"), key=lambda each: each["sequence"]):
        got.setdefault(row["subscriber"], []).append(row["event"])
    fine = ["ann", "bob", "cat", "eve"]
    expected = {
        name: [each["event"] for each in made] for name, made in by_engine(fine, EVENTS).items()
    }
    assert {name: got.get(name) for name in fine} == expected
    dead = parquet(spark, out / "dead_letters")
    reasons = [row["reason"] for row in dead]
    aside = [reason for reason in reasons if "'dan' is set aside" in reason]
    assert len(aside) == 1
    assert (
        len([each for each in reasons if "subscriber 'fay' did not get event 'e09'" in each]) == 1
    )
    assert len([each for each in reasons if "ahead of the clock" in each]) == 2
    assert len(dead) == 2 * len(BAD_LINES) + 2
    assert not parquet(spark, out / "late")
