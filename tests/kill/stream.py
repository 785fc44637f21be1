"""The disturbed stream, disordered and with poison records, and its expected outcomes."""

import json
import os
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from tidings import (
    Delivery,
    Different,
    Engine,
    Event,
    Policy,
    Quiet,
    Quota,
    Sliding,
    Subscriber,
    Subscription,
)
from tidings.formats.files import write_subscribers, write_subscriptions
from tidings.model.values import parse_duration_us
from tidings.store import Store
from tidings.testing import workload

LATENESS = "120s"
PER_FILE, LONG = 5, 8
# Events are shuffled within this distance; each is at most 30 s after the one before it.
SHUFFLED = 4
POISON = [
    "{no json",
    '{"id": "nan", "published_at": 1, "attributes": {"year": NaN}}',
    '{"id": [7], "published_at": 1, "attributes": {}}',
    '{"id": "wrong", "published_at": "soon", "attributes": {}}',
    '{"id": "nested", "published_at": 1, "attributes": {"year": {"a": [1]}}}',
    '{"id": "huge", "published_at": "' + "x" * 1_000_000 + '"}',
    "[]",
    "\x00\x01",
]
ANCIENT = Event("ancient", {"genre": "drama", "year": 2003, "good": True}, 0, sequence=0)

QUOTA = Quota(2, per="60s")
NIGHT = Quiet("00:00", "00:02")
RECENT = Sliding(8)
RULED = [
    Subscriber("quota", Policy(k=3, window=RECENT, rules=[QUOTA])),
    Subscriber("quiet", Policy(k=3, window=RECENT, diversify="divrank", rules=[NIGHT])),
    Subscriber("rules", Policy(k=3, window=RECENT, rules=[Different(0.3, "60s"), QUOTA, NIGHT])),
]
"""Subscribers whose rules hold events while a pipeline is killed; the stream begins at midnight."""
RULED_SUBSCRIPTIONS = [
    Subscription(f"{person.id}-{year}", person.id, f"year = {year}", prefrank=(year - 1999) / 10)
    for person in RULED
    for year in range(2000, 2005)
]


@dataclass(frozen=True)
class Expected:
    """Deliveries and dead letters of an undisturbed engine."""

    people: list[Subscriber]
    deliveries: list[Delivery]
    late: list[str]
    dead: int
    held: list[int] = field(default_factory=list)
    """By file: how many deliveries rules held back when the engine had read it."""

    def check(self, store: Store) -> None:
        """Check that a store holds exactly these: no gap, no duplicate, no loss."""
        self.check_deliveries(store)
        late = [letter.record["id"] for letter in store.letters.page("late", limit=1000)]
        assert late == self.late
        assert store.letters.count("dead") == self.dead

    def busiest(self) -> str:
        """Return the subscriber with the most deliveries."""
        return Counter(delivery.subscriber for delivery in self.deliveries).most_common(1)[0][0]

    def check_deliveries(self, store: Store) -> None:
        for person in self.people:
            own = [delivery for delivery in self.deliveries if delivery.subscriber == person.id]
            assert store.notifications.after(person.id, limit=100_000) == own
        assert count(store) == len(self.deliveries)


def count(store: Store) -> int:
    """Return the number of deliveries of all subscribers."""
    rows = store.database.read(lambda session: session.rows("SELECT count(*) FROM deliveries"))
    return int(rows[0][0])


def write_stream(folder: Path, files: int, seed: int = 7) -> Expected:
    """Write a stream as files with its subscriptions; return the expected outcomes."""
    films, chance = workload(seed, events=files * PER_FILE, subscribers=12), Random(seed)
    films = replace(
        films,
        subscribers=[*films.subscribers, *RULED],
        subscriptions=[*films.subscriptions, *RULED_SUBSCRIPTIONS],
    )
    write_subscribers(films.subscribers, folder / "subscribers.jsonl")
    write_subscriptions(films.subscriptions, folder / "subscriptions.jsonl")
    engine = Engine(lateness=LATENESS)
    for person in films.subscribers:
        engine.subscribe(person)
    engine.add_many(films.subscriptions)
    events, deliveries = shuffled(films.events, chance), list[Delivery]()
    (folder / "in").mkdir()
    for number in range(files):
        part = events[number * PER_FILE : (number + 1) * PER_FILE]
        lines = [json.dumps(each.to_dict()) for each in part]
        if number % 4 == 3:
            lines.insert(chance.randrange(PER_FILE), POISON[number // 4 % len(POISON)])
        if number == files - 2:
            part = [*part, ANCIENT]
            lines.append(json.dumps(ANCIENT.to_dict()))
        write(folder, number, lines)
        deliveries += engine.publish_many(part)
    assert len(deliveries) > 2 * files
    times = {event.id: event.published_us for event in (*events, ANCIENT)}
    if files >= LONG:  # or the stream ends before what was held is released
        held = {
            delivery.subscriber
            for delivery in deliveries
            if times[delivery.event] < delivery.delivered_us
        }
        assert held >= {person.id for person in RULED}
    late = [event.id for event in engine.late]
    held_by_file = [
        held_at(events[: (number + 1) * PER_FILE], deliveries, times) for number in range(files)
    ]
    return Expected(films.subscribers, deliveries, late, files // 4, held_by_file)


def held_at(read: list[Event], deliveries: list[Delivery], times: dict[str, int]) -> int:
    """Return how many deliveries rules held back when these events had been read."""
    watermark = max(event.published_us for event in read) - parse_duration_us(LATENESS)
    offered = [delivery for delivery in deliveries if times[delivery.event] <= watermark]
    return sum(each.delivered_us > watermark for each in offered)


def write(folder: Path, number: int, lines: list[str]) -> None:
    """Write a file atomically, with an age that gives its order."""
    path = folder / "in" / f"{number:04d}.jsonl"
    new = folder / f"{number:04d}.new"
    new.write_text("".join(line + "\n" for line in lines))
    os.utime(new, (1_700_000_000 + number, 1_700_000_000 + number))
    new.rename(path)


def shuffled(events: list[Event], chance: Random) -> list[Event]:
    """Shuffle events as far as the lateness allows."""
    found = []
    for start in range(0, len(events), SHUFFLED):
        part = events[start : start + SHUFFLED]
        chance.shuffle(part)
        found += part
    return found
