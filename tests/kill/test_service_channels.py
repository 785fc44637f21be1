"""Kill -9 of a service and its pipeline: what was accepted by HTTP arrives in every channel.

Publications are repeated until they are acknowledged, as a client does; they are of a later day, so
that the clock makes none of them late. TIDINGS_KILLS=20 kills more often.
"""

import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
from tests.sources.kills import LATER_S, Aim, Killed, Place, Watched, aimed_at, write_account

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
    "local": (Aim.TAKEN, Aim.RESERVED, Aim.SENT),
    "spark": (Aim.PLANNED, Aim.TAKEN, Aim.WRITTEN, Aim.SENT, Aim.TAKEN, Aim.AT_WORK, Aim.RESERVED),
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
    bodies = {
        message.headers["webhook-id"]: json.loads(message.body)["data"] for message in hook.received
    }
    contents = {(message.headers["webhook-id"], message.body) for message in hook.received}
    assert len(contents) == len(bodies)
    own = [delivery.to_dict() for delivery in deliveries if delivery.subscriber == READER]
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
        watched, held = Watched(tmp_path / "tidings.db.spark", engine, store), list[Aim]()
        chats_and_mail = (partial(people.unanswered, kind) for kind in people.kinds)
        unanswered = [partial(unanswered_by, hook), *chats_and_mail]
        for nth in range(kills):
            batch = published[BATCH * nth : BATCH * (nth + 1)]
            aim = AIMS[engine][nth % len(AIMS[engine])]
            with aimed_at(aim, watched, unanswered, len(held)) as reached:
                if nth % 3 == 1:
                    kill_in_request(
                        server, chance.uniform(0, 0.02), partial(publish, client, url, batch)
                    )
                eventually(partial(publish, client, url, batch))
                eventually(lambda reached=reached: reached() or is_all_sent(store), patience_s=600)
                time.sleep(chance.uniform(0, LATER_S[engine].get(aim, 0)))
                pipeline.kill()
            held += [aim] if aim is Aim.TAKEN and reached() else []
            place = watched.place() if engine == "spark" else place_of_steps(store)
            killed.append(Killed(place, watched.sending()))
            watched.end_reservations()
            pipeline = open_pipeline(engine, config)
        eventually(partial(publish, client, url, published[BATCH * kills :]))
        eventually(lambda: store.log.last().upto == len(published), patience_s=600)
        eventually(lambda: is_all_sent(store), patience_s=600)
        server.kill()
        pipeline.kill()
        deliveries = stored(store)
        expected = undisturbed(published)
        for person in READERS:
            own = [delivery for delivery in deliveries if delivery.subscriber == person["id"]]
            assert own == [each for each in expected if each.subscriber == person["id"]]
        repeated = receivers.check(deliveries) | people.check(deliveries)
        repeated[HOOK] = check_webhook(hook, deliveries)
    write_account(tmp_path, killed, repeated)
    for kind in (HOOK, *people.kinds)[: len(held)]:
        assert repeated[kind]  # what was taken without an answer came again, the same
    if KILLS:
        names = {channel.id for channel in receivers.channels()} | {*people.kinds, HOOK}
        assert {name for kill in killed for name in kill.sending} == names


@contextmanager
def unanswered_by(hook: Receiver) -> Iterator[Callable[[], bool]]:
    """Let a webhook be taken without an answer; yield what tells whether one was."""
    with hook.hold.on():
        yield lambda: hook.hold.taken > 0


def kill_in_request(server: Victim, after_s: float, request: Callable[[], bool]) -> None:
    """Kill a web server in the middle of a request, and start it again."""
    timer = threading.Timer(after_s, server.kill)
    timer.start()
    request()
    timer.join()
    server.start()


def place_of_steps(store: Store) -> Place:
    """Return where a pipeline was that writes a step and its deliveries at once."""
    waits = store.log.last().upto < store.publications.last()
    return Place.IN_BATCH if waits else Place.BETWEEN


def is_all_sent(store: Store) -> bool:
    """Return whether everything that was accepted is processed and sent, as far as it is known."""
    pending = store.log.last().upto < store.publications.last()
    return not pending and all(is_done(store, channel.id) for channel in store.channels.find())
