"""The engine: a stream in, deliveries out, whatever comes late, twice, broken or half-way."""

import json
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings import (
    Delivery,
    Engine,
    Event,
    InvalidSubscription,
    Jumping,
    Limits,
    Periodic,
    Policy,
    Relaxed,
    Sliding,
    Subscriber,
    Subscription,
    TidingsError,
)
from tidings.feed import FEEDS
from tidings.testing import Workload, workload

LATE_AFTER_S = 20
END = 1_000_000
few = settings(max_examples=25)


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """A stream for every kind of policy; the events have numbers, or are to get them."""
    work = workload(draw(st.integers(0, 10**6)), events=25)
    if draw(st.booleans()):
        return work
    bare = [Event(event.id, event.attributes, event.published_at) for event in work.events]
    return replace(work, events=bare)


def engine_for(work: Workload, lateness: str = "0s") -> Engine:
    engine = Engine(lateness)
    for subscriber in work.subscribers:
        engine.subscribe(subscriber)
    for subscription in work.subscriptions:
        engine.add(subscription)
    return engine


def per_subscriber(deliveries: list[Delivery]) -> dict[str, list[Delivery]]:
    found = defaultdict(list)
    for delivery in deliveries:
        found[delivery.subscriber].append(delivery)
    return dict(found)


def addison(window: Any = "continuous", k: int = 1, lateness: str = "0s") -> Engine:
    """An engine for one subscriber that ranks dramas .5 and comedies .9."""
    engine = Engine(lateness)
    engine.subscribe(Subscriber("addison", Policy(k=k, window=window)))
    engine.add(Subscription("s1", "addison", "genre = 'drama'", prefrank=0.5))
    engine.add(Subscription("s2", "addison", "genre = 'comedy'", prefrank=0.9))
    return engine


def film(name: str, at: float = 0, genre: str = "drama") -> Event:
    return Event(name, {"genre": genre}, published_at=at)


def ids(deliveries: list[Delivery]) -> list[str]:
    return [delivery.event for delivery in deliveries]


@few
@given(workloads(), st.sets(st.integers(0, 25)))
def test_any_split_of_a_stream_gives_the_same_deliveries(work: Workload, cuts: set[int]) -> None:
    whole = engine_for(work).publish_many(work.events)
    parted = engine_for(work)
    edges = [0, *sorted(cuts), len(work.events)]
    calls = [work.events[start:end] for start, end in pairwise(edges)]
    assert [delivery for call in calls for delivery in parted.publish_many(call)] == whole
    single = engine_for(work)
    assert [delivery for event in work.events for delivery in single.publish(event)] == whole


@few
@given(workloads())
def test_nobody_gets_an_event_twice(work: Workload) -> None:
    engine = engine_for(work)
    delivered = engine.publish_many(work.events + work.events) + engine.advance(END)
    pairs = [(delivery.subscriber, delivery.event) for delivery in delivered]
    assert len(pairs) == len(set(pairs))
    assert [letter.record for letter in engine.dead_letters] == work.events


@pytest.mark.slow
@few
@given(workloads(), st.integers(0, 25), st.booleans())
def test_a_restart_anywhere_changes_nothing(work: Workload, cut: int, late: bool) -> None:
    lateness = f"{LATE_AFTER_S}s" if late else "0s"
    undisturbed, killed = engine_for(work, lateness), engine_for(work, lateness)
    undisturbed.publish_many(work.events[:cut])
    killed.publish_many(work.events[:cut])
    restarted = Engine()
    restarted.restore(json.loads(json.dumps(killed.snapshot())))
    rest = work.events[max(0, cut - 2) :]
    assert restarted.publish_many(rest) == undisturbed.publish_many(rest)
    assert restarted.advance(END) == undisturbed.advance(END)
    assert restarted.snapshot() == undisturbed.snapshot()


@pytest.mark.slow
@few
@given(workloads())
def test_to_look_at_a_feed_changes_nothing(work: Workload) -> None:
    undisturbed, watched = engine_for(work), engine_for(work)
    for event in work.events:
        assert watched.publish(event) == undisturbed.publish(event)
        for subscriber in work.subscribers:
            feed = watched.feed(subscriber.id)
            assert [each.position for each in feed] == list(range(1, len(feed) + 1))
            assert len(feed) <= subscriber.policy.k
    assert watched.snapshot() == undisturbed.snapshot()


@few
@given(workloads(), st.integers(0, 10**6))
def test_out_of_order_within_the_lateness_is_as_in_order(work: Workload, seed: int) -> None:
    chance = Random(seed)
    delay = {event.id: chance.randrange(LATE_AFTER_S) for event in work.events}
    mixed = sorted(work.events, key=lambda e: (e.published_at + delay[e.id], chance.random()))
    ordered = sorted(mixed, key=lambda e: (e.published_us, e.sequence or 0))
    in_order, out_of_order = engine_for(work), engine_for(work, f"{LATE_AFTER_S}s")
    expected = in_order.publish_many(ordered) + in_order.advance(END)
    found = out_of_order.publish_many(mixed) + out_of_order.advance(END)
    assert out_of_order.late == []
    assert per_subscriber(found) == per_subscriber(expected)


def test_what_is_later_still_is_kept_as_late() -> None:
    engine = addison(k=9, lateness="10s")
    found = engine.publish_many([film("e1", 100), film("e2", 90), film("e3", 89)])
    assert [event.id for event in engine.late] == ["e3"]
    assert ids(found + engine.advance(200)) == ["e2", "e1"]
    assert engine.publish(film("e4", 189)) == []
    assert [event.id for event in engine.late] == ["e3", "e4"]
    again = Engine()
    again.restore(json.loads(json.dumps(engine.snapshot())))
    assert again.late == engine.late
    assert engine.publish(film("e3", 300)) == []
    assert [letter.reason for letter in engine.dead_letters] == ["event 'e3' was published before"]


def test_with_a_lateness_events_wait_for_the_watermark() -> None:
    engine = addison(lateness="10s")
    assert engine.publish(film("e1", 0)) == engine.publish(film("e2", 9)) == []
    assert ids(engine.publish(film("e3", 10))) == ["e1"]


@pytest.mark.parametrize("lateness", [timedelta(seconds=-1), "-1s", 5, "soon", None])
def test_a_bad_lateness_is_refused(lateness: object) -> None:
    with pytest.raises(TidingsError):
        Engine(lateness)


GOOD = {"id": "e2", "published_at": 1, "attributes": {"genre": "comedy"}}
BAD: list[tuple[Any, str]] = [
    (
        GOOD | {"attributes": {"year": float("nan")}},
        "event e2: attribute year: nan is not a finite",
    ),
    (GOOD | {"attributes": {"year": float("inf")}}, "inf is not a finite number"),
    (GOOD | {"attributes": {"year": None}}, "null is not a value"),
    (GOOD | {"attributes": {"year": {"a": {1}}}}, "is a dict"),
    (GOOD | {"attributes": None}, "attributes are a mapping"),
    (GOOD | {"genre": "comedy"}, "event e2: unknown field 'genre'"),
    ({"id": "e2", "published_at": 1}, "event e2: field 'attributes' is missing"),
    (GOOD | {"published_at": "noon"}, "'noon' is not a time"),
    (GOOD | {"published_at": None}, "null is not a time"),
    (GOOD | {"sequence": -1}, "sequence is a whole number of at least 0, not -1"),
    (GOOD | {"id": ""}, "id is a non-empty string"),
    ({("a", 1): datetime(2026, 11, 15, tzinfo=UTC), "b": [{1}, (b"2",)]}, "unknown field"),
    (None, "not None"),
    ("e2", "not 'e2'"),
    (film("e1"), "event 'e1' was published before"),
]


@pytest.mark.parametrize(("record", "reason"), BAD, ids=[reason for _, reason in BAD])
def test_a_bad_event_is_a_dead_letter_and_stops_nothing(record: Any, reason: str) -> None:
    engine = addison()
    assert ids(engine.publish_many([film("e1"), record, GOOD])) == ["e1", "e2"]
    [letter] = engine.dead_letters
    assert letter.record is record
    assert reason in letter.reason


def test_dead_letters_survive_a_restart_whatever_they_hold() -> None:
    engine = addison()
    engine.publish_many(record for record, _ in BAD[:-1])
    with pytest.raises(InvalidSubscription):
        engine.subscribe(Subscriber("addison", Policy(scorer=Relaxed(aggregate=max))))
    state = json.loads(json.dumps(engine.snapshot(), allow_nan=False))
    again = Engine()
    again.restore(state)
    assert [letter.reason for letter in again.dead_letters] == [
        letter.reason for letter in engine.dead_letters
    ]
    assert again.dead_letters[5].record == GOOD | {"genre": "comedy"}
    assert ids(again.publish(GOOD)) == ["e2"]


def test_ids_are_taken_once_and_can_be_replaced() -> None:
    engine = addison()
    with pytest.raises(InvalidSubscription, match="'s1' already exists"):
        engine.add(Subscription("s1", "addison", "genre = 'horror'"))
    with pytest.raises(InvalidSubscription, match="'addison' exists already"):
        engine.subscribe({"id": "addison"})
    assert len(engine.dead_letters) == 2
    engine.replace(Subscription("s1", "addison", "genre = 'horror'", prefrank=0.2))
    assert engine.publish(film("e1")) == []
    [delivery] = engine.publish(film("e2", genre="horror"))
    assert delivery.rank == 0.2


def test_a_new_policy_starts_with_an_empty_window_and_the_same_one_goes_on() -> None:
    engine = addison(Sliding(9))
    assert ids(engine.publish(film("e1", genre="comedy"))) == ["e1"]
    engine.replace(Subscriber("addison", Policy(k=1, window=Sliding(9)), [("s2", "s1")]))
    assert engine.publish(film("e2")) == []
    engine.replace(Subscriber("addison", Policy(k=1, window=Sliding(8))))
    assert engine.feed("addison") == []
    assert ids(engine.publish(film("e3"))) == ["e3"]


def test_another_scorer_ranks_what_comes_and_keeps_the_window() -> None:
    engine = addison(Sliding(9))
    assert ids(engine.publish(film("e1", genre="comedy"))) == ["e1"]
    before = engine.feed("addison")[0].rank
    engine.replace(Subscriber("addison", Policy(k=1, window=Sliding(9), scorer="exact")))
    assert [(each.event, each.rank) for each in engine.feed("addison")] == [("e1", before)]
    assert [delivery.rank for delivery in engine.publish(film("e2"))] == [1.0]


def test_who_leaves_gets_nothing_and_starts_anew() -> None:
    engine = addison(k=9)
    engine.remove("s1")
    assert engine.publish(film("e1")) == []
    assert ids(engine.publish(film("e2", genre="comedy"))) == ["e2"]
    engine.unsubscribe("addison")
    assert engine.publish(film("e3", genre="comedy")) == []
    engine.subscribe({"id": "addison"})
    engine.add({"id": "s2", "subscriber": "addison", "where": "genre = 'drama'"})
    [delivery] = engine.publish(film("e4"))
    assert (delivery.event, delivery.sequence) == ("e4", 1)


@pytest.mark.parametrize(
    "command",
    [
        lambda engine: engine.feed("nobody"),
        lambda engine: engine.unsubscribe("nobody"),
        lambda engine: engine.replace(Subscriber("nobody")),
        lambda engine: engine.replace(Subscription("s9", "addison", "year = 1")),
        lambda engine: engine.remove("s9"),
        lambda engine: engine.add({"id": "s9", "subscriber": "addison"}),
        lambda engine: engine.subscribe({"id": "carson", "policy": {"k": 0}}),
        lambda engine: engine.advance("noon"),
    ],
)
def test_a_bad_command_raises_and_changes_nothing(command: Any) -> None:
    engine, twin = addison(), addison()
    with pytest.raises(TidingsError):
        command(engine)
    engine.dead_letters.clear()
    assert engine.snapshot() == twin.snapshot()


def test_time_closes_periods() -> None:
    engine = addison(Periodic("30m"), k=2)
    engine.publish_many([film("e1", 0), film("e2", 60, genre="comedy")])
    assert ids(engine.feed("addison")) == ["e2", "e1"]
    assert engine.advance(1799) == []
    assert ids(engine.advance("1970-01-01T00:30:00Z")) == ["e2", "e1"]
    assert engine.advance(1800) == engine.advance(0) == engine.feed("addison") == []


def test_publications_are_numbered_in_order_of_time() -> None:
    """Of the last two publications, e3 is alone: e1 was the third last, though it came last."""
    engine = addison(Sliding(2, count="published"), lateness="10s")
    engine.publish_many([film("e3", 3), film("x", 2, genre="opera"), film("e1", 1, "comedy")])
    assert ids(engine.advance(20)) == ["e1", "e3"]


def test_commands_take_forms_and_refuse_anything_else_with_a_reason() -> None:
    engine = Engine()
    engine.subscribe({"id": "a", "policy": {"k": 2}})
    engine.add({"id": "s", "subscriber": "a", "where": "x = 1"})
    engine.replace({"id": "s", "subscriber": "a", "where": "x = 2"})
    engine.replace({"id": "a", "policy": {"k": 1}})
    event = Event("e", {"x": 2}, published_at=0)
    assert [delivery.matched for delivery in engine.publish(event)] == [("s",)]
    with pytest.raises(TidingsError, match="object with named fields, not None"):
        engine.subscribe(None)  # type: ignore[arg-type]
    with pytest.raises(TidingsError, match="there is no subscriber 'b'"):
        engine.replace({"id": "b"})
    assert [letter.record for letter in engine.dead_letters] == [None, {"id": "b"}]


def test_a_feed_may_be_looked_at_right_after_a_jump() -> None:
    engine = Engine()
    engine.subscribe(Subscriber("a", Policy(k=1, window=Jumping(2, 2))))
    engine.add(Subscription("s", "a", where="x = 1"))
    events = [Event(f"e{n}", {"x": 1}, published_at=n) for n in range(2)]
    assert [delivery.event for delivery in engine.publish_many(events)] == ["e1"]
    assert [delivery.event for delivery in engine.feed("a")] == ["e1"]


def test_many_subscriptions_are_added_at_once_and_bad_ones_kept() -> None:
    engine = Engine()
    engine.subscribe(Subscriber("ann"))
    good: list[Any] = [
        Subscription("s1", "ann", "a = 1"),
        {"id": "s2", "subscriber": "ann", "where": "a = 2"},
    ]
    bad: list[Any] = [
        {"id": "s3", "subscriber": "ann", "where": "a ="},
        Subscription("s1", "ann", "a = 9"),
    ]
    refused = engine.add_many([*good, *bad])
    assert refused == engine.dead_letters
    assert [letter.record for letter in refused] == bad
    assert "s1' already exists" in refused[1].reason
    assert [d.event for d in engine.publish(Event("e", {"a": 2}, published_at=0))] == ["e"]


def test_an_engine_diagnoses_its_subscriptions() -> None:
    engine = Engine()
    engine.subscribe(Subscriber("ann"))
    engine.subscribe(Subscriber("bob", Policy(scorer="relaxed")))
    for name, where in {
        "typo": "dst = 'MIA'",
        "type": "distance > '500'",
        "fine": "dest = 'MIA'",
    }.items():
        engine.add(Subscription(name, "ann", where=where))
    engine.add(Subscription("half", "bob", any=[["dest = 'MIA'", 1], ["Distance > 5", 1]]))
    engine.publish(Event("e1", {"dest": "MIA", "distance": 1089}, published_at=0))
    half, typed = "(1 subscription: half)", "(1 subscription: type)"
    found = engine.diagnose()
    assert str(found).splitlines() == [
        "4 subscriptions, 1 event: none matched 2 subscriptions: typo, type",
        "  dst = 'MIA': no event has the attribute dst; did you mean dest? (1 subscription: typo)",
        "  Distance > 5: no event has the attribute Distance; did you mean distance? " + half,
        "  distance > '500': distance holds numbers, not strings; write distance > 500 " + typed,
    ]
    engine.replace(Subscription("typo", "ann", where="dest = 'MIA'"))
    engine.replace(Subscription("fine", "ann", where="dest = 'ORD'"))
    engine.publish(Event("e2", {"dest": "MIA", "distance": 1089}, published_at=1))
    assert engine.diagnose().examples == ("type", "fine")
    twin = Engine()
    twin.restore(engine.snapshot())
    assert (twin.diagnose().events, twin.diagnose().unmatched) == (0, 4)


@pytest.mark.parametrize("feeds", FEEDS)
def test_content_reaches_deliveries_feeds_snapshots_and_letters(feeds: str) -> None:
    engine = Engine(feeds=feeds, lateness="1s")
    engine.subscribe(Subscriber("addison", Policy(k=1, window=Sliding(10))))
    engine.add(Subscription("s1", "addison", where="genre = 'comedy'"))
    form = {"id": "e1", "attributes": {"genre": "comedy"}, "content": {"title": "Big Fish"}}
    engine.publish(form | {"published_at": 5})
    copy = Engine()
    copy.restore(json.loads(json.dumps(engine.snapshot())))  # the event still waits
    for either in (engine, copy):
        [delivery] = either.advance(10)
        assert delivery.content == {"title": "Big Fish"}
        assert either.feed("addison")[0].content == {"title": "Big Fish"}
        either.publish(form | {"published_at": 10})
        assert either.dead_letters[-1].to_dict()["record"]["content"] == {"title": "Big Fish"}
        either.publish(form | {"id": "e0", "published_at": 1})
        assert either.late[0].content == {"title": "Big Fish"}
    assert engine.explain("addison", "e1").delivery is not None


@pytest.mark.parametrize("feeds", FEEDS)
def test_an_engine_checks_the_content_of_objects_and_forms_alike(feeds: str) -> None:
    engine = Engine(feeds=feeds, limits=Limits.public())
    content = {"text": "x" * 300_000}
    engine.publish(Event("e1", {}, 0, content=content))
    engine.publish({"id": "e2", "attributes": {}, "content": content})
    assert [letter.reason.count("limit record_bytes") for letter in engine.dead_letters] == [1, 1]


def comedies(count: int, first: int = 0) -> list[Event]:
    return [Event(f"e{n}", {"genre": "comedy"}, n) for n in range(first, first + count)]


@pytest.mark.parametrize("feeds", ["plain", "table"])
def test_what_is_due_while_paused_is_dropped_and_the_window_goes_on(feeds: str) -> None:
    paused, other = Engine(feeds=feeds), Engine(feeds=feeds)
    for engine in (paused, other):
        engine.subscribe(Subscriber("ann", Policy(k=2, window=Sliding(3), decay=DECAY)))
        engine.add(Subscription("s", "ann", where="genre = 'comedy'"))
        engine.publish_many(comedies(2))
    paused.pause("ann")
    assert paused.publish_many(comedies(3, 2)) == []
    assert other.publish_many(comedies(3, 2)) != []
    assert paused.feed("ann") == other.feed("ann")
    assert paused.quality().dropped == 3
    explanation = paused.explain("ann", "e3")
    assert explanation.dropped == "the subscriber is paused"
    assert "dropped when it was due: the subscriber is paused" in str(explanation)
    assert explanation.to_dict()["dropped"] == "the subscriber is paused"
    restored = Engine(feeds=feeds)
    restored.restore(json.loads(json.dumps(paused.snapshot())))
    assert restored.publish_many(comedies(1, 5)) == []
    for engine in (paused, restored):
        engine.resume("ann")
    paused.publish_many(comedies(1, 5))
    other.publish_many(comedies(1, 5))
    assert paused.publish_many(comedies(2, 6)) == other.publish_many(comedies(2, 6))
    assert restored.publish_many(comedies(2, 6)) != []


DECAY = {"name": "exponential", "half_life": "1m"}


def test_a_subscriber_may_come_paused_and_periods_end_without_it() -> None:
    engine = Engine()
    engine.subscribe({"id": "ann", "policy": {"window": PERIOD}, "paused": True})
    engine.add(Subscription("s", "ann", where="true"))
    engine.publish_many(comedies(3))
    assert engine.advance(10) == []
    engine.replace(Subscriber("ann", Policy(window=PERIOD)))
    engine.publish_many(comedies(1, 12))
    assert [delivery.event for delivery in engine.advance(20)] == ["e12"]
    assert engine.quality().dropped == 3


PERIOD = {"name": "periodic", "length": "10s"}


def test_only_a_subscriber_is_paused_or_resumed() -> None:
    engine = Engine()
    for call in (engine.pause, engine.resume):
        with pytest.raises(TidingsError, match="there is no subscriber 'ann'"):
            call("ann")
    with pytest.raises(TidingsError, match="paused is true or false, not 'yes'"):
        engine.subscribe({"id": "ann", "paused": "yes"})


@pytest.mark.parametrize("feeds", ["plain", "table"])
@pytest.mark.parametrize("index", ["scan", "access"])
def test_an_owner_without_a_subscriber_has_the_default_policy(feeds: str, index: str) -> None:
    engine = Engine(feeds=feeds, index=index, default_policy={"k": 1, "window": "continuous"})
    engine.add(Subscription("s", "ann", where="genre = 'comedy'"))
    assert engine.add_many([Subscription("t", "bob", where="true")]) == []
    delivered = engine.publish_many(comedies(1))
    assert [(delivery.subscriber, delivery.event) for delivery in delivered] == [
        ("ann", "e0"),
        ("bob", "e0"),
    ]
    engine.restore(json.loads(json.dumps(engine.snapshot())))
    engine.subscribe(Subscriber("ann", Policy(k=3)))  # it is no longer one by default
    with pytest.raises(InvalidSubscription, match="exists already"):
        engine.subscribe(Subscriber("ann"))
    engine.remove("t")
    with pytest.raises(InvalidSubscription, match="no subscriber 'bob'"):
        engine.explain("bob", "e0")
    assert {delivery.subscriber for delivery in engine.publish_many(comedies(1, 1))} == {"ann"}


def test_a_subscriber_that_comes_later_keeps_the_window_of_its_default_policy() -> None:
    late, early = Engine(), Engine()
    early.subscribe(Subscriber("ann"))
    for engine in (late, early):
        engine.add(Subscription("s", "ann", where="true"))
        engine.publish_many(comedies(2))
    late.subscribe(Subscriber("ann"))
    assert late.publish_many(comedies(2, 2)) == early.publish_many(comedies(2, 2))


def test_without_a_default_policy_subscriptions_wait_for_their_subscriber() -> None:
    engine = Engine(default_policy=None)
    engine.add(Subscription("s", "ann", where="true"))
    assert engine.publish_many(comedies(1)) == []
    engine.subscribe(Subscriber("ann"))
    assert [delivery.event for delivery in engine.publish_many(comedies(1, 1))] == ["e1"]


def test_a_subscription_that_moves_takes_its_owner_by_default_along() -> None:
    engine = Engine()
    engine.add(Subscription("s", "ann", where="true"))
    engine.replace(Subscription("s", "bob", where="true"))
    assert [delivery.subscriber for delivery in engine.publish_many(comedies(1))] == ["bob"]
    engine.unsubscribe("bob")
    assert engine.publish_many(comedies(1, 1)) == []
