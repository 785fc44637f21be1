"""A store with an engine: the same deliveries, and a catalogue that an engine can follow."""

from random import Random

import pytest

from tidings import Engine, Subscriber, Subscription
from tidings.model.records import Event
from tidings.store import CatalogueEntry, Store, open_store
from tidings.testing import Workload, workload


def follow(engine: Engine, entry: CatalogueEntry, present: set[tuple[str, str]]) -> None:
    """Apply an entry of the change log to an engine."""
    key, record = (entry.kind, entry.id), entry.record
    if record is None:
        present.remove(key)
        if entry.kind == "subscriber":
            engine.unsubscribe(entry.id)
        else:
            engine.remove(entry.id)
    elif key in present:
        engine.replace(record)
    else:
        present.add(key)
        if isinstance(record, Subscriber):
            engine.subscribe(record)
        else:
            engine.add(record)


def batches(events: list[Event], chance: Random) -> list[list[Event]]:
    """Split a stream at random places."""
    cuts = sorted(chance.sample(range(len(events)), 5))
    bounds = zip([0, *cuts], [*cuts, len(events)], strict=True)
    return [events[low:high] for low, high in bounds]


def filled(address: str, films: Workload) -> Store:
    store = open_store(address)
    store.catalogue.load([*films.subscribers, *films.subscriptions])
    return store


def engine_of(store: Store) -> Engine:
    engine, present = Engine(), set[tuple[str, str]]()
    for entry in store.history.as_of():
        follow(engine, entry, present)
    return engine


@pytest.mark.parametrize("seed", [1, 2])
def test_the_store_holds_the_deliveries_of_the_engine(address: str, seed: int) -> None:
    films, chance = workload(seed), Random(seed)
    store = filled(address, films)
    engine, alone = engine_of(store), Engine()
    for subscriber in films.subscribers:
        alone.subscribe(subscriber)
    for subscription in films.subscriptions:
        alone.add(subscription)
    expected = alone.publish_many(films.events)
    for number, part in enumerate(batches(films.events, chance)):
        deliveries = engine.publish_many(part)
        for _ in range(chance.randint(1, 2)):
            store.notifications.append("films", number, deliveries)
        store.close()
        store = open_store(address)
    for subscriber in films.subscribers:
        own = [delivery for delivery in expected if delivery.subscriber == subscriber.id]
        assert store.notifications.after(subscriber.id, limit=1000) == own
    assert len(expected) > 20
    store.close()


def test_an_engine_that_follows_the_changes_equals_a_new_one(address: str) -> None:
    films, chance = workload(3), Random(3)
    store = filled(address, films)
    follower, present, version = Engine(), set[tuple[str, str]](), 0
    for number in range(20):
        for _ in range(chance.randint(0, 3)):
            change(store, films, chance, number)
        while entries := store.history.changes(version, limit=4):
            for entry in entries:
                follow(follower, entry, present)
            version = entries[-1].version
        followed, new = follower.snapshot(), engine_of(store).snapshot()
        for part in ("subscribers", "subscriptions"):
            assert sorted(followed[part], key=str) == sorted(new[part], key=str)
    store.close()


def change(store: Store, films: Workload, chance: Random, number: int) -> None:
    """Change something at random."""
    chosen = chance.choice(films.subscriptions)
    moved = Subscription(chosen.id, chosen.subscriber, where=f"year = {2000 + number}")
    verb = chance.choice(["load", "remove", "unsubscribe", "subscribe"])
    if verb == "load":
        store.catalogue.load([moved])
    elif verb == "remove":
        store.catalogue.remove("subscription", chosen.id)
    elif verb == "unsubscribe":
        store.catalogue.remove("subscriber", chosen.subscriber)
    else:
        store.catalogue.load(
            subscriber for subscriber in films.subscribers if subscriber.id == chosen.subscriber
        )
