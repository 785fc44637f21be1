"""Buckets without Spark: any split into batches delivers the same as the engine."""

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.streams import DIVERSIFIERS, WINDOWS, plain_or_diverse, policies
from tests.spark.match_stage.match_batches import deliveries, match_batch, rows, sent

from tidings import Delivery, Engine, Event, TidingsError
from tidings.errors import StateError
from tidings.formats.arrow import read_events
from tidings.index_files.manifest import RefusedRecord
from tidings.model.records import Match, Subscription, publication_order
from tidings.policy import Policy, Subscriber
from tidings.rank.matcher import Matcher
from tidings.spark.match_stage.stage import bucket_of
from tidings.spark.state_stage.bucket import FRAME, Bucket, BucketSettings, IdMemory, hash_ids
from tidings.spark.state_stage.outcomes import DELIVERED
from tidings.spark.state_stage.policies import ListedPolicies
from tidings.spark.state_stage.processor import BucketRunner
from tidings.spark.state_stage.watermark import BucketClock, Tick
from tidings.testing import Workload, workload
from tidings.window import HOLD_US

BUCKETS = 3
FAR = 10**6
"""Seconds after the end of every stream here."""


def by_engine(work: Workload, lateness: str = "0s", until: int | None = None) -> dict[str, Any]:
    engine = Engine(lateness)
    for subscriber in work.subscribers:
        engine.subscribe(subscriber)
    for subscription in work.subscriptions:
        engine.add(subscription)
    delivered = engine.publish_many(work.events)
    if until is not None:
        delivered += engine.advance(until)
    by_subscriber: dict[str, Any] = {}
    for delivery in delivered:
        by_subscriber.setdefault(delivery.subscriber, []).append(Delivery.to_dict(delivery))
    return by_subscriber


def split(events: list[Any], chance: Random) -> Iterator[list[Any]]:
    while events:
        size = chance.randint(1, 12)
        yield events[:size]
        events = events[size:]


Packed = tuple[bytes, bytes]
"""State and clock of a bucket."""


def run_batch(
    states: dict[int, Packed],
    number: int,
    bucket: Bucket,
    inputs: tuple[list[Any], list[Tick]],
) -> list[pa.Table]:
    """Run a micro-batch as the state operator does; ticks alone move only the clock."""
    batches, ticks = inputs
    if number in states:
        blob, clock = states[number][0], BucketClock.unpack(states[number][1])
        moved = None if batches else clock.after(ticks, bucket._settings.lateness_us)
        if moved is not None:
            states[number] = (blob, moved.pack())
            return []
        bucket.unpack(blob, clock)
    table = bucket.run(batches, ticks)
    states[number] = (bucket.pack(), bucket.clock.pack())
    return [table]


def outcomes(
    work: Workload, config: BucketSettings | None = None, seed: int = 1, until: int | None = None
) -> list[pa.Table]:
    """Run the stages as Spark does: micro-batches of Arrow batches, state packed in between."""
    chance, config = Random(seed), config or BucketSettings()
    matcher = Matcher(work.subscribers, work.subscriptions)
    homes = [bucket_of(subscriber.id, BUCKETS) for subscriber in work.subscribers]
    states: dict[int, Packed] = {}
    tables: list[pa.Table] = []

    def run(number: int, batches: list[Any], ticks: list[Tick]) -> None:
        bucket = Bucket(ListedPolicies.of(matcher.subscribers), config)
        tables.extend(run_batch(states, number, bucket, (batches, ticks)))

    for batch in split(work.events, chance):
        arrow = list(split(batch, chance))
        chance.shuffle(arrow)
        for number in set(homes):
            own = [s.id for s, home in zip(work.subscribers, homes, strict=True) if home == number]
            inputs = [sent(matcher, events, own) for events in arrow]
            run(number, [b for bs, _ in inputs for b in bs], [t for _, ts in inputs for t in ts])
    if until is not None:
        for number in states:
            run(number, [], [Tick(until * 1_000_000, 0)])
    return tables


@pytest.mark.parametrize("seed", range(12))
def test_every_policy_delivers_as_the_engine_does(seed: int) -> None:
    work = workload(seed, events=60)
    assert deliveries(outcomes(work, seed=seed)) == by_engine(work)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("only_deliveries", [False, True])
def test_a_batch_that_is_alone_delivers_as_the_engine_does(
    seed: int, *, only_deliveries: bool
) -> None:
    work = workload(seed, events=60)
    matcher = Matcher(work.subscribers, work.subscriptions)
    names = [subscriber.id for subscriber in work.subscribers]
    parts = [*split(work.events, Random(seed)), work.events[:9]]  # of which some are repeated
    inputs = [sent(matcher, events, names) for events in parts]
    rows = [
        {
            "kind": "matches",
            "published_us": tick.us,
            "sequence": tick.sequence,
            "body": batch.pack(),
        }
        for batches, [tick] in inputs
        for batch in batches
    ]
    alone = BucketSettings(alone=True)
    policies = ListedPolicies.of(matcher.subscribers)
    settings = alone._replace(only_deliveries=only_deliveries)
    runner = BucketRunner(policies, settings, read_events)
    table = runner.in_batch()((pa.scalar(0),), pa.Table.from_pylist(rows))
    everything = BucketRunner(policies, alone, read_events).in_batch()
    outcomes = everything((pa.scalar(0),), pa.Table.from_pylist(rows))
    assert deliveries([outcomes]) == by_engine(work)
    repeated = sum(len(batch.events) for batch in inputs[-1][0])
    assert outcomes["kind"].to_pylist().count("dead") == repeated > 0
    if only_deliveries:
        chosen = outcomes.filter(pc.equal(outcomes["kind"], "delivery"))
        assert table.equals(chosen.select(DELIVERED.names).cast(DELIVERED))
    else:
        assert table.equals(outcomes)


@st.composite
def published(draw: st.DrawFn) -> list[Event]:
    """Draw events in order of time, number and id, many of them at equal times."""
    gaps = draw(st.lists(st.sampled_from([0, 0, 1, 1, 2, 7]), max_size=24))
    letters = st.sampled_from("abc")
    events, at = [], 0
    for number, gap in enumerate(gaps, start=1):
        at += gap
        values = {"genre": draw(letters), "mood": draw(letters)}
        events.append(Event(f"{draw(letters)}{number}", values, at, 2 * number))
    return events


@pytest.mark.parametrize("window", WINDOWS)
@settings(max_examples=25)
@given(data=st.data())
def test_every_window_and_diversifier_delivers_the_same_for_any_split(
    window: str, data: st.DataObject
) -> None:
    chosen = policies(WINDOWS[window], plain_or_diverse)
    subscribers = [Subscriber(name, data.draw(chosen)) for name in "uvw"]
    owned = [
        Subscription(f"{name}{letter}", name, where=f"genre = '{letter}'", prefrank=rank)
        for name in "uvw"
        for letter, rank in (("a", 0.4), ("b", 0.8))
    ]
    owned += [Subscription("um", "u", where="mood = 'c'", prefrank=0.8)]
    work = Workload(subscribers, owned, data.draw(published()))
    lateness_s = data.draw(st.sampled_from([0, 3]))
    tables = outcomes(
        work, BucketSettings(lateness_s * 1_000_000), data.draw(st.integers(0, 99)), until=FAR
    )
    assert deliveries(tables) == by_engine(work, f"{lateness_s}s", until=FAR)
    assert not [row for table in tables for kind in ("late", "dead") for row in rows(table, kind)]


def _counts_matches(policy: Policy) -> bool:
    return bool(getattr(policy.window, "count", None) == "matching")


@settings(max_examples=25)
@given(data=st.data())
def test_equal_times_are_put_in_order_for_any_split(data: st.DataObject) -> None:
    # The events have no sequence, so that ids decide; count="published" would need one.
    chosen = policies(WINDOWS["sliding"], plain_or_diverse).filter(_counts_matches)
    subscribers = [Subscriber(name, data.draw(chosen)) for name in "uv"]
    owned = [
        Subscription(f"{name}{letter}", name, where=f"genre = '{letter}'", prefrank=rank)
        for name in "uv"
        for letter, rank in (("a", 0.4), ("b", 0.8))
    ]
    events = [
        Event(event.id, event.attributes, event.published_us // 5_000_000)
        for event in data.draw(published())
    ]
    mixed = sorted(data.draw(st.permutations(events)), key=lambda event: event.published_us)
    tables = outcomes(
        Workload(subscribers, owned, mixed),
        BucketSettings(HOLD_US),
        data.draw(st.integers(0, 99)),
        until=FAR,
    )
    ordered = Workload(subscribers, owned, sorted(events, key=publication_order))
    assert deliveries(tables) == by_engine(ordered, until=FAR)


def test_the_account_counts_every_match() -> None:
    work = workload(3)
    matcher = Matcher(work.subscribers, work.subscriptions)
    matches = [match for event in work.events for match in matcher.matches(event)]
    counted: dict[str, list[Any]] = {}
    for row in (row for table in outcomes(work) for row in rows(table, "account")):
        counts = counted.setdefault(row["subscriber"], [0, 0.0])
        counts[0] += row["position"]
        counts[1] += row["position"] * row["rank"]
    for name, (count, total) in counted.items():
        scores = [match.score for match in matches if match.subscriber == name]
        assert (count, total) == (len(scores), pytest.approx(sum(scores)))
    assert counted.keys() == {match.subscriber for match in matches}


def test_disorder_within_the_lateness_changes_nothing() -> None:
    work = workload(5)
    shuffled = sorted(
        work.events, key=lambda each: (each.published_us // 20_000_000, each.id[::-1])
    )
    disordered = Workload(work.subscribers, work.subscriptions, shuffled)
    tables = outcomes(disordered, BucketSettings(lateness_us=30_000_000), until=FAR)
    assert deliveries(tables) == by_engine(work, "30s", until=FAR)


def test_an_event_from_the_past_is_left_out() -> None:
    work = workload(5)
    old = Event("old", work.events[0].attributes, published_at=-1000, sequence=1)
    tables = outcomes(Workload(work.subscribers, work.subscriptions, [*work.events, old]))
    assert deliveries(tables) == by_engine(work)
    assert not [row for table in tables for row in rows(table, "dead")]


def one_match(name: str, at: float, sequence: int | None = None, score: float = 0.5) -> Any:
    event = Event(name, {}, at, sequence)
    batch = match_batch([event], [[Match("u", event, score, ("s",))]])
    return [batch], [Tick(event.published_us, sequence or 0)]


SLIDING = Policy(k=2, window={"name": "sliding", "length": 3})


def test_a_repeated_event_without_a_form_is_reported_in_short() -> None:
    bucket = Bucket(ListedPolicies.of({"u": Subscriber("u", SLIDING)}))
    [first], ticks = one_match("e", 7.5, 3)
    bucket.run([first], ticks)
    [row] = rows(bucket.run([first._replace(forms=[""])], ticks), "dead")
    short = '{"id": "e", "published_at": "1970-01-01T00:00:07.500000Z", "sequence": 3}'
    assert row["record"] == short


def test_an_event_published_again_is_a_dead_letter_and_is_not_delivered() -> None:
    work = workload(5)
    last = work.events[-1]
    again = [*work.events, last, Event(last.id, last.attributes, 10**5, last.sequence)]
    for seed in range(5):
        tables = outcomes(Workload(work.subscribers, work.subscriptions, again), seed=seed)
        assert deliveries(tables) == by_engine(work, until=10**5)
        reasons = {row["reason"] for table in tables for row in rows(table, "dead")}
        assert reasons == {f"event {last.id!r} was published before"}


@pytest.mark.parametrize("split", [[2], [1, 1]])
def test_a_repeated_id_counts_once_for_any_split(split: list[int]) -> None:
    """Even if it matches another subscriber the second time, at the same time."""
    bucket = Bucket(ListedPolicies.of({name: Subscriber(name, SLIDING) for name in "uv"}))
    event = Event("e", {}, 0)
    waiting = [match_batch([event], [[Match(name, event, 0.5, ("s",))]]) for name in "uv"]
    tables = []
    for size in split:
        tables.append(bucket.run(waiting[:size], [Tick(0, 0)]))
        waiting = waiting[size:]
    assert deliveries(tables).keys() == {"u"}
    dead = [row for table in tables for row in rows(table, "dead")]
    assert [(row["event"], row["reason"]) for row in dead] == [
        ("e", "event 'e' was published before")
    ]


def reopened(bucket: Bucket, config: BucketSettings) -> Bucket:
    """Return a bucket that is opened from the packed state of another."""
    copy = Bucket(ListedPolicies.of({"u": Subscriber("u", SLIDING)}), config)
    copy.unpack(bucket.pack(), bucket.clock)
    return copy


def test_an_id_is_remembered_for_a_while_and_as_long_as_it_is_in_a_window() -> None:
    config = BucketSettings(remember_us=5_000_000)
    bucket = Bucket(ListedPolicies.of({"u": Subscriber("u", SLIDING)}), config)
    assert deliveries([bucket.run(*one_match("a", 0))]).keys() == {"u"}
    for at in range(1, 3):
        bucket.run(*one_match(f"e{at}", 10 * at))
    bucket = reopened(bucket, config)
    assert len(bucket.ids) == 1
    assert len(rows(bucket.run(*one_match("a", 30)), "dead")) == 1
    for at in range(4, 8):
        bucket.run(*one_match(f"e{at}", 10 * at, score=0.9))
    bucket = reopened(bucket, config)
    assert not rows(bucket.run(*one_match("a", 80)), "dead")


def test_a_bad_record_is_a_dead_letter_and_the_rest_is_delivered() -> None:
    letter = b'{"record": {"id": "x"}, "reason": "no time", "position": 3}'
    batches, ticks = one_match("a", 0)
    table = Bucket(ListedPolicies.of({"u": Subscriber("u", SLIDING)})).run(batches, ticks, [letter])
    assert [row["reason"] for row in rows(table, "dead")] == ["no time"]
    assert deliveries([table]).keys() == {"u"}


def test_a_user_defined_distance_is_looked_up_in_the_policies() -> None:
    work = workload(5)
    subscribers = [
        Subscriber(each.id, Policy(k=2, window=each.policy.window, diversify=part))
        for each, part in zip(work.subscribers, 5 * DIVERSIFIERS["own"], strict=False)
    ]
    names = {subscriber.id for subscriber in subscribers}
    owned = [
        subscription for subscription in work.subscriptions if subscription.subscriber in names
    ]
    diverse = Workload(subscribers, owned, work.events)
    delivered = deliveries(outcomes(diverse, until=FAR))
    assert delivered == by_engine(diverse, until=FAR)
    assert len(delivered) > 3


def test_state_of_another_version_is_refused() -> None:
    blob, at = bytearray(Bucket(ListedPolicies.of({})).pack()), len(FRAME.mark)
    blob[at] = 99
    with pytest.raises(TidingsError, match="has version 99, but this release reads"):
        Bucket(ListedPolicies.of({})).unpack(bytes(blob), BucketClock())
    with pytest.raises(TidingsError, match="not the state of a bucket"):
        Bucket(ListedPolicies.of({})).unpack(b"x\\x9c", BucketClock())


def test_state_of_another_number_of_buckets_is_refused() -> None:
    with pytest.raises(TidingsError, match="has 8 buckets, but the option buckets is 4"):
        Bucket(ListedPolicies.of({}), BucketSettings(buckets=4)).unpack(
            Bucket(ListedPolicies.of({}), BucketSettings(buckets=8)).pack(), BucketClock()
        )


def test_the_bucket_of_a_name_is_the_same_in_every_process() -> None:
    assert [bucket_of(name, 8) for name in ("addison", "carson", "bob")] == [1, 3, 0]


def test_a_state_holds_any_version_of_policies() -> None:
    """That of a store is a fingerprint of 64 bits in front of a version."""
    policies = {"ann": Policy()}
    for version in (0, 1, (1 << 64) - 1, 1 << 64, (1 << 128) - 1):
        blob = Bucket(ListedPolicies(policies, version)).pack()
        Bucket(ListedPolicies(policies, 1)).unpack(blob, BucketClock())


@pytest.mark.parametrize("aside", [{"ann": [1]}, {"ann": ["1", "why"]}, {"ann": [1, 2]}])
def test_a_state_with_a_damaged_reason_is_refused(aside: dict[str, Any]) -> None:
    header, columns = FRAME.unpack(Bucket(ListedPolicies.of({"ann": Subscriber("ann")})).pack())
    blob = FRAME.pack(header | {"aside": aside}, columns)
    with pytest.raises(StateError, match="entry of 'ann' is not a fingerprint and a reason"):
        Bucket(ListedPolicies.of({"ann": Subscriber("ann")})).unpack(blob, BucketClock())


def test_a_refused_record_is_a_dead_letter_once_until_it_is_refused_again() -> None:
    """Each batch is run on the packed state of the one before."""
    poison = RefusedRecord("subscription", "s1", "ann", "subscription s1: no such operator")
    other = poison._replace(reason="the condition is empty")
    states: list[Packed] = []

    def reasons(*refused: RefusedRecord) -> list[str]:
        bucket = Bucket(ListedPolicies.of({}))
        if states:
            bucket.unpack(states[-1][0], BucketClock.unpack(states[-1][1]))
        table = bucket.run([], [Tick(len(states), 0)], refused=refused)
        states.append((bucket.pack(), bucket.clock.pack()))
        return [row["reason"] for row in table.to_pylist() if row["kind"] == "dead"]

    left_out = "subscription 's1' of the store is left out: "
    assert reasons() == []
    assert reasons(poison) == [left_out + "no such operator"]
    assert reasons(poison) == []
    assert reasons(other) == [left_out + "the condition is empty"]
    assert reasons() == []
    assert reasons(other) == [left_out + "the condition is empty"]


@pytest.mark.parametrize("reported", ["text", [1.5], {"1": 1}, [True]])
def test_damaged_fingerprints_of_refused_records_are_refused(reported: Any) -> None:
    bucket = Bucket(ListedPolicies.of({}))
    bucket.reported = reported
    with pytest.raises(StateError, match="reported records"):
        Bucket(ListedPolicies.of({})).unpack(bucket.pack(), bucket.clock)


steps = st.lists(st.tuples(st.text("abc", max_size=2), st.integers(0, 9)), max_size=12)


@given(st.lists(steps, max_size=6), st.integers(0, 6), st.integers(1, 4))
def test_it_contains_what_a_dict_contains(
    batches: list[list[tuple[str, int]]], remember_us: int, capacity: int
) -> None:
    memory, model, watermark = IdMemory(remember_us, capacity), dict[str, int](), 0
    for batch in batches:
        ids = [name for name, _ in batch]
        assert memory.contains(hash_ids(ids)).tolist() == [name in model for name in ids]
        new = {name: us for name, us in batch if name not in model}
        memory.add(hash_ids(list(new)), np.array(list(new.values()), np.int64))
        model |= new
        watermark = max([watermark, *(us for _, us in batch)])
        memory.forget(watermark)
        model = {name: us for name, us in model.items() if us >= watermark - remember_us}
        old = sorted((us for us in model.values() if us < watermark), reverse=True)
        if len(old) > capacity:
            model = {name: us for name, us in model.items() if us >= old[capacity - 1]}
        assert len(memory) == len(model)
        again = IdMemory(remember_us, capacity)
        again.restore(memory.columns())
        memory = again


def test_an_id_takes_24_bytes() -> None:
    memory = IdMemory(10)
    memory.add(hash_ids([f"e{number}" for number in range(100)]), np.zeros(100, np.int64))
    assert sum(column.nbytes for column in memory.columns().values()) == 2400


def test_the_hash_of_an_id_is_the_same_in_every_process() -> None:
    assert hash_ids(["e1"]).tolist() == [[16098416777067027887, 17188825020323765635]]
    assert hash_ids([]).shape == (0, 2)
