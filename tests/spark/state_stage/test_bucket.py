"""The stages of the Spark path without Spark: any split into batches delivers the same."""

from collections.abc import Iterator
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feed.streams import DIVERSIFIERS, WINDOWS, plain_or_diverse, policies
from tests.spark.match_stage.match_batches import deliveries, parcel, rows, sent

from tidings import Delivery, Engine, Event, TidingsError
from tidings.errors import StateError
from tidings.model.records import Match, Subscription
from tidings.policy import Policy, Subscriber
from tidings.rank.matcher import Matcher
from tidings.spark.match_stage.stage import bucket_of
from tidings.spark.state_stage.bucket import FRAME, Bucket, Terms
from tidings.spark.state_stage.clock_marks import Tick
from tidings.spark.state_stage.policies import Listed
from tidings.spark.state_stage.progress_mark import Pulse
from tidings.testing import Workload, workload

BUCKETS = 3
FAR = 10**6
"""Seconds after the end of every stream here."""


def by_engine(work: Workload, lateness: str = "0s", until: int | None = None) -> dict[str, Any]:
    engine = Engine(lateness)
    for subscriber in work.subscribers:
        engine.subscribe(subscriber)
    for subscription in work.subscriptions:
        engine.add(subscription)
    made = engine.publish_many(work.events)
    if until is not None:
        made += engine.advance(until)
    found: dict[str, Any] = {}
    for each in made:
        found.setdefault(each.subscriber, []).append(Delivery.to_dict(each))
    return found


def split(events: list[Any], chance: Random) -> Iterator[list[Any]]:
    while events:
        size = chance.randint(1, 12)
        yield events[:size]
        events = events[size:]


Kept = tuple[bytes, bytes]


def taken(
    kept: dict[int, Kept], number: int, bucket: Bucket, given: tuple[list[Any], list[Tick]]
) -> list[pa.Table]:
    """Take a micro-batch as the state operator does: ticks alone touch the pulse, if they can."""
    parcels, ticks = given
    if number in kept:
        blob, pulse = kept[number][0], Pulse.unpack(kept[number][1])
        rested = None if parcels else pulse.after(ticks, bucket._terms.lateness_us)
        if rested is not None:
            kept[number] = (blob, rested.pack())
            return []
        bucket.unpack(blob, pulse)
    found = bucket.run(parcels, ticks)
    kept[number] = (bucket.pack(), bucket.pulse.pack())
    return [found]


def outcomes(
    work: Workload, terms: Terms | None = None, seed: int = 1, until: int | None = None
) -> list[pa.Table]:
    """Run the stages as Spark does: micro-batches of Arrow batches, packed away in between."""
    chance, terms = Random(seed), terms or Terms()
    matcher = Matcher(work.subscribers, work.subscriptions)
    places = [bucket_of(each.id, BUCKETS) for each in work.subscribers]
    kept: dict[int, Kept] = {}
    found: list[pa.Table] = []

    def run(number: int, parcels: list[Any], ticks: list[Tick]) -> None:
        found.extend(taken(kept, number, Bucket(matcher.subscribers, terms), (parcels, ticks)))

    for batch in split(work.events, chance):
        arrow = list(split(batch, chance))
        chance.shuffle(arrow)
        for number in set(places):
            mine = [s.id for s, at in zip(work.subscribers, places, strict=True) if at == number]
            both = [sent(matcher, events, mine) for events in arrow]
            run(number, [p for ps, _ in both for p in ps], [t for _, ts in both for t in ts])
    if until is not None:
        for number in kept:
            run(number, [], [Tick(until * 1_000_000, 0)])
    return found


@pytest.mark.parametrize("seed", range(12))
def test_every_policy_delivers_what_the_engine_delivers(seed: int) -> None:
    work = workload(seed, events=60)
    assert deliveries(outcomes(work, seed=seed)) == by_engine(work)


@st.composite
def published(draw: st.DrawFn) -> list[Event]:
    """Events in order of time, number and id, many of them at equal times."""
    gaps = draw(st.lists(st.sampled_from([0, 0, 1, 1, 2, 7]), max_size=24))
    letters = st.sampled_from("abc")
    found, at = [], 0
    for number, gap in enumerate(gaps, start=1):
        at += gap
        values = {"genre": draw(letters), "mood": draw(letters)}
        found.append(Event(f"{draw(letters)}{number}", values, at, 2 * number))
    return found


@pytest.mark.parametrize("window", WINDOWS)
@settings(max_examples=25)
@given(data=st.data())
def test_every_window_and_diversifier_delivers_the_same_whatever_the_split(
    window: str, data: st.DataObject
) -> None:
    chosen = policies(WINDOWS[window], plain_or_diverse)
    people = [Subscriber(name, data.draw(chosen)) for name in "uvw"]
    wanted = [
        Subscription(f"{name}{letter}", name, where=f"genre = '{letter}'", prefrank=rank)
        for name in "uvw"
        for letter, rank in (("a", 0.4), ("b", 0.8))
    ]
    wanted += [Subscription("um", "u", where="mood = 'c'", prefrank=0.8)]
    work = Workload(people, wanted, data.draw(published()))
    lateness_s = data.draw(st.sampled_from([0, 3]))
    found = outcomes(work, Terms(lateness_s * 1_000_000), data.draw(st.integers(0, 99)), until=FAR)
    assert deliveries(found) == by_engine(work, f"{lateness_s}s", until=FAR)
    assert not [row for table in found for kind in ("late", "dead") for row in rows(table, kind)]


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


def test_out_of_order_within_the_lateness_changes_nothing() -> None:
    work = workload(5)
    mix = sorted(work.events, key=lambda each: (each.published_us // 20_000_000, each.id[::-1]))
    mixed = Workload(work.subscribers, work.subscriptions, mix)
    found = outcomes(mixed, Terms(lateness_us=30_000_000), until=FAR)
    assert deliveries(found) == by_engine(work, "30s", until=FAR)


def test_an_event_from_the_past_is_left_out() -> None:
    work = workload(5)
    old = Event("old", work.events[0].attributes, published_at=-1000, sequence=1)
    found = outcomes(Workload(work.subscribers, work.subscriptions, [*work.events, old]))
    assert deliveries(found) == by_engine(work)
    assert not [row for table in found for row in rows(table, "dead")]


def alone(name: str, at: float, sequence: int | None = None, score: float = 0.5) -> Any:
    event = Event(name, {}, at, sequence)
    made = parcel([event], [[Match("u", event, score, ("s",))]])
    return [made], [Tick(event.published_us, sequence or 0)]


SLIDING = Policy(k=2, window={"name": "sliding", "length": 3})


def test_what_came_before_is_said_in_short_where_no_form_has_come() -> None:
    bucket = Bucket({"u": Subscriber("u", SLIDING)})
    [first], ticks = alone("e", 7.5, 3)
    bucket.run([first], ticks)
    [row] = rows(bucket.run([first._replace(forms=[""])], ticks), "dead")
    short = '{"id": "e", "published_at": "1970-01-01T00:00:07.500000Z", "sequence": 3}'
    assert row["record"] == short


def test_an_event_published_again_is_a_dead_letter_and_not_delivered_again() -> None:
    work = workload(5)
    last = work.events[-1]
    again = [*work.events, last, Event(last.id, last.attributes, 10**5, last.sequence)]
    for seed in range(5):
        found = outcomes(Workload(work.subscribers, work.subscriptions, again), seed=seed)
        assert deliveries(found) == by_engine(work, until=10**5)
        reasons = {row["reason"] for table in found for row in rows(table, "dead")}
        assert reasons == {f"event {last.id!r} was published before"}


@pytest.mark.parametrize("split", [[2], [1, 1]])
def test_an_id_that_comes_twice_counts_once_wherever_batches_end(split: list[int]) -> None:
    """Also if it is for others the second time, at the same moment."""
    bucket = Bucket({name: Subscriber(name, SLIDING) for name in "uv"})
    event = Event("e", {}, 0)
    waiting = [parcel([event], [[Match(name, event, 0.5, ("s",))]]) for name in "uv"]
    found = []
    for size in split:
        found.append(bucket.run(waiting[:size], [Tick(0, 0)]))
        waiting = waiting[size:]
    assert deliveries(found).keys() == {"u"}
    dead = [row for each in found for row in rows(each, "dead")]
    assert [(row["event"], row["reason"]) for row in dead] == [
        ("e", "event 'e' was published before")
    ]


def again(bucket: Bucket, terms: Terms) -> Bucket:
    """Pack a bucket away and open it."""
    found = Bucket({"u": Subscriber("u", SLIDING)}, terms)
    found.unpack(bucket.pack(), bucket.pulse)
    return found


def test_an_id_is_known_while_it_is_remembered_or_in_a_window() -> None:
    terms = Terms(remember_us=5_000_000)
    bucket = Bucket({"u": Subscriber("u", SLIDING)}, terms)
    assert deliveries([bucket.run(*alone("a", 0))]).keys() == {"u"}
    for at in range(1, 3):
        bucket.run(*alone(f"e{at}", 10 * at))
    bucket = again(bucket, terms)
    assert len(bucket.seen) == 1
    assert len(rows(bucket.run(*alone("a", 30)), "dead")) == 1
    for at in range(4, 8):
        bucket.run(*alone(f"e{at}", 10 * at, score=0.9))
    bucket = again(bucket, terms)
    assert not rows(bucket.run(*alone("a", 80)), "dead")


def test_a_bad_record_is_a_dead_letter_and_stops_nothing() -> None:
    letter = b'{"record": {"id": "x"}, "reason": "no time", "position": 3}'
    parcels, ticks = alone("a", 0)
    found = Bucket({"u": Subscriber("u", SLIDING)}).run(parcels, ticks, [letter])
    assert [row["reason"] for row in rows(found, "dead")] == ["no time"]
    assert deliveries([found]).keys() == {"u"}


def test_a_distance_of_ones_own_is_asked_for_in_the_roster() -> None:
    work = workload(5)
    people = [
        Subscriber(each.id, Policy(k=2, window=each.policy.window, diversify=part))
        for each, part in zip(work.subscribers, 5 * DIVERSIFIERS["own"], strict=False)
    ]
    names = {each.id for each in people}
    wanted = [each for each in work.subscriptions if each.subscriber in names]
    mine = Workload(people, wanted, work.events)
    found = deliveries(outcomes(mine, until=FAR))
    assert found == by_engine(mine, until=FAR)
    assert len(found) > 3


def test_state_of_another_version_is_refused() -> None:
    blob, at = bytearray(Bucket({}).pack()), len(FRAME.mark)
    blob[at] = 99
    with pytest.raises(TidingsError, match=f"has version 99, and this is version {FRAME.version}"):
        Bucket({}).unpack(bytes(blob), Pulse())
    with pytest.raises(TidingsError, match="not the state of a bucket"):
        Bucket({}).unpack(b"x\\x9c", Pulse())


def test_state_of_another_number_of_buckets_is_refused() -> None:
    with pytest.raises(TidingsError, match="begun with 8 buckets, and this is 4"):
        Bucket({}, Terms(buckets=4)).unpack(Bucket({}, Terms(buckets=8)).pack(), Pulse())


def test_a_bucket_is_the_same_in_every_process() -> None:
    assert [bucket_of(name, 8) for name in ("addison", "carson", "bob")] == [1, 3, 0]


def test_a_state_has_the_version_of_any_roster() -> None:
    """That of a store is a mark of 64 bits in front of a version."""
    people = {"ann": Subscriber("ann")}
    for version in (0, 1, (1 << 64) - 1, 1 << 64, (1 << 128) - 1):
        blob = Bucket(Listed(people, version)).pack()
        Bucket(Listed(people, 1)).unpack(blob, Pulse())


@pytest.mark.parametrize("aside", [{"ann": [1]}, {"ann": ["1", "why"]}, {"ann": [1, 2]}])
def test_a_state_with_a_damaged_reason_is_refused(aside: dict[str, Any]) -> None:
    header, columns = FRAME.unpack(Bucket({"ann": Subscriber("ann")}).pack())
    blob = FRAME.pack(header | {"aside": aside}, columns)
    with pytest.raises(StateError, match="why 'ann' is set aside"):
        Bucket({"ann": Subscriber("ann")}).unpack(blob, Pulse())
