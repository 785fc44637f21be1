"""Topics of Mosquitto: what is acknowledged is spooled, and what comes again is known."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kill.process import KILLS
from tests.kill.stream import write_stream
from tests.sources.kills import check_kills
from tests.sources.mqtt_brokers import MqttBroker, needs_mosquitto, running_mosquitto
from tests.sources.pipelines import check, lines, run_here, write_config

from tidings.errors import SourceError
from tidings.formats.messages import MessageForm
from tidings.sources.mqtt import open_reader, read_options
from tidings.sources.spooled import SpooledReader

GIVEN = {"broker": "mqtt://a:1", "topics": "t", "client": "c", "spool": "sqlite:///x.db"}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MqttBroker]:
    with running_mosquitto(tmp_path_factory.mktemp("mosquitto")) as broker:
        yield broker


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """Return a new topic for each test."""
    return str(abs(hash(request.node.name)))


def reader(broker: MqttBroker, folder: Path, topic: str, **more: str) -> SpooledReader:
    given = {
        "broker": broker.address,
        "topics": f"{topic}/#",
        "client": f"reader-{topic}",
        "spool": f"sqlite:///{folder}/spool.db",
    }
    return open_reader({**given, **more}, None)


def batches(open_one: SpooledReader) -> list[Any]:
    start, end = open_one.starting("latest"), open_one.latest()
    return [batch for span in open_one.spans(start, end) for batch in open_one.read(span)]


def values(open_one: SpooledReader) -> list[bytes]:
    return [row["value"] for batch in batches(open_one) for row in batch.to_pylist()]


@needs_mosquitto
def test_the_broker_keeps_messages_while_nobody_reads(
    broker: MqttBroker, topic: str, tmp_path: Path
) -> None:
    first = reader(broker, tmp_path, topic)
    assert values(first) == []
    broker.send(f"{topic}/a", ["1", "2"])
    first.close()
    broker.send(f"{topic}/b", ["3", b"\xff"])
    again = reader(broker, tmp_path, topic)
    assert values(again) == [b"1", b"2", b"3", b"\xff"]
    again.close()


@needs_mosquitto
def test_what_is_sent_again_is_spooled_once(
    broker: MqttBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that dies between its spool and its acknowledgements gets all messages again."""
    first = reader(broker, tmp_path, topic)
    first.latest()
    monkeypatch.setattr(first._collector._client, "ack", lambda *_: None)  # type: ignore[attr-defined]
    broker.send(f"{topic}/a", ["1", "2", "1"])
    while first._spool.bounds().next < 4:
        time.sleep(0.01)
    first.close()
    again = reader(broker, tmp_path, topic)
    broker.send(f"{topic}/a", ["4"])
    assert values(again) == [b"1", b"2", b"1", b"4"]
    again.close()


@needs_mosquitto
def test_properties_may_hold_the_envelope(broker: MqttBroker, topic: str, tmp_path: Path) -> None:
    first = reader(broker, tmp_path, topic)
    first.latest()
    first.close()
    sold = {"specversion": "1.0", "id": "7", "source": "shop", "type": "sold"}
    broker.send(f"{topic}/a", ['{"genre": "drama"}'], sold)
    again = reader(broker, tmp_path, topic)
    (event,) = [event for batch in batches(again) for event in MessageForm().events(batch)]
    assert event.id == "shop#7"  # type: ignore[union-attr]
    again.close()


@needs_mosquitto
def test_a_wrong_password_is_refused_without_being_shown(tmp_path: Path) -> None:
    with running_mosquitto(tmp_path, "allow_anonymous false") as guarded:
        more = {"user": "ann", "password": "Sw0rdfish", "patienceMs": "60000"}
        refused = reader(guarded, tmp_path, "a", **more)
        with pytest.raises(SourceError, match="the broker refuses: Not authorized") as error:
            refused.latest()
        refused.close()
        assert "Sw0rdfish" not in str(error.value)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"broker": ""}, "option 'broker' is empty; give one such as broker = 'mqtt://localhost"),
        ({"broker": "mqtt://u:Sw0rdfish@a"}, "broker must be an address such as 'mqtt://localhost"),
        ({"broker": "http://a"}, "broker must be an address"),
        ({"client": ""}, "option 'client' is empty"),
        ({"qos": "2"}, "unknown option 'qos'"),
    ],
)
def test_a_wrong_option_is_refused(more: dict[str, str], reason: str) -> None:
    with pytest.raises(SourceError) as error:
        read_options({**GIVEN, **more})
    assert reason in str(error.value)
    assert "Sw0rdfish" not in str(error.value)


def test_an_unreachable_broker_is_named(tmp_path: Path) -> None:
    options = {**GIVEN, "broker": "mqtt://127.0.0.1:1", "spool": f"sqlite:///{tmp_path}/x.db"}
    away = open_reader({**options, "password": "Sw0rdfish", "user": "ann"}, None)
    with pytest.raises(SourceError, match=r"127.0.0.1:1: Connection refused") as error:
        away.latest()
    away.close()
    assert "Sw0rdfish" not in str(error.value)


def config(folder: Path, broker: MqttBroker, topic: str, **more: Any) -> Path:
    options = {"broker": broker.address, "topics": topic, "client": f"run-{topic}"}
    return write_config(folder, "mqtt", {**options, "spool": "sqlite:///spool.db", **more})


@needs_mosquitto
def test_a_restart_resumes_and_everything_is_delivered_once(
    broker: MqttBroker, topic: str, tmp_path: Path
) -> None:
    expected = write_stream(tmp_path, files=8)
    all_lines = lines(tmp_path)
    path = config(tmp_path, broker, topic)
    assert run_here(path).events == 0  # the session begins
    for part in (all_lines[:33], all_lines[33:]):
        broker.send(topic, part)
        assert run_here(path).events == len(part)
    check(tmp_path, expected)


@needs_mosquitto
@pytest.mark.kill
def test_kills_in_mid_stream_lose_nothing_and_repeat_nothing(
    broker: MqttBroker, topic: str, tmp_path: Path
) -> None:
    expected = write_stream(tmp_path, files=12)
    path = config(tmp_path, broker, topic, maxRecordsPerTrigger=1 if KILLS else 5)
    run_here(path)
    broker.send(topic, lines(tmp_path))
    check_kills(path, expected, kills=20 if KILLS else 2)
