"""Any number of threads may use one engine."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random
from threading import Barrier
from typing import Any

import pyarrow as pa
import pytest
from tests.fuzz import cases

from tidings import Delivery, Engine, Event, Policy, Relaxed, Sliding, Subscriber, Subscription
from tidings.testing import workload

THREADS = 4
WORK = workload(3, events=1, subscribers=12)
KINDS = [
    (index, feeds) for index in ("scan", "op", "psg", "access") for feeds in ("plain", "table")
]
every_kind = pytest.mark.parametrize(("index", "feeds"), KINDS)


@pytest.fixture(autouse=True)
def eager_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def together(work: Callable[[int], Any]) -> list[Any]:
    """Run the same work on several threads at once; an error of one of them is raised here."""
    start = Barrier(THREADS)

    def run(thread: int) -> Any:
        start.wait()
        return work(thread)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, range(THREADS)))


def engine_of(index: str, feeds: str) -> Engine:
    engine = Engine(index=index, feeds=feeds, clock=lambda: 1000.0)
    for subscriber in WORK.subscribers:
        engine.subscribe(subscriber)
    engine.add_many(WORK.subscriptions)
    return engine


def form(name: str, chance: Random) -> dict[str, Any]:
    values = {"genre": chance.choice(["comedy", "drama"]), "year": chance.randint(2000, 2004)}
    return {"id": name, "attributes": values}


def table(name: str, chance: Random) -> pa.Table:
    """Return two events as rows."""
    forms = [form(f"{name}-{n}", chance) for n in range(2)]
    columns = {key: [form["attributes"][key] for form in forms] for key in ("genre", "year")}
    return pa.table({"id": [form["id"] for form in forms], "published_at": [1000.0] * 2, **columns})


def once(deliveries: list[Delivery]) -> None:
    counts = Counter((delivery.subscriber, delivery.event) for delivery in deliveries)
    assert max(counts.values(), default=1) == 1


@pytest.mark.fuzz
@every_kind
def test_all_calls_side_by_side(index: str, feeds: str) -> None:
    engine, turns, rows = engine_of(index, feeds), cases(12), [0] * THREADS

    def busy(thread: int) -> list[Delivery]:
        chance, due = Random(thread), list[Delivery]()
        for n in range(turns):
            name = f"t{thread}-{n}"
            due += engine.publish(form(name, chance))
            due += engine.publish_many(form(f"{name}-{m}", chance) for m in range(5))
            due += engine.publish(form(f"same-{n}", chance))
            engine.subscribe(Subscriber(name, Policy(k=2, window=Sliding(3))))
            engine.add(Subscription(name, name, "year >= 2001"))
            engine.replace(Subscription(name, name, "year >= 2002"))
            engine.feed("u00")
            rows[thread] += engine.publish_table(table(f"{name}-row", chance)).num_rows
            event = Event("q", {"genre": "comedy", "year": 2003}, published_at=0)
            for scorer in ("exact", "relaxed", "preference"):
                assert engine.target(event, scorer=scorer)
                assert len(engine.target_many([event, event], scorer=scorer)) == 2
            engine.explain(name, event)
            engine.explain_targets(event, k=2, others=1)
            engine.match_counts([event])
            engine.quality()
            engine.diagnose()
            engine.describe()
            engine.pause(name)
            engine.resume(name)
            if n % 4 == 0:
                assert engine.snapshot()["subscribers"]
            engine.remove(name)
            engine.unsubscribe(name)
            due += engine.advance(1000 + n)
        return due

    due = [each for found in together(busy) for each in found]
    once([each for each in due if not each.subscriber.startswith("t")])
    # Of the events that all threads publish, each is taken once and refused otherwise.
    assert engine.dead_letters.total == turns * (THREADS - 1)
    # The engine stamps forms inside its lock; rows have a time, which others may have passed.
    assert all("-row-" in event.id for event in engine.late)
    assert engine.quality().delivered == len(due) + sum(rows)


@every_kind
def test_who_publishes_beside_others_loses_nothing_and_gets_nothing_twice(
    index: str, feeds: str
) -> None:
    """All get all of it, so what is delivered does not depend on the order of the threads."""
    engine = Engine(index=index, feeds=feeds, clock=lambda: 0)
    for name in ("ann", "bob"):
        engine.subscribe(Subscriber(name, Policy(k=500, window=Sliding(500))))
        engine.add(Subscription(name, name, "year >= 0"))

    def publish(thread: int) -> list[Delivery]:
        return engine.publish_many(form(f"{thread}-{n}", Random(n)) for n in range(50))

    due = [each for found in together(publish) for each in found]
    once(due)
    assert len(due) == 2 * 50 * THREADS
    assert sorted(each.sequence for each in due if each.subscriber == "ann") == [
        *range(1, 50 * THREADS + 1)
    ]


def test_questions_of_access_wait_for_nobody() -> None:
    engine = engine_of("access", "plain")
    event = Event("q", {"genre": "comedy", "year": 2003}, published_at=0)
    expected = engine.target(event)
    found: list[Any] = []

    def ask(_: Any) -> float:
        with ThreadPoolExecutor(1) as pool:  # another thread, while this one is in the engine
            found.append(pool.submit(engine.target, event).result(timeout=600))
        return 1.0

    engine.subscribe(Subscriber("asks", Policy(scorer=Relaxed(ask))))
    engine.add(Subscription("asks", "asks", "x = 1"))
    engine.publish(Event("e", {"x": 1}, published_at=0))
    assert found == [expected]
    assert engine.set_aside == {}
