"""Kill -9 of the web server and of the pipeline, under load: nothing is lost, nothing comes twice.

Publications are repeated until they are acknowledged, as a client does. The notifications must be
those of an engine that was never disturbed, also where rules held events during a kill. An event
comes every minute, so that the hours and nights of the rules pass; the clock of the pipeline is the
time of the last event. TIDINGS_KILLS=50 kills more often.
"""

import multiprocessing
import random
import threading
from functools import partial
from typing import Any

import httpx2
import pytest
from tests.kill.process import KILLS
from tests.ports import reserved_port
from tests.service.running import eventually

from tidings import Delivery, Engine, Event
from tidings.model.values import SECOND_US, moment
from tidings.service.pipeline import PATIENCE_US, Pipeline
from tidings.service.server import WebServer
from tidings.store import Store, open_store

# A forked child starts in milliseconds; a new interpreter would import for seconds.
FORK = multiprocessing.get_context("fork")
BATCH = 20
MINUTE_S = 60
DAY_S = 24 * 60 * MINUTE_S
TEN = {"name": "sliding", "length": 10}
LESS_OF_THE_SAME = {"name": "different", "within": "10m"}
SOME = {"name": "quota", "n": 40, "per": "4h"}
NIGHTS = {"name": "quiet", "start": "01:00", "end": "11:00", "zone": "Europe/Athens"}
PEOPLE: list[dict[str, Any]] = [
    {"id": "ada", "policy": {"k": 2, "window": {"name": "sliding", "length": 6}}},
    {
        "id": "bob",
        "policy": {"k": 2, "window": {"name": "history", "length": 9}, "diversify": "divrank"},
    },
    {"id": "eve", "policy": {"k": 3, "window": {"name": "jumping", "length": 8, "step": 4}}},
    {"id": "rob", "policy": {"k": 4, "window": TEN, "rules": [SOME]}},
    {"id": "sue", "policy": {"k": 9, "window": TEN, "diversify": "divrank", "rules": [NIGHTS]}},
    {"id": "una", "policy": {"k": 9, "window": TEN, "rules": [LESS_OF_THE_SAME, SOME, NIGHTS]}},
]
WISHES: list[dict[str, Any]] = [
    {"id": "s1", "subscriber": "ada", "where": "n >= 5", "prefrank": 0.5},
    {"id": "s2", "subscriber": "ada", "where": "n >= 7", "prefrank": 0.9},
    {"id": "s3", "subscriber": "bob", "where": "n != 3"},
    {"id": "s4", "subscriber": "eve", "where": "n <= 6", "prefrank": 0.3},
    *(
        {"id": f"{owner}{n}", "subscriber": owner, "where": f"n = {n}", "prefrank": n / 10}
        for owner in ("rob", "sue", "una")
        for n in range(10)
    ),
]


def serve(address: str, port: int, started: Any, now: Any) -> None:
    server = WebServer(address, port=port)
    started.send(server.port)
    server.run()


def deliver(address: str, port: int, started: Any, now: Any) -> None:
    started.send(port)
    with open_store(address) as store:
        Pipeline(store, clock=lambda: now.value + PATIENCE_US / SECOND_US).run(threading.Event())


class Victim:
    """A process that is killed and started again; `now` is the clock that all of them share."""

    def __init__(self, work: Any, address: str, now: Any, port: int) -> None:
        self._work, self._address, self._now, self._port = work, address, now, port
        self.start()

    def start(self) -> None:
        receiving, sending = FORK.Pipe(duplex=False)
        arguments = (self._address, self._port, sending, self._now)
        self.process = FORK.Process(target=self._work, args=arguments, daemon=True)
        self.process.start()
        assert receiving.recv() == self._port

    def kill(self) -> None:
        self.process.kill()
        self.process.join(30)


def events(count: int, start_s: int = 0) -> list[Event]:
    chance = random.Random(11)
    return [
        Event(f"e{n}", {"n": chance.randint(0, 9)}, start_s + MINUTE_S * n) for n in range(count)
    ]


def publish(client: httpx2.Client, url: str, batch: list[Event]) -> bool:
    """Publish a batch; return whether it was acknowledged."""
    try:
        answer = client.post(f"{url}/v1/events", json=[event.to_dict() for event in batch])
    except httpx2.HTTPError:
        return False
    assert answer.status_code in (202, 503), answer.text
    return answer.status_code == 202


def undisturbed(published: list[Event], end_s: int | None = None) -> dict[str, list[Delivery]]:
    """Return what an engine delivers that nobody kills, and whose clock moves on to an end."""
    engine = Engine()
    for person in PEOPLE:
        engine.subscribe(person)
    engine.add_many(WISHES)
    deliveries = engine.publish_many(published)
    if end_s is not None:
        deliveries += engine.advance(moment(end_s * SECOND_US))
    return {
        person["id"]: [delivery for delivery in deliveries if delivery.subscriber == person["id"]]
        for person in PEOPLE
    }


def notified(store: Store) -> dict[str, list[Delivery]]:
    return {person["id"]: store.notifications.after(person["id"], 0, 10**6) for person in PEOPLE}


def has_received(store: Store, subscriber: str, count: int) -> bool:
    return store.notifications.inbox(subscriber).last >= count


def held_during(published: list[Event], deliveries: list[Delivery], us: int) -> list[str]:
    """Return the deliveries of events that were held at an instant."""
    times = {event.id: event.published_us for event in published}
    return [
        delivery.subscriber
        for delivery in deliveries
        if times[delivery.event] < us < delivery.delivered_us
    ]


@pytest.mark.kill
def test_kills_of_the_service_and_the_pipeline_change_nothing(address: str) -> None:
    kills = KILLS or 4
    chance = random.Random(5)
    batches = 10 * kills
    published = events(BATCH * batches)
    now = FORK.Value("d", 0.0)
    with (
        reserved_port() as port,
        open_store(address) as store,
        httpx2.Client(timeout=10) as client,
    ):
        store.catalogue.load([*PEOPLE, *WISHES])
        server, pipeline = (Victim(work, address, now, port) for work in (serve, deliver))
        url = f"http://127.0.0.1:{port}"
        due = sorted(chance.sample(range(batches), kills))
        for number in range(batches):
            batch = published[BATCH * number : BATCH * (number + 1)]
            if number in due:
                victim = chance.choice((server, pipeline))
                # In the middle of a request, or of the step that follows it.
                timer = threading.Timer(chance.uniform(0, 0.02), victim.kill)
                timer.start()
                publish(client, url, batch)
                timer.join()
                victim.start()
            eventually(partial(publish, client, url, batch))
            now.value = batch[-1].published_us / SECOND_US
        last = len(published)
        eventually(lambda: store.log.last().upto == last, patience_s=600)
        now.value = end_s = MINUTE_S * last + DAY_S
        expected = undisturbed(published, end_s)
        for name, own in expected.items():
            # The first release may have to wait for its kernels to be compiled.
            eventually(partial(has_received, store, name, len(own)), patience_s=600)
        assert notified(store) == expected
        everything = [delivery for own in expected.values() for delivery in own]
        killed_at = [published[BATCH * number].published_us for number in due]
        held = [name for us in killed_at for name in held_during(published, everything, us)]
        assert held
        server.kill()
        pipeline.kill()
