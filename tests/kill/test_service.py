"""Kill -9 of the web server and of the pipeline, under load: nothing is lost, nothing comes twice.

Publications are repeated until they are acknowledged, as a client does. The notifications must be
those of an engine that was never disturbed. TIDINGS_KILLS=50 kills more often.
"""

import multiprocessing
import random
import threading
from typing import Any

import httpx2
import pytest
from tests.kill.process import KILLS
from tests.service.running import eventually

from tidings import Engine, Event
from tidings.service.pipelines import run_pipelines
from tidings.service.server import WebServer
from tidings.service.settings import ServiceSettings
from tidings.store import Store, open_store

# A forked child starts in milliseconds; a new interpreter would import for seconds.
FORK = multiprocessing.get_context("fork")
BATCH = 20
PEOPLE: list[dict[str, Any]] = [
    {"id": "ada", "policy": {"k": 2, "window": {"name": "sliding", "length": 6}}},
    {
        "id": "bob",
        "policy": {"k": 2, "window": {"name": "history", "length": 9}, "diversify": "divrank"},
    },
    {"id": "eve", "policy": {"k": 3, "window": {"name": "jumping", "length": 8, "step": 4}}},
]
WISHES: list[dict[str, Any]] = [
    {"id": "s1", "subscriber": "ada", "where": "n >= 5", "prefrank": 0.5},
    {"id": "s2", "subscriber": "ada", "where": "n >= 7", "prefrank": 0.9},
    {"id": "s3", "subscriber": "bob", "where": "n != 3"},
    {"id": "s4", "subscriber": "eve", "where": "n <= 6", "prefrank": 0.3},
]


def serve(address: str, port: int, started: Any) -> None:
    server = WebServer(address, port=port)
    started.send(server.port)
    server.run()


def deliver(address: str, port: int, started: Any) -> None:
    started.send(port)
    run_pipelines(address, ServiceSettings(), threading.Event())


class Victim:
    """A process that is killed and started again."""

    def __init__(self, work: Any, address: str) -> None:
        self._work, self._address, self.port = work, address, 0
        self.start()

    def start(self) -> None:
        receiving, sending = FORK.Pipe(duplex=False)
        arguments = (self._address, self.port, sending)
        self.process = FORK.Process(target=self._work, args=arguments, daemon=True)
        self.process.start()
        self.port = receiving.recv()

    def kill(self) -> None:
        self.process.kill()
        self.process.join(30)


def events(count: int) -> list[Event]:
    chance = random.Random(11)
    return [Event(f"e{n}", {"n": chance.randint(0, 9)}, n) for n in range(count)]


def publish(client: httpx2.Client, url: str, batch: list[Event]) -> bool:
    """Publish a batch; return whether it was acknowledged."""
    try:
        answer = client.post(f"{url}/v1/events", json=[event.to_dict() for event in batch])
    except httpx2.HTTPError:
        return False
    assert answer.status_code in (202, 503), answer.text
    return answer.status_code == 202


def undisturbed(published: list[Event]) -> dict[str, list[str]]:
    engine = Engine()
    for person in PEOPLE:
        engine.subscribe(person)
    engine.add_many(WISHES)
    deliveries = engine.publish_many(published)
    return {
        person["id"]: [each.event for each in deliveries if each.subscriber == person["id"]]
        for person in PEOPLE
    }


def notified(store: Store) -> dict[str, list[str]]:
    return {
        person["id"]: [each.event for each in store.notifications.after(person["id"], 0, 10**6)]
        for person in PEOPLE
    }


@pytest.mark.kill
def test_kills_of_the_service_and_the_pipeline_change_nothing(address: str) -> None:
    kills = KILLS or 4
    chance = random.Random(5)
    batches = 10 * kills
    published = events(BATCH * batches)
    with open_store(address) as store, httpx2.Client(timeout=10) as client:
        store.catalogue.load([*PEOPLE, *WISHES])
        server, pipeline = Victim(serve, address), Victim(deliver, address)
        url = f"http://127.0.0.1:{server.port}"
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
            eventually(lambda batch=batch: publish(client, url, batch))
        last = len(published)
        eventually(lambda: store.log.last().upto == last, patience_s=600)
        assert notified(store) == undisturbed(published)
        server.kill()
        pipeline.kill()
