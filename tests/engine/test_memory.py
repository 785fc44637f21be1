"""What an engine remembers, and what it says when that is not enough."""

from typing import Any

import pytest

from tidings import (
    Continuous,
    Engine,
    Event,
    History,
    Jumping,
    Periodic,
    Policy,
    Sliding,
    Subscriber,
    Subscription,
)


def publish(engine: Engine, *ranks: int, first: int = 0) -> None:
    for number, rank in enumerate(ranks, start=first):
        engine.publish(Event(f"e{number}", {"r": rank}, published_at=number))


def engine_of(window: Any, remember: int = 100) -> Engine:
    engine = Engine(remember=remember, feeds="plain")
    engine.subscribe(Subscriber("ann", Policy(k=1, window=window)))
    for rank in range(1, 6):
        engine.add(Subscription(f"r{rank}", "ann", where=f"r = {rank}", prefrank=rank / 10))
    return engine


OLDER = "the window may have held older events, which are no longer remembered"


@pytest.mark.parametrize(
    ("window", "note"),
    [
        (Sliding(2), None),
        (Sliding(3), OLDER),
        (Sliding(2, count="published"), None),
        (Sliding("1s"), None),
        (Sliding("9s"), OLDER),
        (Sliding(2, delivered="leave"), OLDER),
        (Periodic("1s"), None),
        (Periodic("1s", wait=True), OLDER),
        (Periodic(2), OLDER),
        (Jumping("2s", "1s"), OLDER),
        (Jumping("1s", "1s"), None),
        (Jumping(2, 1), OLDER),
        (Continuous("1s"), None),
        (Continuous(), OLDER),
        (History(2), OLDER),
    ],
)
def test_a_replay_says_if_older_events_may_matter(window: Any, note: str | None) -> None:
    engine = engine_of(window, remember=3)
    publish(engine, 5, 5, 3, 2, 1, 1)  # e3, e4 and e5 are remembered
    engine.advance(100)
    explanation = engine.explain("ann", "e4")
    assert explanation.delivery is not None or explanation.note == note


def test_a_window_that_began_later_has_nothing_to_say() -> None:
    engine = engine_of(Sliding(3))
    publish(engine, 2)
    engine.subscribe(Subscriber("bob", Policy(k=1, window=Sliding(3))))
    engine.add(Subscription("b1", "bob", where="r > 1"))
    publish(engine, 3, 1, first=1)
    assert engine.explain("bob", "e0").note == (
        "the subscriber got its present window after the event"
    )
    assert engine.explain("bob", "e1").delivery is not None
    assert "  note: the subscriber got" in str(engine.explain("bob", "e0"))


def test_a_subscription_that_was_added_later_did_not_match() -> None:
    engine = engine_of(Sliding(3))
    publish(engine, 1, 9, 2)
    engine.add(Subscription("later", "ann", where="r = 9", prefrank=1))
    assert (
        engine.explain("ann", "e1").note == "its matching subscriptions were added after the event"
    )
    publish(engine, 1, first=3)
    found = engine.explain("ann", "e3")  # e1 never stood in a window, or it would be chosen
    assert (found.note, found.standing is not None) == (None, True)
    assert found.standing is not None
    assert [rival.event for rival in found.standing.choices[-1].chosen] == ["e2"]


def test_changed_subscriptions_are_told() -> None:
    changed = "its subscriptions have changed; this is by the present ones"
    engine = engine_of(Sliding(3))
    publish(engine, 5, 1)
    engine.remove("r2")
    assert engine.explain("ann", "e1").note == changed
    engine = engine_of(Sliding(3))
    publish(engine, 5, 1)
    engine.replace(Subscription("r2", "ann", where="r = 2", prefrank=1))
    assert engine.explain("ann", "e1").note == changed
    engine = engine_of(Sliding(3))
    publish(engine, 5, 1)
    engine.replace(Subscriber("ann", Policy(k=1, window=Sliding(3), scorer="exact")))
    assert engine.explain("ann", "e1").note == changed


def test_an_event_that_was_never_published_has_a_rank_only() -> None:
    engine = engine_of(Sliding(3))
    found = engine.explain("ann", Event("new", {"r": 3}, published_at=0))
    assert (found.rank, found.standing) == (0.3, None)
    assert found.note == "the event is not among those that this engine remembers"


def test_a_restored_engine_does_not_know_what_its_windows_hold() -> None:
    engine, twin = engine_of(Sliding(3)), Engine()
    publish(engine, 5)
    twin.restore(engine.snapshot())
    publish(twin, 1, first=1)
    assert twin.explain("ann", "e1").note == OLDER


def test_changes_older_than_all_events_are_forgotten() -> None:
    engine = engine_of(Sliding(2), remember=2)
    publish(engine, 5)
    engine.add(Subscription("s", "ann", where="r = 7"))
    engine.remove("r5")
    publish(engine, 5, 4, 3, 2, 1, first=1)
    memory = engine._memory
    assert (memory._added, memory._changed) == ({}, {})
    engine.unsubscribe("ann")
    assert not memory._enrolled
