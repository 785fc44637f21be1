"""A store beside the engine: the same deliveries, and a catalogue that can be followed."""

from random import Random

import pytest

from tidings import Engine, Subscriber, Subscription
from tidings.model.records import Event
from tidings.store import CatalogueEntry, Store, open_store
from tidings.testing import Workload, workload


def follow(engine: Engine, entry: CatalogueEntry, known: set[tuple[str, str]]) -> None:
    """Bring an engine up to an entry of the change log."""
    key, record = (entry.kind, entry.id), entry.record
    if record is None:
        known.remove(key)
        if entry.kind == "subscriber":
            engine.unsubscribe(entry.id)
        else:
            engine.remove(entry.id)
    elif key in known:
        engine.replace(record)
    else:
        known.add(key)
        if isinstance(record, Subscriber):
            engine.subscribe(record)
        else:
            engine.add(record)


def batches(events: list[Event], chance: Random) -> list[list[Event]]:
    """Split a stream anywhere."""
    cuts = sorted(chance.sample(range(len(events)), 5))
    bounds = zip([0, *cuts], [*cuts, len(events)], strict=True)
    return [events[low:high] for low, high in bounds]


def filled(address: str, films: Workload) -> Store:
    store = open_store(address)
    store.catalogue.load([*films.subscribers, *films.subscriptions])
    return store


def engine_of(store: Store) -> Engine:
    engine, known = Engine(), set[tuple[str, str]]()
    for entry in store.history.as_of():
        follow(engine, entry, known)
    return engine


@pytest.mark.parametrize("seed", [1, 2])
def test_the_store_holds_what_the_engine_delivers(address: str, seed: int) -> None:
    films, chance = workload(seed), Random(seed)
    store = filled(address, films)
    engine, alone = engine_of(store), Engine()
    for person in films.subscribers:
        alone.subscribe(person)
    for wanted in films.subscriptions:
        alone.add(wanted)
    expected = alone.publish_many(films.events)
    for number, part in enumerate(batches(films.events, chance)):
        deliveries = engine.publish_many(part)
        for _ in range(chance.randint(1, 2)):
            store.notifications.append("films", number, deliveries)
        store.close()
        store = open_store(address)
    for person in films.subscribers:
        own = [each for each in expected if each.subscriber == person.id]
        assert store.notifications.after(person.id, limit=1000) == own
    assert len(expected) > 20
    store.close()


def test_an_engine_that_follows_the_changes_is_one_that_starts_anew(address: str) -> None:
    films, chance = workload(3), Random(3)
    store = filled(address, films)
    follower, known, version = Engine(), set[tuple[str, str]](), 0
    for number in range(20):
        for _ in range(chance.randint(0, 3)):
            change(store, films, chance, number)
        while entries := store.history.changes(version, limit=4):
            for entry in entries:
                follow(follower, entry, known)
            version = entries[-1].version
        anew = engine_of(store)
        found = follower.snapshot(), anew.snapshot()
        for part in ("subscribers", "subscriptions"):
            assert sorted(found[0][part], key=str) == sorted(found[1][part], key=str)
    store.close()


def change(store: Store, films: Workload, chance: Random, number: int) -> None:
    """Change something at random."""
    wanted = chance.choice(films.subscriptions)
    moved = Subscription(wanted.id, wanted.subscriber, where=f"year = {2000 + number}")
    verb = chance.choice(["load", "remove", "unsubscribe", "subscribe"])
    if verb == "load":
        store.catalogue.load([moved])
    elif verb == "remove":
        store.catalogue.remove("subscription", wanted.id)
    elif verb == "unsubscribe":
        store.catalogue.remove("subscriber", wanted.subscriber)
    else:
        store.catalogue.load(each for each in films.subscribers if each.id == wanted.subscriber)
