"""The durable engine: its deliveries are those of an engine that was never disturbed."""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings import Engine, Event, Subscriber, Subscription
from tidings.errors import StoreError, TidingsError
from tidings.service.durable_engine import DurableEngine
from tidings.service.pipeline import Pipeline
from tidings.store import NewPublication, Store, open_store

POLICIES: list[dict[str, Any]] = [
    {"k": 2, "window": {"name": "sliding", "length": 5}},
    {"k": 1, "window": {"name": "periodic", "length": "10s"}},
    {"k": 2, "window": "continuous", "diversify": {"name": "divrank", "sigma": 0.5}},
]


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    with open_store(address) as opened:
        yield opened


def people(store: Store) -> None:
    for number, policy in enumerate(POLICIES):
        store.catalogue.put({"id": f"p{number}", "policy": policy})
        wish = {"id": f"s{number}", "subscriber": f"p{number}", "where": "n >= 0"}
        store.catalogue.put({**wish, "prefrank": 0.5})


def events(count: int, seed: int = 7) -> list[Event]:
    chance = random.Random(seed)
    return [Event(f"e{n}", {"n": chance.randint(-1, 3)}, n) for n in range(count)]


def accept(store: Store, published: list[Event]) -> None:
    store.publications.accept([NewPublication(event) for event in published], 0)


def delivered(store: Store) -> dict[str, list[str]]:
    names = [f"p{number}" for number in range(len(POLICIES))]
    return {
        name: [notification.event for notification in store.notifications.after(name, limit=1_000)]
        for name in names
    }


def expected(published: list[Event]) -> dict[str, list[str]]:
    """Return the deliveries of an engine in memory."""
    engine = Engine()
    for number, policy in enumerate(POLICIES):
        engine.subscribe({"id": f"p{number}", "policy": policy})
        engine.add(Subscription(f"s{number}", f"p{number}", where="n >= 0", prefrank=0.5))
    deliveries = engine.publish_many(published)
    return {
        f"p{number}": [
            delivery.event for delivery in deliveries if delivery.subscriber == f"p{number}"
        ]
        for number in range(len(POLICIES))
    }


def run(pipeline: Pipeline) -> None:
    while pipeline.run_once():
        pass


def still(store: Store) -> Pipeline:
    """Return a pipeline whose clock stands at the beginning of time."""
    return Pipeline(store, clock=lambda: 0)


def test_publications_that_have_waited_are_not_late(store: Store) -> None:
    """A pipeline that was down is behind the clock; it takes what waits before time passes."""
    people(store)
    published = events(60)
    run(still(store))
    accept(store, published)
    pipeline = Pipeline(store, clock=lambda: 1_000)
    pipeline.run_once()
    assert delivered(store) == expected(published)
    run(pipeline)
    assert store.letters.count("late") == 0


def test_restarts_change_nothing(store: Store) -> None:
    people(store)
    published = events(60)
    for first in range(0, 60, 7):
        accept(store, published[first : first + 7])
        pipeline = still(store)  # the one before was not asked to save anything
        run(pipeline)
        if first % 3 == 0:
            pipeline.save()
    assert delivered(store) == expected(published)


def test_two_pipelines_take_each_step_once(store: Store) -> None:
    people(store)
    published = events(40)
    one, other = still(store), still(store)
    for first in range(0, 40, 5):
        accept(store, published[first : first + 5])
        run(one if first % 2 else other)
    run(one)
    run(other)
    assert delivered(store) == expected(published)
    assert store.log.last().upto == 40


@given(cuts=st.lists(st.integers(0, 30), max_size=6), saves=st.lists(st.booleans(), max_size=6))
def test_any_cut_of_the_stream_delivers_the_same(tmp_path_factory, cuts, saves) -> None:
    published = events(30, seed=3)
    folder = tmp_path_factory.mktemp("cuts")
    with open_store(folder / "tidings.db") as store:
        people(store)
        bounds = sorted({0, *cuts, 30})
        for first, last, save in zip(bounds, bounds[1:], [*saves, *[False] * 30], strict=False):
            accept(store, published[first:last])
            pipeline = still(store)
            run(pipeline)
            if save:
                pipeline.save()
        assert delivered(store) == expected(published)


def test_followers_have_the_same_feeds(store: Store) -> None:
    people(store)
    follower, pipeline = DurableEngine(store), still(store)
    for number, event in enumerate(events(20)):
        accept(store, [event])
        if number == 7:  # steps before and after a change are not repeated together
            store.catalogue.put(Subscription("more", "p0", where="n > 0"))
        run(pipeline)
        follower.catch_up()
    late_follower = DurableEngine(store)
    late_follower.catch_up()
    pipeline.save()
    restored_follower = DurableEngine(store)
    for number in range(len(POLICIES)):
        feed = pipeline._durable.engine.feed(f"p{number}")
        assert follower.engine.feed(f"p{number}") == feed
        assert late_follower.engine.feed(f"p{number}") == feed
        assert restored_follower.engine.feed(f"p{number}") == feed


def test_changes_take_effect_where_they_were_made(store: Store) -> None:
    pipeline = still(store)
    store.catalogue.put({"id": "p0", "policy": {"k": 5}})
    accept(store, [Event("before", {"n": 1}, 1)])
    run(pipeline)
    store.catalogue.put(Subscription("s0", "p0", where="n = 1"))
    accept(store, [Event("between", {"n": 1}, 2)])
    run(pipeline)
    store.catalogue.load([Subscription("s0", "p0", where="n = 2")])
    accept(store, [Event("after", {"n": 1}, 3)])
    run(pipeline)
    store.catalogue.remove("subscriber", "p0")
    store.catalogue.put(Subscriber("p0"), Subscription("s1", "p0", where="n = 1"))
    accept(store, [Event("again", {"n": 1}, 4)])
    run(pipeline)
    assert delivered(store)["p0"] == ["between", "again"]
    follower = DurableEngine(store)
    follower.catch_up()
    assert follower.step == store.log.last()


def test_time_closes_periods_and_is_repeated(store: Store) -> None:
    now = 0.0
    people(store)
    pipeline = Pipeline(store, clock=lambda: now)
    accept(store, [Event("e1", {"n": 1}, 1)])
    run(pipeline)
    assert delivered(store)["p1"] == []
    now = 100.0
    pipeline._ticked_at = float("-inf")
    run(pipeline)
    assert delivered(store)["p1"] == ["e1"]
    follower = DurableEngine(store)
    follower.catch_up()
    assert [each.event for each in follower.engine.feed("p1")] == []


@pytest.mark.parametrize("state", ["{", "[]", "{}", '{"engine": {}}', "[" * 100_000])
def test_a_damaged_checkpoint_is_refused_by_name(store: Store, state: str) -> None:
    people(store)
    accept(store, events(5))
    pipeline = still(store)
    run(pipeline)
    pipeline.save()
    store.database.write(lambda session: session.run("UPDATE checkpoints SET state = ?", state))
    with pytest.raises(StoreError, match="the checkpoint of its engine") as caught:
        DurableEngine(store)
    assert str(caught.value).startswith(store.database.name)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        ("DELETE FROM steps WHERE number = 1", "step 1 of its engine is missing"),
        (f"UPDATE steps SET clock_us = {2**62} WHERE number = 2", "step 2 of its engine is at no"),
        (
            f"UPDATE steps SET version = {2**62} WHERE number = 2",
            "of its catalogue is missing",
        ),
        (f"UPDATE steps SET upto = {2**62} WHERE number = 2", "publications 5 to .* are missing"),
    ],
)
def test_damaged_steps_are_refused(store: Store, spoil: str, reason: str) -> None:
    people(store)
    pipeline = still(store)
    for first in (0, 2):
        accept(store, events(4)[first : first + 2])
        run(pipeline)
    store.database.write(lambda session: session.run(spoil))
    with pytest.raises(TidingsError, match=reason):
        DurableEngine(store).catch_up()


def test_late_and_damaged_publications_become_letters(store: Store) -> None:
    people(store)
    accept(store, [Event("e2", {"n": 1}, 2), Event("e1", {"n": 1}, 1), Event("e3", {"n": 1}, 3)])
    sql = "UPDATE publications SET form = '{}' WHERE id = 'e3'"
    store.database.write(lambda session: session.run(sql))
    run(still(store))
    assert delivered(store)["p0"] == ["e2"]
    assert [letter.record["id"] for letter in store.letters.page("late")] == ["e1"]
    assert "damaged" in store.letters.page("dead")[0].reason
