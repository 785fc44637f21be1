"""The engine finds the same with every index."""

import pickle
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings import (
    Engine,
    Event,
    Policy,
    Relaxed,
    Subscriber,
    Subscription,
    TidingsError,
)
from tidings.index import INDEXES
from tidings.rank.matcher import Matcher
from tidings.testing import SCORERS, Workload, workload

WORK = workload(seed=3, events=60, subscribers=24)


def filled(index: str, work: Workload, feeds: str = "table") -> Engine:
    engine = Engine(index=index, feeds=feeds)
    for subscriber in work.subscribers:
        engine.subscribe(subscriber)
    for subscription in work.subscriptions:
        engine.add(subscription)
    return engine


def ran(index: str) -> list[Any]:
    """Publish everything; in the middle, take some subscriptions out and go on from a snapshot."""
    engine = filled(index, WORK)
    found: list[Any] = [engine.publish_many(WORK.events[:30])]
    for subscription in WORK.subscriptions[::3]:
        engine.remove(subscription.id)
    again = Engine(index=index)
    again.restore(engine.snapshot())
    found.append(again.publish_many(WORK.events[30:]))
    for scorer in SCORERS:
        found += [again.target(event, k=5, scorer=scorer) for event in WORK.events]
    return found


@pytest.mark.parametrize("index", [*INDEXES])
def test_every_index_gives_the_deliveries_and_targets_of_the_scan(index: str) -> None:
    assert ran(index) == ran("scan")


def test_a_restored_engine_keeps_its_index() -> None:
    engine = filled("access", WORK)
    engine.restore(filled("scan", WORK).snapshot())
    assert engine._stages.matcher.index == "access"


def test_an_unknown_index_is_refused_by_name() -> None:
    names = "'scan', 'op', 'access', 'psg', 'auto'"
    with pytest.raises(TidingsError, match=f"index is one of {names}, not 'tree'"):
        Engine(index="tree")


@pytest.mark.parametrize("feeds", ["plain", "table"])
def test_auto_takes_access_when_there_are_many(feeds: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidings.rank.matcher.MANY", 40)
    growing, plain = Engine(feeds=feeds), filled("scan", WORK)
    for subscriber in WORK.subscribers:
        growing.subscribe(subscriber)
    growing.add_many(WORK.subscriptions[:30])
    few = Engine(index="scan", feeds=feeds)
    few.restore(growing.snapshot())
    assert growing.publish_many(WORK.events[:20]) == few.publish_many(WORK.events[:20])
    assert growing._stages.matcher.compiled is None
    for engine in (growing, few):
        for subscription in WORK.subscriptions[30:]:
            engine.add(subscription)
    assert growing.publish_many(WORK.events[20:]) == few.publish_many(WORK.events[20:])
    assert growing._stages.matcher.compiled is not None
    found = growing.target(WORK.events[0], k=5)
    assert found == plain.target(WORK.events[0], k=5)


@pytest.mark.parametrize("feeds", ["plain", "table"])
def test_auto_takes_access_when_a_scan_has_taken_long(
    feeds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.rank.matcher.SEVERAL", 10)
    tests = 20 * len(WORK.subscriptions)
    monkeypatch.setattr("tidings.rank.matcher.SCANNED", tests)
    busy, plain = filled("auto", WORK, feeds), filled("scan", WORK, feeds)
    assert busy.publish_many(WORK.events[:20]) == plain.publish_many(WORK.events[:20])
    assert busy._stages.matcher.compiled is None
    for event in WORK.events[20:]:
        assert busy.publish(event) == plain.publish(event)
        assert busy._stages.matcher.compiled is not None
    asked = filled("auto", WORK, feeds)
    for event in WORK.events[:25]:
        assert asked.target(event, k=5) == plain.target(event, k=5)
    assert asked._stages.matcher.compiled is not None


@pytest.mark.parametrize("feeds", ["plain", "table"])
@settings(max_examples=5)
@given(data=st.data())
def test_auto_takes_access_for_batches_and_scans_for_single_events(
    feeds: str, data: st.DataObject
) -> None:
    """Batches and single events alternate, subscriptions come and go; nothing differs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidings.rank.matcher.AT_ONCE", 3)
        patch.setattr("tidings.rank.matcher.BATCHED", 3)
        patch.setattr("tidings.rank.matcher.SEVERAL", 1000)
        mixed, plain = filled("auto", WORK, feeds), filled("scan", WORK, feeds)
        place = 0
        while place < len(WORK.events):
            count = data.draw(st.sampled_from((1, 1, 2, 5, 9)))
            batch = WORK.events[place : place + count]
            place += count
            assert mixed.publish_many(batch) == plain.publish_many(batch)
            changed = data.draw(st.sampled_from(WORK.subscriptions))
            for engine in (mixed, plain):
                if changed.id in engine._stages.matcher.subscriptions:
                    engine.remove(changed.id)
                else:
                    engine.add(changed)
        mine, theirs = (vars(engine.quality()) for engine in (mixed, plain))
        assert mine.pop("dropped_by") == theirs.pop("dropped_by")
        assert mine == pytest.approx(theirs)


def test_a_scorer_that_fails_alone_is_set_aside_for_batches_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tidings.rank.matcher.AT_ONCE", 2)
    monkeypatch.setattr("tidings.rank.matcher.BATCHED", 1)

    def fails(ranks: Sequence[float]) -> float:
        raise ArithmeticError("no mean")

    scorer = Relaxed(aggregate=fails)
    engine = Engine()
    engine.subscribe(Subscriber("ann", Policy(k=1, scorer=scorer)))
    engine.subscribe(Subscriber("bob", Policy(k=1)))
    engine.add(Subscription("a", "ann", any=[("x = 1", 0.5)]))
    engine.add(Subscription("b", "bob", "x >= 0", prefrank=0.5))
    engine.publish_many(Event(f"e{n}", {"x": 0}, published_at=n) for n in range(4))
    assert engine._stages.matcher.compiled is not None
    assert engine.set_aside == {}
    [only] = engine.publish(Event("alone", {"x": 1}, published_at=5))
    assert only.subscriber == "bob"
    assert "no mean" in engine.set_aside["ann"]
    found = engine.publish_many(Event(f"f{n}", {"x": 1}, published_at=6 + n) for n in range(4))
    assert {each.subscriber for each in found} == {"bob"}


@pytest.mark.parametrize("index", [*INDEXES, "auto"])
def test_a_matcher_travels_to_another_process(index: str) -> None:
    there = Matcher(WORK.subscribers, WORK.subscriptions, index)
    here = pickle.loads(pickle.dumps(there))
    assert here.index == index
    for event in WORK.events[:20]:
        assert here.matches(event) == there.matches(event)
