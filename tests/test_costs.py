"""The largest subscriptions within the limits, in child processes with bounded CPU time.

A child that exceeds its time is ended by a signal, which fails the test.
"""

import json
import os
import resource
from collections.abc import Callable

import pytest

from tidings.engine.engine import Engine
from tidings.errors import InvalidCondition
from tidings.model.conditions import cover_bulk
from tidings.model.conditions.parser import parse
from tidings.model.records import Event, Subscription
from tidings.policy import Policy, Subscriber
from tidings.score.preference import Preference

pytestmark = pytest.mark.slow
SECONDS = 20
"""Far more than any case takes, and far less than a quadratic algorithm would."""
Made = tuple[list[Subscription], dict[str, object]]


@pytest.fixture(scope="module", autouse=True)
def _kernels() -> None:
    """Compile the kernels before children are forked, whose time does not suffice for it."""
    engine = Engine(index="access")
    engine.subscribe(Subscriber("b", Policy(k=3, scorer=Preference())))
    engine.add_many(Subscription(f"s{n}", "b", f"x > {n} and y < 9") for n in range(3))
    assert engine.publish(Event("e", {"x": 2, "y": 1}, 0))


def within_bounds(work: Callable[[], None], seconds: int = SECONDS) -> None:
    pid = os.fork()
    if not pid:
        status = 1
        try:
            used = resource.getrusage(resource.RUSAGE_SELF)
            most = int(used.ru_utime + used.ru_stime) + seconds
            resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
            work()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0


def lists() -> Made:
    values = [f"'{number}'" for number in range(90_000)]
    texts = [f"x in ({', '.join(values[at:])})" for at in range(2)]
    return [Subscription(f"s{at}", "b", text) for at, text in enumerate(texts)], {"x": "7"}


def weighted() -> Made:
    made = [
        Subscription(f"s{at}", "b", any=[(f"x{n} > {n + at}", 1) for n in range(10_000)])
        for at in range(2)
    ]
    return made, {f"x{n}": n + 5 for n in range(10_000)}


def unequal() -> Made:
    texts = [" and ".join(f"x != {n}" for n in range(at, 10_000)) for at in range(2)]
    return [Subscription(f"s{at}", "b", text) for at, text in enumerate(texts)], {"x": -1}


def alternatives() -> Made:
    texts = [" or ".join(f"x{n} > {n + at}" for n in range(1_000)) for at in range(2)]
    made = [Subscription(f"s{at}", "b", text) for at, text in enumerate(texts)]
    return made, {f"x{n}": n + 5 for n in range(1_000)}


@pytest.mark.parametrize("made", [lists, weighted, unequal, alternatives])
def test_the_largest_subscriptions_are_compared_and_restored(made: Callable[[], Made]) -> None:
    def work() -> None:
        subscriptions, attributes = made()
        engine = Engine(index="access")
        engine.subscribe(Subscriber("b", Policy(k=3, scorer=Preference())))
        engine.add_many(subscriptions)
        engine.publish(Event("e", attributes, 0))
        restored = Engine(index="access")
        restored.restore(json.loads(json.dumps(engine.snapshot())))

    within_bounds(work)


@pytest.mark.parametrize("condition", ["x > {n}", "x > {n} and y between {n} and 9999"])
def test_thousands_of_nested_covers_are_found_at_once(condition: str) -> None:
    def work() -> None:
        engine = Engine(index="access")
        engine.subscribe(Subscriber("b", Policy(k=3, scorer=Preference())))
        texts = [condition.format(n=n) for n in range(2_000)]
        engine.add_many(Subscription(f"s{n}", "b", text) for n, text in enumerate(texts))
        (delivery,) = engine.publish(Event("e", {"x": 20_000, "y": 9_000}, 0))
        assert len(delivery.matched) == 2_000

    within_bounds(work, seconds=10)


@pytest.mark.parametrize("garbage", ["a.", "a+", "f(", "$ ", "not ", "a = 1 and\n", "a in ", "(a"])
def test_a_long_condition_that_is_garbage_is_refused_at_once(garbage: str) -> None:
    def work() -> None:
        with pytest.raises(InvalidCondition):
            parse(garbage * (250_000 // len(garbage)))

    within_bounds(work, seconds=5)


def test_a_subscriber_with_too_many_covers_is_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cover_bulk, "EXACT_PAIRS", 10_000)
    engine = Engine(index="access")
    engine.subscribe(Subscriber("b", Policy(k=3, scorer=Preference())))
    engine.subscribe(Subscriber("c", Policy(k=3, scorer=Preference())))
    engine.add_many(Subscription(f"s{n}", "b", f"x > '{n}'") for n in range(200))
    engine.add(Subscription("c", "c", "x > '1'"))
    delivered = engine.publish(Event("e", {"x": "a"}, 0))
    assert [delivery.subscriber for delivery in delivered] == ["c"]
    assert "comparisons of predicates" in engine.set_aside["b"]
