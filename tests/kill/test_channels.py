"""Kill -9 of who sends, and of whole runs: every delivery arrives, and repetitions have its key."""

import json
import random
import re
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Event as Flag
from typing import Any, NamedTuple

import pytest
from tests.channels import test_aws_queues, test_jetstream, test_kafka
from tests.channels.mailbox import Mailbox, mail_server
from tests.channels.sending import declared, deliver
from tests.kill import test_mail
from tests.kill.process import KILLS
from tests.kill.stream import Expected, write_stream
from tests.kill.test_service import FORK
from tests.service.running import eventually
from tests.sources import test_feeds, test_mqtt
from tests.sources.brokers import Brokers
from tests.sources.clouds import ACCOUNT, Cloud
from tests.sources.feed_servers import Answer, FeedServer
from tests.sources.kills import check_kills, kill_runs, start
from tests.sources.mqtt_brokers import needs_mosquitto, running_mosquitto
from tests.sources.nats_servers import NatsServer
from tests.sources.pipelines import kafka, lines, run_here, write_config

from tidings import Subscriber
from tidings.channels import Dispatcher
from tidings.channels.aws_queues import SnsTransport, SqsTransport
from tidings.channels.jetstream import JetStreamTransport
from tidings.channels.kafka import HEADER, KafkaTransport
from tidings.channels.registry import declare, openers
from tidings.channels.sender import delivery_key
from tidings.channels.transport import DeclaredChannel
from tidings.model.records import Delivery
from tidings.store import Store, open_store

LEASE_S = 11
"""After a kill, another dispatcher waits until the reservation of the first one ends."""


class Receivers:
    """A FIFO queue, a FIFO topic of SNS with another queue, a stream, and a topic of Kafka.

    Runs also send mail to one of the subscribers.
    """

    def __init__(self, moto: str, nats: str, brokers: Brokers, name: str) -> None:
        self.moto, self.nats, self.brokers, self.name = moto, nats, brokers, name
        self.queue = test_aws_queues.make_queue(moto, f"{name}.fifo")
        self.topic, self.topic_queue = test_aws_queues.make_topic(moto, f"{name}-topic.fifo")
        test_jetstream.add_stream(nats, name)

    def channels(self) -> list[DeclaredChannel]:
        account = test_aws_queues.account(self.moto)
        return [
            declared("sqs", SqsTransport(self.queue, account), "queue"),
            declared("sns", SnsTransport(self.topic, account), "pushed"),
            declared("nats", JetStreamTransport((self.nats,), f"{self.name}.x"), "stream"),
            declared("kafka", KafkaTransport(self.brokers.address, self.name), "topic"),
        ]

    def tables(self) -> str:
        """Return the same as tables of a config, which writes no secrets."""
        account = {"region": ACCOUNT["region"], "endpoint": self.moto}
        keys = {"access_key": {"env": "OUT_KEY"}, "secret_key": {"env": "OUT_SECRET"}}
        forms: list[dict[str, Any]] = [
            {"type": "sqs", "id": "queue", "queue": self.queue, **account, **keys},
            {"type": "sns", "id": "pushed", "topic": self.topic, **account, **keys},
            {"type": "nats", "id": "stream", "servers": self.nats, "subject": f"{self.name}.x"},
            {"type": "kafka", "id": "topic", "servers": self.brokers.address, "topic": self.name},
        ]
        return "".join(f"[[channels]]\n{_toml(form)}" for form in forms)

    def mail_tables(self, box: Mailbox, reader: str) -> str:
        """Return the tables of a config by which a subscriber gets mail at once."""
        server = {"host": "127.0.0.1", "port": box.port, "security": "none", "from": "t@x.example"}
        person = {"subscriber": reader, "kind": "mail", "address": "ada@example.org"}
        return (
            f'[mail]\n{_toml(server)}[template]\ntitle = "{{{{delivery.event}}}}"\n'
            f"[[people]]\n{_toml({**person, 'every': 'delivery'})}"
        )

    def check_mail(self, box: Mailbox, deliveries: Sequence[Delivery], reader: str) -> None:
        """Check that each delivery is in one mail, and that one that came again is the same."""
        mails = test_mail.arrived(box)
        assert all(len(versions) == 1 for versions in mails.values())
        parsed = {mail["Message-ID"]: mail for mail in box.mails}
        bodies = [mail.get_body(("plain",)) for mail in parsed.values()]
        titles = [
            title
            for body in bodies
            if body is not None
            for title in re.findall(r"^\d+\. (\S+)\r?$", body.get_content(), re.MULTILINE)
        ]
        own = [delivery.event for delivery in deliveries if delivery.subscriber == reader]
        assert sorted(titles) == sorted(own)

    def check(self, deliveries: Sequence[Delivery]) -> None:
        """Check that all has arrived, once where the other side de-duplicates, and in order."""
        forms = [delivery.to_dict() for delivery in deliveries]
        for queue in (self.queue, self.topic_queue):
            messages = test_aws_queues.received(self.moto, queue)
            self._check_once([json.loads(message["Body"]) for message in messages], forms)
        stream = test_jetstream.received(self.nats, self.name)
        self._check_once([json.loads(message.data) for message in stream], forms)
        assert [json.loads(message.data) for message in stream] == forms
        headers = [
            record.headers()[0]
            for record in test_kafka.received(self.brokers, self.name, len(forms))
        ]
        assert {*headers} == {(HEADER, delivery_key(each).encode()) for each in deliveries}

    def _check_once(self, found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
        assert len(found) == len(expected)
        for name in {form["subscriber"] for form in expected}:
            own = [form for form in found if form["subscriber"] == name]
            assert own == [form for form in expected if form["subscriber"] == name]


def _toml(form: dict[str, Any]) -> str:
    return "".join(
        f'{name} = {{ env = "{value["env"]}" }}\n'
        if isinstance(value, dict)
        else f"{name} = {json.dumps(value)}\n"
        for name, value in form.items()
    )


def stored(store: Store) -> list[Delivery]:
    """Return all deliveries of a store in the order of commits."""
    channel = store.channels.queues()[0]
    entries = store.outbox.page(_at_the_beginning(channel), 0, 1_000_000).entries
    return [entry.delivery for entry in entries if entry.delivery is not None]


def _at_the_beginning(channel: Any) -> Any:
    return type(channel)(**{**vars(channel), "reached": 0, "key": ""})


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
                eventually(lambda: all(_is_done(store, each.id) for each in channels))
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


def _is_done(store: Store, name: str) -> bool:
    return store.channels.backlog(store.channels.find(name)[0].key).waiting == 0


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
    pytest.param("kinesis", "spark", marks=SPARK),
    pytest.param("tidings-kafka", "spark", marks=SPARK),
]


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
    with ExitStack() as stack:
        box = stack.enter_context(mail_server())
        way_in = _ways_in(receivers, engine)[source](tmp_path, stack)
        tables = receivers.tables() + receivers.mail_tables(box, way_in.reader)
        way_in.config.write_text(way_in.config.read_text() + tables)
        kills = KILLS or 2
        if source == "rss":  # the feed shows its entries only until they were seen once
            assert kill_runs(way_in.config, 1, engine) == 1
            way_in.server.set("/feed", Answer(test_feeds.rss()))
            kills = min(kills, 20)  # of 60 entries, one for each minute of an hour
        check_kills(way_in.config, way_in.expected, kills, engine)
        with open_store(tmp_path / "news.db") as store:
            for _ in range(5):  # moto may take longer than a run waits; the next one sends the rest
                if all(_is_done(store, channel.id) for channel in store.channels.find()):
                    break
                assert start(way_in.config, engine).wait() == 0
            receivers.check(stored(store))
            receivers.check_mail(box, stored(store), way_in.reader)
    output = (tmp_path / "output").read_text()
    assert ACCOUNT["secretAccessKey"] not in output


class WayIn(NamedTuple):
    """A config that reads a stream, what an engine delivers of it, and who gets mail."""

    config: Path
    expected: Expected
    reader: str = "quota"
    server: Any = None


OpenWay = Callable[[Path, ExitStack], WayIn]


def _ways_in(receivers: Receivers, engine: str) -> dict[str, OpenWay]:
    """Return the functions that fill each source and write a config that reads it."""
    files = max(12, KILLS * 3 // 5)
    # Spark takes seconds for a batch: a few are enough for two kills.
    size = 1 if KILLS else 20 if engine == "spark" else 5
    limited = {"maxRecordsPerTrigger": size}

    def from_nats(folder: Path, _: ExitStack) -> WayIn:
        expected = write_stream(folder, files)
        stream = f"films-{engine}"
        NatsServer(receivers.nats).send(stream, lines(folder))
        options = {"servers": receivers.nats, "stream": stream, **limited}
        return WayIn(write_config(folder, "nats", options), expected)

    def from_kinesis(folder: Path, _: ExitStack) -> WayIn:
        expected = write_stream(folder, files)
        cloud, stream = Cloud(receivers.moto), f"films-{engine}"
        cloud.create(stream)
        cloud.send(stream, lines(folder), key="one")
        options = {**cloud.options, "stream": stream, **limited}
        return WayIn(write_config(folder, "kinesis", options), expected)

    def from_kafka(folder: Path, _: ExitStack) -> WayIn:
        expected = write_stream(folder, files)
        receivers.brokers.send("films", lines(folder), partition=0)
        return WayIn(kafka(folder, receivers.brokers.address, maxOffsetsPerTrigger=size), expected)

    def from_outbox(folder: Path, _: ExitStack) -> WayIn:
        expected = write_stream(folder, files)
        rows = [(value,) for value in lines(folder)]
        with closing(sqlite3.connect(folder / "shop.db")) as shop, shop:
            shop.execute("CREATE TABLE outbox (id INTEGER PRIMARY KEY AUTOINCREMENT, event TEXT)")
            shop.executemany("INSERT INTO outbox (event) VALUES (?)", rows)
        options = {"url": "sqlite:///shop.db", "table": "outbox", "key": "id", "value": "event"}
        return WayIn(write_config(folder, "outbox", {**options, **limited}), expected)

    def from_postgres(folder: Path, stack: ExitStack) -> WayIn:
        from tests.sources import logical_servers  # noqa: PLC0415 - it loads PostgreSQL's client

        expected = write_stream(folder, files)
        running = stack.enter_context(logical_servers.running_logical())
        shop = stack.enter_context(logical_servers.open_shop(running))
        options = {**logical_servers.fill(shop, folder), **limited}
        return WayIn(write_config(folder, "postgres", options), expected)

    def from_mqtt(folder: Path, stack: ExitStack) -> WayIn:
        expected = write_stream(folder, files)
        (folder / "mosquitto").mkdir()
        broker = stack.enter_context(running_mosquitto(folder / "mosquitto"))
        config = test_mqtt.config(folder, broker, "films", **limited)
        run_here(config)  # the session begins
        broker.send("films", lines(folder))
        return WayIn(config, expected)

    def from_rss(folder: Path, stack: ExitStack) -> WayIn:
        """An undisturbed run in another folder tells what to expect."""
        server = stack.enter_context(FeedServer().running())
        url = server.set("/feed", Answer(test_feeds.rss(*range(60))))
        calm = folder / "calm"
        calm.mkdir()
        configs = [test_feeds.config(each, url, **limited) for each in (calm, folder)]
        for config in configs:
            config.write_text(config.read_text().replace('"120s"', '"0s"'))
        run_here(configs[0])
        with open_store(calm / "news.db") as store:
            deliveries = store.notifications.after("ann", limit=1_000)
        assert len(deliveries) == 60
        return WayIn(configs[1], Expected([Subscriber("ann")], deliveries, [], 0), "ann", server)

    return {
        "nats": from_nats,
        "kinesis": from_kinesis,
        "tidings-kafka": from_kafka,
        "outbox": from_outbox,
        "postgres": from_postgres,
        "mqtt": from_mqtt,
        "rss": from_rss,
    }
