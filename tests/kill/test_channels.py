"""Kill -9 of who sends, and of whole runs: every delivery arrives, and repetitions have its key."""

import json
import random
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from threading import Event as Flag
from typing import Any

import pytest
from tests.channels import test_aws_queues, test_jetstream, test_kafka
from tests.channels.sending import declared, deliver
from tests.kill.process import KILLS
from tests.kill.stream import write_stream
from tests.kill.test_service import FORK
from tests.service.running import eventually
from tests.sources.brokers import Brokers
from tests.sources.clouds import ACCOUNT, Cloud
from tests.sources.kills import check_kills, start
from tests.sources.nats_servers import NatsServer
from tests.sources.pipelines import lines, write_config

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
    """A FIFO queue, a FIFO topic of SNS with another queue, a stream, and a topic of Kafka."""

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
    channel = store.channels.find()[0]
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


@pytest.mark.kill
@pytest.mark.parametrize(
    ("source", "engine"),
    [
        ("nats", "local"),
        pytest.param("outbox", "local", marks=pytest.mark.slow),
        pytest.param("kinesis", "local", marks=pytest.mark.slow),
        pytest.param("tidings-kafka", "local", marks=pytest.mark.slow),
        pytest.param("nats", "spark", marks=(pytest.mark.slow, pytest.mark.spark)),
    ],
)
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
    brokers = Brokers()
    receivers = Receivers(moto, nats, brokers, f"from-{source}-{engine}")
    expected = write_stream(tmp_path, files=12)
    options = _fill(source, tmp_path, moto, nats, brokers)
    # Spark takes seconds for a batch: a few are enough for two kills.
    options[_LIMITS[source]] = 20 if engine == "spark" and not KILLS else 5
    config = write_config(tmp_path, source, options)
    config.write_text(config.read_text() + receivers.tables())
    check_kills(config, expected, KILLS or 2, engine)
    with open_store(tmp_path / "news.db") as store:
        for _ in range(5):  # moto may take longer than a run waits; the next one sends the rest
            if all(_is_done(store, channel.id) for channel in store.channels.find()):
                break
            assert start(config, engine).wait() == 0
        receivers.check(stored(store))
    output = (tmp_path / "output").read_text()
    assert ACCOUNT["secretAccessKey"] not in output


_LIMITS = {
    "outbox": "maxRecordsPerTrigger",
    "nats": "maxRecordsPerTrigger",
    "kinesis": "maxRecordsPerTrigger",
    "tidings-kafka": "maxOffsetsPerTrigger",
}


def _fill(source: str, folder: Path, moto: str, nats: str, brokers: Brokers) -> dict[str, Any]:
    """Write the lines of a stream to a source; return the options that read it."""
    values = lines(folder)
    if source == "nats":
        stream = f"films-{folder.name}"  # one server serves several tests
        NatsServer(nats).send(stream, values)
        return {"servers": nats, "stream": stream}
    if source == "outbox":
        with closing(sqlite3.connect(folder / "shop.db")) as shop, shop:
            shop.execute("CREATE TABLE outbox (id INTEGER PRIMARY KEY AUTOINCREMENT, event TEXT)")
            shop.executemany(
                "INSERT INTO outbox (event) VALUES (?)", [(value,) for value in values]
            )
        return {"url": "sqlite:///shop.db", "table": "outbox", "key": "id", "value": "event"}
    if source == "kinesis":
        cloud = Cloud(moto)
        cloud.create("films")
        cloud.send("films", values, key="one")
        return {**cloud.options, "stream": "films"}
    brokers.send("films", values, partition=0)
    given = {"kafka.bootstrap.servers": brokers.address, "subscribe": "films"}
    return {**given, "startingOffsets": "earliest"}
