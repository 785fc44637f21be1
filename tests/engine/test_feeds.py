"""Engines with feeds in arrays deliver what engines with plain feeds deliver."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings import (
    Engine,
    Event,
    InvalidPolicy,
    Jumping,
    Periodic,
    Policy,
    Sliding,
    Subscriber,
    Subscription,
    TidingsError,
)
from tidings.feed import FEEDS
from tidings.testing import Workload, workload

END = 1_000_000
workloads = st.integers(0, 10**6).map(lambda seed: workload(seed, events=25))
few = settings(max_examples=20)


def engine_for(work: Workload, feeds: str, lateness: str = "0s") -> Engine:
    engine = Engine(lateness, feeds=feeds)
    for subscriber in work.subscribers:
        engine.subscribe(subscriber)
    for subscription in work.subscriptions:
        engine.add(subscription)
    return engine


@pytest.mark.slow
@few
@given(workloads, st.sampled_from(["0s", "20s"]))
def test_all_kinds_deliver_the_same_for_every_policy(work: Workload, lateness: str) -> None:
    engines = [engine_for(work, kind, lateness) for kind in FEEDS]
    for event in work.events:
        first, *rest = [engine.publish(event) for engine in engines]
        assert all(each == first for each in rest)
        for subscriber in work.subscribers:
            first, *rest = [engine.feed(subscriber.id) for engine in engines]
            assert all(each == first for each in rest)
    first, *rest = [engine.advance(END) for engine in engines]
    assert all(each == first for each in rest)
    reports = [engine.quality() for engine in engines]
    assert all(report == reports[0] for report in reports)


@few
@given(workloads, st.integers(0, 25))
def test_a_restart_anywhere_changes_nothing(work: Workload, cut: int) -> None:
    undisturbed, killed = engine_for(work, "table"), engine_for(work, "table")
    undisturbed.publish_many(work.events[:cut])
    killed.publish_many(work.events[:cut])
    restarted = Engine()
    restarted.restore(json.loads(json.dumps(killed.snapshot())))
    assert restarted.publish_many(work.events[cut:]) == undisturbed.publish_many(work.events[cut:])
    assert restarted.advance(END) == undisturbed.advance(END)
    assert restarted.snapshot() == undisturbed.snapshot()


@pytest.mark.parametrize("feeds", FEEDS)
@pytest.mark.parametrize("window", [Periodic("7d"), Periodic("7h"), Jumping("9d", "7d")])
def test_the_first_time_of_all_is_a_time_like_any_other(feeds: str, window: object) -> None:
    """Some programs write it where they know none; its period begins before the calendar."""
    engine = Engine(feeds=feeds)
    engine.subscribe(Subscriber("a", Policy(window=window)))
    engine.add(Subscription("s", "a", where="x = 1"))
    sent = engine.publish(Event("e1", {"x": 1}, "0001-01-01T00:00:00Z"))
    sent += engine.publish(Event("e2", {"x": 1}, "2026-01-01T00:00:00Z"))
    sent += engine.publish(Event("e3", {"x": 1}, "9999-12-31T23:59:59Z"))
    assert [delivery.event for delivery in sent] == ["e1", "e2"]
    assert sent[0].window["start"] == "0001-01-01T00:00:00Z"


@pytest.mark.parametrize("feeds", FEEDS)
def test_a_new_policy_starts_with_an_empty_window_and_others_go_on(feeds: str) -> None:
    engine = Engine(feeds=feeds)
    for name in ("a", "b"):
        engine.subscribe(Subscriber(name, Policy(k=1, window=Sliding(9))))
        engine.add(Subscription(f"s-{name}", name, "x > 0"))
    event = {"id": "e1", "published_at": 0, "attributes": {"x": 1}}
    assert len(engine.publish(event)) == 2
    engine.replace(Subscriber("a", Policy(k=2, window=Sliding(9))))
    assert engine.feed("a") == []
    assert [each.event for each in engine.feed("b")] == ["e1"]
    engine.unsubscribe("b")
    with pytest.raises(TidingsError, match="there is no subscriber 'b'"):
        engine.feed("b")
    assert [d.subscriber for d in engine.publish(event | {"id": "e2", "published_at": 1})] == ["a"]


@pytest.mark.parametrize("wrong", ["rows", "", None, 3])
def test_other_kinds_are_refused(wrong: object) -> None:
    with pytest.raises(InvalidPolicy, match="feeds is one of 'plain', 'table'"):
        Engine(feeds=wrong)  # type: ignore[arg-type]
