"""Kafka against librdkafka's mock cluster: order, keys, headers, and trouble."""

import json
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from socket import create_server
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from tests.channels.sending import channel_of, declared, deliver, send_all
from tests.sources.brokers import Brokers
from tests.store.appender import delivery

from tidings.channels.kafka import HEADER, KafkaTransport
from tidings.channels.sender import delivery_key
from tidings.channels.transport import Secret
from tidings.store import Store, open_store

EVENTS = [f"e{number}" for number in range(2_500)]
PATIENCE_S = 60


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "tidings.db") as opened:
        yield opened


@pytest.fixture(scope="module")
def brokers() -> Brokers:
    return Brokers()


def received(brokers: Brokers, topic: str, count: int) -> list[Any]:
    """Return the records of a topic, until there are as many different ones, or no more come.

    Its partitions are assigned: a group waits for more members first.
    """
    settings = {"bootstrap.servers": brokers.address, "group.id": topic, "log_level": 0}
    consumer = Consumer(settings)
    partitions = consumer.list_topics(topic, timeout=60).topics[topic].partitions
    consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in partitions])
    records, last = list[Any](), time.monotonic()
    while len({record.headers()[0][1] for record in records}) < count:
        more = [each for each in consumer.consume(count, 0.5) if each.error() is None]
        records += more
        last = time.monotonic() if more else last
        if time.monotonic() > last + PATIENCE_S:
            break
    consumer.close()
    return records


def test_a_topic_has_the_deliveries_of_each_subscriber_in_order(
    store: Store, brokers: Brokers
) -> None:
    deliver(store, 0, *EVENTS)
    send_all(store, declared("kafka", KafkaTransport(brokers.address, "ordered")))
    records = received(brokers, "ordered", len(EVENTS))
    for name, events in (("ada", EVENTS[0::2]), ("bob", EVENTS[1::2])):
        mine = [record for record in records if record.key() == name.encode()]
        assert [json.loads(each.value())["event"] for each in mine] == events
    stored = store.notifications.after("ada", limit=1)[0]
    first = next(record for record in records if record.key() == b"ada")
    assert first.headers() == [(HEADER, delivery_key(stored).encode())]
    assert json.loads(first.value()) == stored.to_dict()


def test_a_record_that_is_too_long_is_given_up(store: Store, brokers: Brokers) -> None:
    long = replace(delivery("ada", "long"), content_json=json.dumps({"text": "x" * 1_500_000}))
    store.notifications.append("q", 0, [delivery("ada", "a"), long, delivery("ada", "b")])
    send_all(store, declared("kafka", KafkaTransport(brokers.address, "long")))
    records = received(brokers, "long", 2)
    assert [json.loads(record.value())["event"] for record in records] == ["a", "b"]
    [failed] = store.channels.failures(channel_of(store).key)
    assert (failed.number, failed.next_us) == (2, None)


def test_options_that_are_wrong_fail_without_their_secrets(store: Store) -> None:
    deliver(store, 0, "e0")
    options = {"security.protocol": Secret(value="x"), "sasl.password": Secret(value="swordfish9")}
    transport = KafkaTransport("127.0.0.1:1", "topic", options)
    send_all(store, declared("kafka", transport), patience_s=0)
    assert "security.protocol" in str(channel_of(store).reason)
    assert "swordfish9" not in f"{channel_of(store)} {transport}"


def test_brokers_that_are_away_fail_the_channel_and_lose_nothing(
    store: Store, brokers: Brokers
) -> None:
    deliver(store, 0, *EVENTS[:5])
    options = {"message.timeout.ms": Secret(value="300")}
    away = declared("kafka", KafkaTransport("127.0.0.1:1", "back", options))
    send_all(store, away, patience_s=0)
    assert channel_of(store).failures == 1
    assert re.search(r"timed out \(.*refused", str(channel_of(store).reason))
    assert store.channels.backlog(channel_of(store).key).waiting == 5
    send_all(store, declared("kafka", KafkaTransport(brokers.address, "back")))
    records = received(brokers, "back", 5)
    assert {json.loads(record.value())["event"] for record in records} == {*EVENTS[:5]}


def test_a_server_that_says_nothing_is_no_broker(store: Store) -> None:
    deliver(store, 0, "e0")
    options = {"message.timeout.ms": Secret(value="300")}
    with create_server(("127.0.0.1", 0)) as silent:
        place = f"127.0.0.1:{silent.getsockname()[1]}"
        send_all(store, declared("kafka", KafkaTransport(place, "silent", options)), patience_s=0)
    assert str(channel_of(store).reason).endswith("timed out (no broker has confirmed it)")
