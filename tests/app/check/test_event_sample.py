"""Samples of events with which subscriptions are compared."""

import pytest

from tidings import Event, Subscription
from tidings.app.check import audit as module
from tidings.app.check.audit import EventSample


def subscriptions(*conditions: str) -> list[Subscription]:
    return [Subscription(f"s{n}", "ann", where=text) for n, text in enumerate(conditions, start=1)]


def never(_: Subscription) -> bool:
    return False


def sample_of(count: int) -> EventSample:
    sample = EventSample()
    for number in range(count):
        sample.add(Event(f"e{number}", {"n": number}, published_at=number))
    return sample


def test_the_events_that_are_kept_are_spread_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SAMPLE_SIZE", 4)
    kept = [event.attributes["n"] for event in sample_of(20)._events]
    assert kept == [0, 8, 16]


def test_a_subscription_is_tried_on_the_events() -> None:
    wanted = subscriptions("n = 3", "n = 3 and n != 3", "n > 2 and n < 4")
    found = sample_of(5).diagnose(wanted, never)
    assert (found.unmatched, found.examples, found.tried) == (1, ("s2",), 5)
    parts = sample_of(5).diagnose(wanted, lambda one: one.id == "s2")
    assert parts.unmatched == 0


def test_many_subscriptions_are_tried_on_fewer_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_TRIALS", 10)
    monkeypatch.setattr(module, "FEWEST", 2)
    assert sample_of(9).diagnose(subscriptions("n = 0"), never).tried == 9
    assert sample_of(9).diagnose(subscriptions(*["n = 0"] * 3), never).tried == 3
    assert sample_of(9).diagnose(subscriptions(*["n = 0"] * 6), never).unmatched is None


def test_without_events_there_is_nothing_to_say() -> None:
    found = EventSample().diagnose(subscriptions("n = 3"), never)
    assert (found.findings, found.events) == ((), 0)
