"""Objects or arrays between the stages: the deliveries are the same, and so is their account."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings import Engine, Event, Policy, Sliding, Subscriber, Subscription
from tidings.engine.stages import ArrayHandoff, ObjectHandoff
from tidings.feed.columnar.feeds import TableFeeds
from tidings.testing import workload

WAYS = [("scan", "table"), ("access", "plain"), ("access", "table"), ("psg", "table")]


def filled(work, index: str, feeds: str) -> Engine:
    engine = Engine(lateness="10s", index=index, feeds=feeds)
    for subscriber in work.subscribers:
        engine.subscribe(subscriber)
    for subscription in work.subscriptions:
        engine.add(subscription)
    return engine


def change(engine: Engine, work, step: int) -> None:
    """Remove a subscriber and add it again, replace a subscription, or change a policy."""
    person = work.subscribers[step % len(work.subscribers)]
    owned = [
        subscription for subscription in work.subscriptions if subscription.subscriber == person.id
    ]
    if step % 3 == 0:
        engine.unsubscribe(person.id)
        engine.subscribe(person)
        engine.add(Subscription(f"back-{step}", person.id, "year >= 2001", prefrank=0.5, score=2))
        for each in owned[1:]:
            engine.add(each)
    elif step % 3 == 1 and owned and not step % 2:
        new = Subscription(owned[0].id, person.id, "genre = 'drama' or good", prefrank=0.3)
        engine.remove(owned[0].id)
        engine.add(new)
    else:
        engine.replace(Subscriber(person.id, Policy(k=2, window=Sliding(3))))


def told(engine: Engine, work, splits: list[int]) -> list[dict[str, Any]]:
    """Publish in calls of the given sizes, with changes between them."""
    found, left = [], list(work.events)
    for step, size in enumerate([*splits, len(left)]):
        found += engine.publish_many(left[:size])
        left = left[size:]
        if step < len(splits):
            change(engine, work, step)
    found += engine.advance(work.events[-1].published_at + 10_000)
    return [delivery.to_dict() for delivery in found]


@pytest.mark.slow
@pytest.mark.parametrize(("index", "feeds"), WAYS)
@settings(max_examples=12)
@given(seed=st.integers(0, 30), splits=st.lists(st.integers(0, 20), max_size=4))
def test_every_way_delivers_what_objects_deliver(index, feeds, seed, splits):
    work = workload(seed=seed, events=40)
    plain, other = filled(work, "scan", "plain"), filled(work, index, feeds)
    assert told(other, work, splits) == told(plain, work, splits)
    mine, theirs = (vars(each.quality()) | {"dropped_by": None} for each in (plain, other))
    assert theirs == pytest.approx(mine)


def test_a_snapshot_goes_on_in_arrays():
    work = workload(seed=3, events=60)
    first, plain = filled(work, "access", "table"), filled(work, "scan", "plain")
    before = first.publish_many(work.events[:30])
    second = Engine(index="access", feeds="table")
    second.restore(first.snapshot())
    after = second.publish_many(work.events[30:])
    assert before + after == plain.publish_many(work.events)


def test_arrays_are_used_where_both_sides_have_them():
    assert isinstance(Engine(index="access", feeds="table")._stages._handoff, ArrayHandoff)
    assert isinstance(Engine(index="access", feeds="plain")._stages._handoff, ObjectHandoff)
    assert isinstance(Engine(feeds="table")._stages._handoff, ObjectHandoff)


def test_more_events_than_are_matched_at_once(monkeypatch):
    monkeypatch.setattr("tidings.engine.engine.CHUNK", 3)
    work = workload(seed=5, events=50)
    whole = filled(work, "scan", "plain").publish_many(work.events)
    assert filled(work, "access", "table").publish_many(iter(work.events)) == whole


def test_one_event_wanted_by_thousands():
    engine = Engine(index="access", feeds="table")
    for number in range(3000):
        engine.subscribe(Subscriber(f"p{number:04d}", Policy(k=1, window=Sliding(5))))
        engine.add(Subscription(f"s{number}", f"p{number:04d}", "a = 1", prefrank=0.5))
    delivered = engine.publish(Event("e1", {"a": 1}, published_at=0))
    assert [delivery.subscriber for delivery in delivered] == [f"p{n:04d}" for n in range(3000)]
    assert engine.quality().coverage == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("index", ["access", "auto"])
def test_subscriptions_that_came_and_went_are_forgotten(index):
    """Those that are there keep their names, however many others come, match and go."""
    engines = [Engine(index=index, feeds="table"), Engine(index="scan", feeds="plain")]
    table = engines[0]._stages.feeds
    assert isinstance(table, TableFeeds)
    for engine in engines:
        engine.subscribe(Subscriber("ann", Policy(k=2, window=Sliding(3))))
        engine.add(Subscription("stays", "ann", "b = 1", prefrank=0.9))
        for step in range(700):
            engine.add(Subscription(f"s{step}", "ann", "a = 1", prefrank=0.5))
            engine.add(Subscription(f"idle{step}", "ann", "a = 2", prefrank=0.5))
            engine.publish(Event(f"e{step}", {"a": 1, "b": step % 7}, published_at=step))
            engine.remove(f"s{step}")
            engine.remove(f"idle{step}")
    found = [engine.publish(Event("e", {"a": 1, "b": 1}, published_at=700)) for engine in engines]
    assert found[0] == found[1]
    assert engines[0].feed("ann") == engines[1].feed("ann")
    assert len(table.tables.matched.names) < 300
    mine, theirs = (vars(engine.quality()) | {"dropped_by": None} for engine in engines)
    assert mine == pytest.approx(theirs)
    assert [each.matched for each in found[0]] == [("stays",)]


def test_another_index_counts_nobody_twice():
    """`auto` goes over to arrays, and who matched before that matched once."""
    engine = Engine(feeds="table")
    engine.subscribe(Subscriber("ann", Policy(k=1, window=Sliding(3))))
    engine.add(Subscription("s", "ann", "a = 1", prefrank=0.5))
    engine.publish(Event("e0", {"a": 1}, published_at=0))
    engine.add_many(Subscription(f"t{n}", "ann", f"a = {n + 2}") for n in range(5000))
    engine.publish(Event("e1", {"a": 1}, published_at=1))
    assert isinstance(engine._stages._handoff, ArrayHandoff)
    assert engine.quality().coverage == 1.0
