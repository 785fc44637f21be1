"""Engines apply rules as the definition does, in all feeds, splits and restarts."""

import json
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rules.streams import CHANGES, GAPS, MINUTE_US, rules

from tidings import (
    Delivery,
    Different,
    Engine,
    Event,
    Match,
    Policy,
    Quiet,
    Quota,
    Sliding,
    Subscriber,
    Subscription,
)
from tidings.feed.single import PolicyChooser
from tidings.model import calendar
from tidings.model.values import format_time
from tidings.rules.plain import RuleChange, plain_rules
from tidings.window import Moment, Pick

LATER_US = 30 * 1_440 * MINUTE_US
WINDOWS = st.sampled_from(
    [
        {"name": "continuous"},
        {"name": "continuous", "expires": "2h"},
        {"name": "sliding", "length": 4},
        {"name": "sliding", "length": "1d"},
        {"name": "jumping", "length": 4, "step": 2},
        {"name": "periodic", "length": "3h"},
        {"name": "periodic", "at": ["08:00", "17:30"], "zone": "Europe/Athens"},
        {"name": "periodic", "at": "02:30", "days": ["sun", "mon"], "zone": "America/New_York"},
        {"name": "history", "length": 5},
    ]
)
policies = st.builds(
    Policy,
    k=st.integers(1, 3),
    decay=st.sampled_from(["none", {"name": "exponential", "rate": 1e-4}]),
    window=WINDOWS,
    diversify=st.sampled_from(["none", {"name": "divrank", "sigma": 0.5}]),
    rules=rules,
)
PREFRANKS = {"low": 0.3, "middle": 0.6, "high": 0.9}


@st.composite
def streams(draw: st.DrawFn) -> list[Event]:
    us, events = draw(st.sampled_from(CHANGES)), list[Event]()
    for number in range(draw(st.integers(1, 25))):
        us += draw(GAPS) * MINUTE_US
        attributes = {"level": draw(st.sampled_from([*PREFRANKS])), "a": draw(st.integers(0, 2))}
        events.append(
            Event(f"e{number:02d}", attributes, published_at=us / 1e6, sequence=number + 1)
        )
    return events


def defined(
    policy: Policy,
    events: list[Event],
    now_us: int,
    changed: Mapping[int, Policy] = MappingProxyType({}),
) -> list[tuple[Any, ...]]:
    """Return what the rules make of the choices of a window, by definition.

    After some events the policy may have `changed` its rules.
    """
    chooser = PolicyChooser(policy)
    window, picks, changes = policy.window.open(chooser), list[Pick](), list[RuleChange]()
    for number, event in enumerate(events, start=1):
        level = str(event.attributes["level"])
        match = Match("x", event, PREFRANKS[level], (level,))
        picks += window.offer(match, Moment(event.published_us, number))
        if number in changed:
            changes.append(RuleChange(len(picks), event.published_us, changed[number].rules))
    picks += window.advance(Moment(now_us, len(events)))
    return [
        (pick.match.event.id, pick.rank, pick.position, dict(pick.window), format_time(pick.at_us))
        for pick in plain_rules(policy.rules, chooser, picks, now_us, changes=changes)
    ]


def shown(delivery: Delivery) -> tuple[Any, ...]:
    return (
        delivery.event,
        delivery.rank,
        delivery.position,
        dict(delivery.window),
        delivery.delivered_at,
    )


def new_engine(feeds: str, policy: Policy) -> Engine:
    engine = Engine(feeds=feeds)
    engine.subscribe(Subscriber("x", policy))
    for level, prefrank in PREFRANKS.items():
        where = f"level = '{level}'"
        engine.add(Subscription(level, "x", where=where, prefrank=prefrank))
    return engine


@pytest.mark.parametrize("feeds", ["plain", "table"])
@given(policies, streams(), st.data())
def test_every_split_and_restart_delivers_what_the_definition_delivers(
    feeds: str, policy: Policy, events: list[Event], data: st.DataObject
) -> None:
    end = events[-1].published_us + LATER_US
    engine, due, left = new_engine(feeds, policy), list[Delivery](), list(events)
    while left:
        size = data.draw(st.integers(1, len(left)))
        part, left = left[:size], left[size:]
        due += engine.publish_many(part)
        ticks = data.draw(st.booleans())
        if left and ticks:
            due += engine.advance(left[0].published_us / 1e6)
        if data.draw(st.booleans()):
            state = json.loads(json.dumps(engine.snapshot()))
            engine = Engine(feeds=feeds)
            engine.restore(state)
    due += engine.advance(end / 1e6)
    assert [shown(delivery) for delivery in due] == defined(policy, events, end)
    assert [delivery.sequence for delivery in due] == list(range(1, len(due) + 1))


@pytest.mark.parametrize("feeds", ["plain", "table"])
@given(policies, streams(), st.data())
def test_other_rules_deliver_what_the_definition_delivers(
    feeds: str, policy: Policy, events: list[Event], data: st.DataObject
) -> None:
    end = events[-1].published_us + LATER_US
    engine, due, changes = new_engine(feeds, policy), list[Delivery](), dict[int, Policy]()
    for number, event in enumerate(events, start=1):
        due += engine.publish(event)
        if data.draw(st.booleans()):
            changed = changes[number] = replace(policy, rules=data.draw(rules))
            engine.replace(Subscriber("x", changed))
        if data.draw(st.booleans()):
            state = json.loads(json.dumps(engine.snapshot()))
            engine = Engine(feeds=feeds)
            engine.restore(state)
    due += engine.advance(end / 1e6)
    assert [shown(delivery) for delivery in due] == defined(policy, events, end, changes)


@pytest.mark.parametrize("feeds", ["plain", "table"])
def test_other_rules_keep_the_window_and_what_is_held(feeds: str) -> None:
    engine = new_engine(
        feeds, Policy(k=2, window={"name": "sliding", "length": 3}, rules=["quiet"])
    )
    assert engine.publish(Event("e1", {"level": "low"}, published_at="2026-11-15T23:00Z")) == []
    other = Policy(k=2, window=Sliding(3), rules=[Quiet("20:00", "05:00")])
    engine.replace(Subscriber("x", other))
    assert engine.advance("2026-11-16T04:59Z") == []
    [delivery] = engine.advance("2026-11-16T12:00Z")
    assert (delivery.event, delivery.delivered_at) == ("e1", "2026-11-16T05:00:00Z")
    assert [each.event for each in engine.feed("x")] == ["e1"]


@pytest.mark.parametrize("feeds", ["plain", "table"])
def test_a_pause_drops_what_would_be_due_and_counts_in_the_quota(feeds: str) -> None:
    engine = new_engine(feeds, Policy(rules=[Quota(1, pick="first"), "different"]))
    engine.pause("x")
    noon = "2026-11-15T12:00Z"
    assert engine.publish(Event("e1", {"level": "low", "a": 1}, published_at=noon)) == []
    engine.resume("x")
    assert engine.publish(Event("e2", {"level": "high"}, published_at="2026-11-15T13:00Z")) == []
    # The paused subscriber did not get e1, so its twin is not too near.
    [delivery] = engine.publish(
        Event("e3", {"level": "low", "a": 1}, published_at="2026-11-16T12:00Z")
    )
    assert delivery.event == "e3"


@pytest.mark.parametrize("feeds", ["plain", "table"])
def test_without_rules_nothing_that_was_held_is_lost(feeds: str) -> None:
    engine = new_engine(feeds, Policy(rules=["quiet"]))
    assert engine.publish(Event("e1", {"level": "low"}, published_at="2026-11-15T23:00Z")) == []
    engine.replace(Subscriber("x", Policy()))
    assert [each.event for each in engine.advance("2026-11-15T23:01Z")] == ["e1"]


@pytest.mark.parametrize("feeds", ["plain", "table"])
@pytest.mark.parametrize("restarts", [False, True])
def test_a_rule_that_is_added_compares_the_same_after_a_restart(feeds: str, restarts: bool) -> None:
    engine = new_engine(feeds, Policy(rules=["quiet"]))
    engine.publish(Event("e1", {"level": "low"}, published_at="2026-11-15T23:00Z"))
    if restarts:  # the snapshot of a table has no attributes that nothing compares
        state = engine.snapshot()
        engine = Engine(feeds=feeds)
        engine.restore(state)
    engine.replace(Subscriber("x", Policy(rules=["different"])))
    due = [
        delivery.event
        for name in ("e2", "e3")
        for delivery in engine.publish(
            Event(name, {"level": "low"}, published_at=f"2026-11-15T23:{name[1]}0Z")
        )
    ]
    assert due == ["e1", "e2"]


@pytest.mark.parametrize("feeds", ["plain", "table"])
@pytest.mark.parametrize("restarts", [False, True])
def test_what_was_held_is_compared_as_of_its_delivery(feeds: str, restarts: bool) -> None:
    engine = new_engine(feeds, Policy(rules=[Different(within="1h"), Quiet("22:00", "07:00")]))
    times = ["2026-11-15T23:00Z", "2026-11-16T07:30Z", "2026-11-16T08:00Z"]
    due = list[Delivery]()
    for number, at in enumerate(times):
        due += engine.publish(Event(f"e{number}", {"level": "low"}, published_at=at))
        if restarts:
            state = engine.snapshot()
            engine = Engine(feeds=feeds)
            engine.restore(state)
    # e0 was got at seven, long after its publication, so e1 is too near to it, and e2 is not.
    assert [(each.event, each.delivered_at) for each in due] == [
        ("e0", "2026-11-16T07:00:00Z"),
        ("e2", "2026-11-16T08:00:00Z"),
    ]


@pytest.mark.parametrize("feeds", ["plain", "table"])
@pytest.mark.parametrize("gap_days", [31, 3_100])
def test_empty_periods_are_not_walked_through(feeds: str, gap_days: int) -> None:
    zones = ["Europe/Athens", "Asia/Tokyo", "America/New_York", "Pacific/Apia"]
    hourly = [Quota(2, per="hour", zone=zone) for zone in zones]
    engine = Engine(feeds=feeds)
    engine.subscribe(Subscriber("ann", Policy(k=1, window="continuous", rules=hourly)))
    engine.add(Subscription("s", "ann", "true"))
    calendar._starts.cache_clear()
    events = 10
    for number in range(events):
        engine.publish(Event(f"e{number}", {}, published_at=number * gap_days * 86_400))
    # One piece of the calendar around each event, however many periods are in between.
    assert calendar._starts.cache_info().misses <= events * len(zones)
