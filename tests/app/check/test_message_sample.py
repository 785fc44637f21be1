"""Samples of sources that can be read again; a look at the others changes nothing."""

import json
from pathlib import Path

from tests.sources.brokers import Brokers
from tests.sources.pipelines import kafka, write_config
from typer.testing import CliRunner

from tidings.app.check.review import sample_messages
from tidings.app.cli import app
from tidings.formats.messages import MessageSource
from tidings.model.dead_letter import BadRecord
from tidings.model.records import Event


def film(number: int) -> str:
    return json.dumps({"id": f"e{number}", "published_at": number, "attributes": {"year": number}})


def options(address: str) -> dict[str, str]:
    given = {"kafka.bootstrap.servers": address, "subscribe": "films"}
    return {**given, "startingOffsets": "earliest"}


def test_a_sample_has_the_first_events_and_bad_records() -> None:
    brokers = Brokers()
    brokers.send("films", ["{", *map(film, range(20))], partition=0)
    source = MessageSource("tidings-kafka", options(brokers.address))
    records = list(sample_messages(source, most=5))
    assert [type(record) for record in records] == [BadRecord, *[Event] * 4]


def test_a_source_that_cannot_be_read_again_is_not_touched(tmp_path: Path) -> None:
    spool = tmp_path / "spool.db"
    given = {"urls": "http://127.0.0.1:1/feed", "spool": f"sqlite:///{spool}"}
    assert list(sample_messages(MessageSource("tidings-rss", given))) == []
    assert not spool.exists()


def check(config: Path) -> str:
    one = {"id": "s", "subscriber": "ann", "where": "yaer > 3"}
    (config.parent / "subscriptions.jsonl").write_text(json.dumps(one) + "\n")
    (config.parent / "subscribers.jsonl").write_text('{"id": "ann"}\n')
    result = CliRunner().invoke(app, ["check", str(config)])
    assert result.exit_code == 1, result.output
    return " ".join(result.output.split())


def test_a_check_compares_subscriptions_with_messages(tmp_path: Path) -> None:
    brokers = Brokers()
    brokers.send("films", map(film, range(20)), partition=0)
    output = check(kafka(tmp_path, brokers.address))
    assert "yaer" in output
    assert "year" in output


def test_a_check_names_a_wrong_option_and_a_server_that_is_away(tmp_path: Path) -> None:
    config = write_config(tmp_path, "nats", {"servers": "nats://a:1", "stream": "S", "qos": "1"})
    assert "unknown option 'qos'" in check(config)
    given = {"servers": "nats://127.0.0.1:1", "stream": "S", "token": "Sw0rdfish"}
    output = check(write_config(tmp_path, "nats", {**given, "patienceMs": 500}))
    assert "no connection" in output
    assert "Sw0rdfish" not in output
