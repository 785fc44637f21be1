"""Kill -9 of a service and its pipeline: what was accepted by HTTP arrives in every channel.

Publications are repeated until they are acknowledged, as a client does; they are of a later day, so
that the clock makes none of them late. TIDINGS_KILLS=20 kills more often.
"""

import json
import random
import threading
import time
from functools import partial
from pathlib import Path
from threading import Event as Flag
from typing import Any, Protocol

import httpx2
import pytest
from tests.kill.process import KILLS
from tests.kill.receivers import Receivers, is_done, people_at, stored
from tests.kill.test_service import DAY_S, FORK, PEOPLE, WISHES, Victim, events, publish
from tests.kill.test_service_on_spark import SparkPipeline
from tests.ports import reserved_port
from tests.service.receiving import Receiver, receiver
from tests.service.running import eventually
from tests.sources.brokers import Brokers
from tests.sources.clouds import ACCOUNT
from tests.sources.kills import LATER_S, Aim, Killed, Place, Watched, write_account

from tidings import Delivery, Engine, Event
from tidings.app.serve.config import load_serve_config
from tidings.service.server import WebServer
from tidings.service.tenant_threads import run_pipelines
from tidings.store import Store, open_store

BATCH = 6
READERS = PEOPLE[:3]
"""Those without rules, whose deliveries do not depend on when they are published."""
READER, HOOK = "bob", "hook"
TABLE = """
[service]
store = "sqlite:///tidings.db"
future = "30d"
webhook_networks = ["127.0.0.0/8"]
"""
AIMS = {
    "local": (Aim.RESERVED, Aim.SENT),
    "spark": (Aim.PLANNED, Aim.RESERVED, Aim.WRITTEN, Aim.SENT, Aim.AT_WORK, Aim.RESERVED),
}


def serve(path: str, port: int, started: Any, now: Any) -> None:
    config = load_serve_config(path)
    server = WebServer(config.store, config.settings, port=port)
    started.send(server.port)
    server.run()


def run_pipeline(path: str) -> None:
    config = load_serve_config(path)
    run_pipelines(config.store, config.settings, Flag())


class Killable(Protocol):
    """A process that can be killed with all its children."""

    def kill(self) -> None: ...


class LocalPipeline:
    """The pipeline of a service and its dispatcher, in one process."""

    def __init__(self, path: str) -> None:
        self._process = FORK.Process(target=run_pipeline, args=(path,), daemon=True)
        self._process.start()

    def kill(self) -> None:
        self._process.kill()
        self._process.join(30)


def open_pipeline(engine: str, config: Path) -> Killable:
    if engine == "spark":
        return SparkPipeline(str(config), config.parent)
    return LocalPipeline(str(config))


def undisturbed(published: list[Event]) -> list[Delivery]:
    engine = Engine()
    for person in READERS:
        engine.subscribe(person)
    engine.add_many(wishes())
    return engine.publish_many(published)


def wishes() -> list[dict[str, Any]]:
    names = {person["id"] for person in READERS}
    return [wish for wish in WISHES if wish["subscriber"] in names]


def check_webhook(hook: Receiver, deliveries: list[Delivery]) -> int:
    """Check that each delivery came, and that one that came again has its id and its content.

    Return how many messages came again.
    """
    bodies = {each.headers["webhook-id"]: json.loads(each.body)["data"] for each in hook.received}
    contents = {(each.headers["webhook-id"], each.body) for each in hook.received}
    assert len(contents) == len(bodies)
    own = [each.to_dict() for each in deliveries if each.subscriber == READER]
    assert sorted(bodies.values(), key=lambda form: form["sequence"]) == own
    return len(hook.received) - len(bodies)


@pytest.mark.kill
@pytest.mark.slow
@pytest.mark.parametrize(
    "engine",
    ["local", *([pytest.param("spark", marks=pytest.mark.spark)] if KILLS else [])],
)
def test_kills_of_a_service_lose_nothing_on_the_way_to_its_channels(
    engine: str, moto: str, nats: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUT_KEY", ACCOUNT["accessKeyId"])
    monkeypatch.setenv("OUT_SECRET", ACCOUNT["secretAccessKey"])
    kills, chance = KILLS or 2, random.Random(5)
    published = events(BATCH * (kills + 1), (int(time.time()) // DAY_S + 2) * DAY_S)
    receivers, config = Receivers(moto, nats, Brokers(), f"http-{engine}"), tmp_path / "serve.toml"
    killed = list[Killed]()
    with (
        people_at(READER) as people,
        receiver() as hook,
        reserved_port() as port,
        open_store(tmp_path / "tidings.db") as store,
        httpx2.Client(timeout=10) as client,
    ):
        config.write_text(TABLE + receivers.tables() + people.tables())
        store.catalogue.load([*READERS, *wishes()])
        store.webhooks.put(READER, HOOK, hook.url, 0)
        url = f"http://127.0.0.1:{port}"
        server = Victim(serve, str(config), FORK.Value("d", 0.0), port)
        pipeline = open_pipeline(engine, config)
        watched = Watched(tmp_path / "tidings.db.spark", engine, store)
        for nth in range(kills):
            batch = published[BATCH * nth : BATCH * (nth + 1)]
            aim = AIMS[engine][nth % len(AIMS[engine])]
            reached = watched.reaches(aim)
            if nth % 3 == 1:  # the web server too, in the middle of a request
                timer = threading.Timer(chance.uniform(0, 0.02), server.kill)
                timer.start()
                publish(client, url, batch)
                timer.join()
                server.start()
            eventually(partial(publish, client, url, batch))
            eventually(lambda reached=reached: reached() or _is_all_sent(store), patience_s=600)
            time.sleep(chance.uniform(0, LATER_S[engine].get(aim, 0)))
            pipeline.kill()
            place = watched.place() if engine == "spark" else place_of_steps(store)
            killed.append(Killed(place, watched.sending()))
            watched.end_reservations()
            pipeline = open_pipeline(engine, config)
        eventually(partial(publish, client, url, published[BATCH * kills :]))
        eventually(lambda: store.log.last().upto == len(published), patience_s=600)
        eventually(lambda: _is_all_sent(store), patience_s=600)
        server.kill()
        pipeline.kill()
        deliveries = stored(store)
        expected = undisturbed(published)
        for person in READERS:
            own = [each for each in deliveries if each.subscriber == person["id"]]
            assert own == [each for each in expected if each.subscriber == person["id"]]
        repeated = receivers.check(deliveries) | people.check(deliveries)
        repeated[HOOK] = check_webhook(hook, deliveries)
    write_account(tmp_path, killed, repeated)
    if KILLS:
        names = {channel.id for channel in receivers.channels()} | {*people.kinds, HOOK}
        assert {name for kill in killed for name in kill.sending} == names


def place_of_steps(store: Store) -> Place:
    """Return where a pipeline was that writes a step and its deliveries at once."""
    waits = store.log.last().upto < store.publications.last()
    return Place.IN_BATCH if waits else Place.BETWEEN


def _is_all_sent(store: Store) -> bool:
    """Return whether everything that was accepted is processed and sent, as far as it is known."""
    pending = store.log.last().upto < store.publications.last()
    return not pending and all(is_done(store, channel.id) for channel in store.channels.find())
