"""Kill -9 of who sends, and of whole runs: every delivery arrives, and repetitions have its key."""

import random
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from threading import Event as Flag
from typing import Any, NamedTuple

import pytest
from tests.channels.sending import deliver
from tests.kill.process import KILLS, PATIENCE_S
from tests.kill.receivers import Receivers, is_done, people_at, stored
from tests.kill.stream import LONG, Expected, count, write_stream
from tests.kill.test_service import FORK
from tests.service.running import eventually
from tests.sources import test_mqtt, test_rss
from tests.sources.brokers import Brokers
from tests.sources.clouds import ACCOUNT, Cloud
from tests.sources.feed_servers import Answer, FeedServer
from tests.sources.kills import (
    ALL_AIMS,
    Aim,
    Killed,
    Place,
    kill_runs,
    start,
    was_starved,
    write_account,
)
from tests.sources.mqtt_brokers import needs_mosquitto, running_mosquitto
from tests.sources.nats_servers import NatsServer
from tests.sources.pipelines import kafka, lines, run_here, write_config

from tidings import Subscriber
from tidings.channels import Dispatcher
from tidings.channels.registry import declare, openers
from tidings.channels.transport import DeclaredChannel
from tidings.store import Store, open_store

LEASE_S = 11
"""After a kill, another dispatcher waits until the reservation of the first one ends."""


def dispatch(address: str, channels: list[DeclaredChannel], passed_s: Any) -> None:
    with open_store(address) as store:
        Dispatcher(store, openers(channels), lambda: time.time() + passed_s.value).run(Flag())


@pytest.mark.kill
def test_kills_of_the_dispatcher_lose_nothing(moto: str, nats: str, tmp_path: Path) -> None:
    kills, chance, passed_s = KILLS or 2, random.Random(5), FORK.Value("d", 0.0)
    receivers = Receivers(moto, nats, Brokers(), "dispatcher")
    channels, address = receivers.channels(), str(tmp_path / "tidings.db")
    with open_store(address) as store:
        declare(store, channels, 0)
        for nth in range(kills + 1):
            arguments = (address, channels, passed_s)
            process = FORK.Process(target=dispatch, args=arguments, daemon=True)
            process.start()
            for batch in range(3):
                events = [f"e{nth}-{batch}-{number}" for number in range(8)]
                deliver(store, 3 * nth + batch, *events, to=("ada", "bob", "cy"))
            if nth == kills:
                eventually(
                    lambda: all(is_done(store, channel.id) for channel in channels), PATIENCE_S
                )
            else:
                before = _sent(store)
                eventually(lambda seen=before: _sent(store) > seen)
                time.sleep(chance.uniform(0, 0.1))
            process.kill()
            process.join(30)
            passed_s.value += LEASE_S
        receivers.check(stored(store))
        assert len(stored(store)) == (kills + 1) * 24


def _sent(store: Store) -> int:
    return sum(channel.sent for channel in store.channels.find())


SLOW = (pytest.mark.slow,)
SPARK = (pytest.mark.slow, pytest.mark.spark)
PAIRS = [
    pytest.param("nats", "local"),
    pytest.param("postgres", "local", marks=(*SLOW, pytest.mark.postgres)),
    pytest.param("kinesis", "local", marks=SLOW),
    pytest.param("nats", "spark", marks=SPARK),
]
"""A way in of each sort: read again by its numbers, confirmed, and read ahead."""
MORE_PAIRS = [
    pytest.param("outbox", "local", marks=SLOW),
    pytest.param("tidings-kafka", "local", marks=SLOW),
    pytest.param("mqtt", "local", marks=(*SLOW, needs_mosquitto)),
    pytest.param("rss", "local", marks=SLOW),
    pytest.param("outbox", "spark", marks=SPARK),
    pytest.param("tidings-kafka", "spark", marks=SPARK),
    pytest.param("kinesis", "spark", marks=SPARK),
    pytest.param("postgres", "spark", marks=(*SPARK, pytest.mark.postgres)),
    pytest.param("mqtt", "spark", marks=(*SPARK, needs_mosquitto)),
    pytest.param("rss", "spark", marks=SPARK),
]
FIRST = 15 if KILLS else 30
LINES = {"local": 2, "spark": 4} if KILLS else {"local": 30, "spark": 30}
"""Lines of the stream that are sent before the first run, and before each other one, while there
are some. The first must be enough for deliveries, or runs end before anything is sent; a run on
Spark takes long to start, so each is to have some."""
FILES = max(20, 2 * KILLS) if KILLS else LONG
"""Enough for twice as many runs as there are kills: those that miss their aim are not counted."""
ENTRIES = FIRST + max(LINES.values()) * 2 * KILLS
SHOWN = ENTRIES * 2 // 3
"""The newest entries of a feed: enough for those that are added after the last kill."""


@pytest.mark.kill
@pytest.mark.parametrize(("source", "engine"), [*PAIRS, *(MORE_PAIRS if KILLS else [])])
def test_kills_of_a_run_lose_nothing_on_the_way_from_source_to_channels(
    source: str,
    engine: str,
    moto: str,
    nats: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OUT_KEY", ACCOUNT["accessKeyId"])
    monkeypatch.setenv("OUT_SECRET", ACCOUNT["secretAccessKey"])
    receivers = Receivers(moto, nats, Brokers(), f"from-{source}-{engine}")
    kills = KILLS or (2 if engine == "local" else 1)
    aims = ALL_AIMS if KILLS else (Aim.PLANNED, Aim.RESERVED)
    with ExitStack() as stack:
        way_in = WAYS_IN[source](Opening(receivers, engine, tmp_path, stack))
        people = stack.enter_context(people_at(way_in.expected.busiest()))
        tables = receivers.tables() + people.tables()
        way_in.config.write_text(way_in.config.read_text() + tables)
        unanswered = [partial(people.unanswered, kind) for kind in people.kinds]
        killed = kill_runs(way_in.config, kills, engine, aims, way_in.feed, unanswered)
        assert len(killed) == kills
        way_in.feed_rest()
        with open_store(tmp_path / "news.db") as store:
            assert count(store) <= len(way_in.expected.deliveries)
            finish(way_in.config, engine, store)
            way_in.expected.check(store)
            repeated = receivers.check(stored(store)) | people.check(stored(store))
    write_account(tmp_path, killed, repeated)
    unknown = [aims[nth % len(aims)] for nth in range(kills)].count(Aim.TAKEN)
    for kind in people.kinds[:unknown]:
        assert repeated[kind]  # what was taken without an answer came again, the same
    if KILLS:
        check_places(killed, {channel.id for channel in receivers.channels()} | {*people.kinds})
    output = (tmp_path / "output").read_text()
    assert ACCOUNT["secretAccessKey"] not in output


def finish(config: Path, engine: str, store: Store) -> None:
    """Run until everything is sent: moto may take longer than a run waits for it."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        run = start(config, engine)
        assert run.wait() == 0 or was_starved(run), run.output()
        waiting = [each for each in store.channels.find() if not is_done(store, each.id)]
        if not waiting or time.monotonic() > deadline:
            return
        for channel in waiting:
            store.channels.resume(channel.key)


def check_places(killed: Sequence[Killed], channels: set[str]) -> None:
    """Check that the kills were spread over batches, and caught most channels while they sent.

    Not all of them: a receiver that answers in a millisecond is rarely caught.
    """
    assert {kill.place for kill in killed} == {*Place}
    caught = {name for kill in killed for name in kill.sending}
    assert caught <= channels
    assert 2 * len(caught) > len(channels)


Send = Callable[[Sequence[Any]], None]


class WayIn:
    """A config that reads a source, what an engine delivers of it, and what is to be sent there."""

    def __init__(
        self, config: Path, expected: Expected, send: Send, rest: Sequence[Any], engine: str
    ) -> None:
        self.config, self.expected = config, expected
        self._send, self._rest, self._next = send, list(rest), FIRST
        self._engine = engine

    def feed(self) -> bool:
        """Send the next lines to the source; return whether there were any."""
        part, self._rest = self._rest[: self._next], self._rest[self._next :]
        self._next = LINES[self._engine]
        if part:
            self._send(part)
        return bool(part)

    def feed_rest(self) -> None:
        """Send all other lines to the source, which runs are to read in large batches."""
        while self.feed():
            pass
        text, limit = self.config.read_text(), f'PerTrigger" = {LIMITS[self._engine]}\n'
        assert limit in text
        self.config.write_text(text.replace(limit, f'PerTrigger" = {NO_LIMIT}\n'))


LIMITS = {"local": 1, "spark": 4} if KILLS else {"local": 15, "spark": 15}
"""Messages of a batch, which takes seconds on Spark."""
NO_LIMIT = 1_000


class Opening(NamedTuple):
    """The servers that there are, the engine that reads a source, and the folder of its run."""

    receivers: Receivers
    engine: str
    folder: Path
    stack: ExitStack

    @property
    def stream(self) -> str:
        """A name that only this test uses."""
        return f"films-{self.engine}"

    @property
    def limited(self) -> dict[str, int]:
        """The option of a source that limits its batches."""
        return {"maxRecordsPerTrigger": LIMITS[self.engine]}

    def way_in(self, kind: str, options: dict[str, Any], send: Send) -> WayIn:
        """Write a stream and a config; return the way by which its lines are to be sent."""
        expected = write_stream(self.folder, FILES)
        config = write_config(self.folder, kind, {**options, **self.limited})
        return WayIn(config, expected, send, lines(self.folder), self.engine)


def from_nats(opening: Opening) -> WayIn:
    server, stream = NatsServer(opening.receivers.nats), opening.stream
    server.send(stream, [])
    options = {"servers": server.address, "stream": stream}
    return opening.way_in("nats", options, partial(server.send, stream))


def from_kinesis(opening: Opening) -> WayIn:
    cloud, stream = Cloud(opening.receivers.moto), opening.stream
    cloud.create(stream)
    options = {**cloud.options, "stream": stream}
    return opening.way_in("kinesis", options, partial(cloud.send, stream, key="one"))


def from_kafka(opening: Opening) -> WayIn:
    folder, brokers = opening.folder, opening.receivers.brokers
    expected = write_stream(folder, FILES)
    config = kafka(folder, brokers.address, maxOffsetsPerTrigger=LIMITS[opening.engine])
    send = partial(brokers.send, "films", partition=0)
    return WayIn(config, expected, send, lines(folder), opening.engine)


def from_outbox(opening: Opening) -> WayIn:
    shop = opening.stack.enter_context(closing(sqlite3.connect(opening.folder / "shop.db")))
    shop.execute("CREATE TABLE outbox (id INTEGER PRIMARY KEY AUTOINCREMENT, event TEXT)")

    def insert(values: Sequence[str]) -> None:
        with shop:
            rows = [(value,) for value in values]
            shop.executemany("INSERT INTO outbox (event) VALUES (?)", rows)

    options = {"url": "sqlite:///shop.db", "table": "outbox", "key": "id", "value": "event"}
    return opening.way_in("outbox", options, insert)


def from_postgres(opening: Opening) -> WayIn:
    from tests.sources import logical_servers  # noqa: PLC0415 - it loads PostgreSQL's client

    running = opening.stack.enter_context(logical_servers.running_logical())
    shop = opening.stack.enter_context(logical_servers.open_shop(running))
    options = logical_servers.publish_events(shop)
    return opening.way_in("postgres", options, partial(logical_servers.insert, shop))


def from_mqtt(opening: Opening) -> WayIn:
    folder = opening.folder
    (folder / "mosquitto").mkdir()
    broker = opening.stack.enter_context(running_mosquitto(folder / "mosquitto"))
    expected = write_stream(folder, FILES)
    config = test_mqtt.config(folder, broker, "films", **opening.limited)
    first = start(config, opening.engine)  # the session begins
    assert first.wait() == 0, first.output()
    return WayIn(config, expected, partial(broker.send, "films"), lines(folder), opening.engine)


def from_rss(opening: Opening) -> WayIn:
    """Return a way of which an undisturbed run in another folder tells what to expect.

    As feeds do, this one shows only its newest entries.
    """
    server = opening.stack.enter_context(FeedServer().running())
    url = server.set("/feed", Answer(test_rss.rss(*range(ENTRIES))))
    calm = opening.folder / "calm"
    calm.mkdir()
    configs = [test_rss.config(each, url, **opening.limited) for each in (calm, opening.folder)]
    for config in configs:
        config.write_text(config.read_text().replace('"120s"', '"0s"'))
    run_here(configs[0])
    with open_store(calm / "news.db") as store:
        deliveries = store.notifications.after("ann", limit=1_000)
    assert len(deliveries) == ENTRIES

    def show(entries: Sequence[int]) -> None:
        time.sleep(1)  # a feed is not asked more often
        shown = range(max(0, entries[-1] + 1 - SHOWN), entries[-1] + 1)
        server.set("/feed", Answer(test_rss.rss(*shown)))

    expected = Expected([Subscriber("ann")], deliveries, [], 0)
    return WayIn(configs[1], expected, show, range(ENTRIES), opening.engine)


WAYS_IN: dict[str, Callable[[Opening], WayIn]] = {
    "nats": from_nats,
    "kinesis": from_kinesis,
    "tidings-kafka": from_kafka,
    "outbox": from_outbox,
    "postgres": from_postgres,
    "mqtt": from_mqtt,
    "rss": from_rss,
}
