"""No part of an address but its host and database is shown: not by any door, in no spelling."""

import asyncio
import json
import logging
import re
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace as Namespace
from typing import Any
from urllib.parse import quote

import pytest
from tests.service.receiving import receiver
from typer.testing import CliRunner

from tidings.app.cli import app
from tidings.app.config import load_config
from tidings.channels.guarded_post import open_http, post
from tidings.channels.person_channel import PersonChannel
from tidings.channels.registry import read_channel
from tidings.channels.webhook_target import TargetRules, read_url
from tidings.client import Client
from tidings.errors import TidingsError
from tidings.formats.event_source import KAFKA, TABLE
from tidings.sources import kafka_options
from tidings.sources.registry import open_reader
from tidings.spark.sources import sql_table
from tidings.store import open_database, open_store
from tidings.store.address import read_address

# Each holds the word `Sw0rdfish` or other marks, cut by the signs that addresses use.
PASSWORDS = (
    "Sw0rdfish",
    "Sw0rd/fishy",
    "Sw0rd#fishy",
    "Sw0rd?fishy",
    "Sw0rd@fishy",
    "Sw0rd:fishy",
    "Sw0rd fishy",
    "Sw0rd[fishy]",
    "Sw0rd%fishy",
    "Sw0rd%2Ffishy",
    "Sw0rd=fishy",
    "Sw0rd&fishy",
    "1234/Sw0rdfish",
    "1234?Sw0rdfish=1",
    "Sw0rdfishé漢",
    "Sw0rd'fishy\"",
    "Sw0rd\\fishy",
    "//Sw0rdfish@@",
)
SHAPES = (
    "postgresql://ann:{}@127.0.0.1:1/db",
    "postgres://ann:{}@127.0.0.1:1/db?sslmode=disable",
    "postgresql://ann:{}@127.0.0.1:port/db",
    "postgresql://ann:{}@127.0.0.1:1",
    "postgresql://:{}@127.0.0.1:1/db",
    "postgresql://{}@127.0.0.1:1/db",
    "postgresql://127.0.0.1:1/db?user=ann&password={}",
    "postgresql://127.0.0.1:1/db?passwort={}",
    "postgresql://127.0.0.1:1/db?sslmode={}",
    "postgresql://ann:{}@[::1/db",
    "postgresql+psycopg://ann:{}@host/db",
    "Postgresql://ann:{}@host/db",
    " postgresql://ann:{}@host/db",
    "postgresql:/ann:{}@host/db",
    "postgresql:ann:{}@host/db",
    "postgresql//ann:{}@host/db",
    "://ann:{}@host/db",
    "//ann:{}@host/db",
    "ann:{}@host/db",
    "jdbc:postgresql://host/db?user=ann&password={}",
    "host=127.0.0.1 port=1 user=ann password={} dbname=db",
    "sqlite://ann:{}@host/db",
    "sqlite:///ann:{}@host/db",
    "sqlite:///none/file.db?key={}",
    "mysql://ann:{}@host/db",
    "postgresql://ann:{}@host\n/db",
    "postgresql://ann:{}%40host/db",
    "postgresql://ann:{}\uff20host/db",
    "x://host/db#{}",
    "://host/db#{}",
    "postgresql://ann:{}@host/db\0",
)
ADDRESSES = [shape.format(password) for shape in SHAPES for password in PASSWORDS]
MARKS = ("Sw0rd", "fishy", "1234", "漢")


def leaks(text: str) -> list[str]:
    """Return the marks of a password that a text shows."""
    spelled = set(MARKS) | {quote(mark) for mark in MARKS}
    return [mark for mark in spelled if mark in text]


def refusal(door: Callable[[], Any]) -> str:
    """Return all that is raised at a door, with causes and contexts; what opens raises nothing."""
    try:
        opened = door()
    except TidingsError as error:
        whole, found = "".join(traceback.format_exception(error)), [str(error), repr(error)]
        below = error.__cause__ or error.__context__
        while below is not None:
            found += [str(below), repr(below)]
            below = below.__cause__ or below.__context__
        return "\n".join([*_values_only(whole), *found])
    return f"{opened!r} {opened} {getattr(getattr(opened, 'database', opened), 'name', '')}"


def _values_only(trace: str) -> Iterator[str]:
    """Leave out the lines of source, which are those of this file, too."""
    return (line for line in trace.splitlines() if not line.startswith("    "))


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("shape", SHAPES)
def test_no_address_shows_its_password_where_a_store_is_opened(
    shape: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for password in PASSWORDS:
        address = shape.format(password)
        for door in (open_store, open_database):
            shown = refusal(partial(door, address, patience_s=0))
            assert not leaks(shown), (address, shown)
    assert not leaks(caplog.text)
    assert not leaks(str([*tmp_path.rglob("*")]))


@pytest.mark.parametrize("password", PASSWORDS)
def test_a_password_that_is_encoded_is_read_and_not_shown(password: str) -> None:
    address = read_address(f"postgresql://ann:{quote(password, safe='')}@host:1/news")
    assert (str(address), address.file) == ("postgresql://host/news", None)
    assert not leaks(repr(address))
    assert not leaks(address.hide(f'no user "ann" with {password} or {quote(password, safe="")}'))


CONFIG = """
engine = "{engine}"
{source}
{subscriptions}
{sink}
"""
PARTS = {
    "engine": "local",
    "source": '[source]\npath = "events.jsonl"',
    "subscriptions": '[subscriptions]\npath = "subscriptions.jsonl"',
    "sink": '[sink]\npath = "out"',
}
DOORS = {
    "subscriptions store": {"subscriptions": "[subscriptions]\nstore = {}"},
    "subscriptions": {"subscriptions": "subscriptions = {}"},
    "subscriptions path": {"subscriptions": "[subscriptions]\npath = {}"},
    "subscriptions list": {"subscriptions": "[subscriptions]\nstore = [{}]"},
    "sink store": {"sink": '[sink]\npath = "out"\nstore = {}'},
    "sink path": {"sink": "[sink]\npath = {}\nformat = 3"},
    "sink format": {"sink": '[sink]\npath = "out"\nformat = {}\noptions = {{}}'},
    "sink options": {
        "engine": "spark",
        "sink": '[sink]\npath = "out"\nformat = "jdbc"\n'
        'options = {{ url = {0}, password = {0}, dbtable = "d", more = [{0}] }}',
    },
    "source path": {"source": "[source]\npath = {}"},
    "source": {"source": "source = {}"},
    "source format": {"source": "[source]\nformat = {}\noptions = {{}}"},
    "source url": {
        "engine": "spark",
        "source": '[source]\nformat = "tidings-table"\n'
        'options = {{ url = {}, table = "t", key = "id" }}',
    },
    "kafka": {
        "source": '[source]\nformat = "tidings-kafka"\noptions = {{ "kafka.sasl.password" = {} }}'
    },
}


def toml(text: str) -> str:
    """Return a text as TOML writes it."""
    return json.dumps(text, ensure_ascii=True).replace("\\/", "/")


@pytest.mark.parametrize("door", DOORS)
def test_no_config_shows_a_password(door: str, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text("")
    (tmp_path / "subscriptions.jsonl").write_text(
        '{"id": "s", "subscriber": "ann", "where": "a = 1"}\n'
    )
    path = tmp_path / "pipeline.toml"
    for number, address in enumerate(ADDRESSES):
        parts = PARTS | {name: each.format(toml(address)) for name, each in DOORS[door].items()}
        path.write_text(CONFIG.format(**parts))
        shown = refusal(lambda: load_config(path))
        assert not leaks(shown), (address, shown)
        if number % 60 == 0 and not re.search(r"127|\[::", address):
            _check_commands(path, tmp_path)


def _check_commands(path: Path, folder: Path) -> None:
    for arguments in (
        ["check", str(path)],
        ["check", str(path), "--json"],
        ["run", str(path), "--engine", "local"],
        ["run", str(path), "--engine", "local", "--dry-run", "--json"],
    ):
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code in (0, 1), result.output
        assert not leaks(result.output), result.output
    for file in folder.rglob("*"):
        assert not leaks(file.name)
        if file.is_file() and file != path:
            assert not leaks(file.read_text(errors="replace"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["{}"],
        ["run", "{}"],
        ["check", "{}"],
        ["init", "{}"],
        ["match", "{}", "{}"],
        ["match", "-", "--event={}", "--subscribers={}"],
        ["explain", "{}", "--event", "e", "--subscriber", "ann"],
        ["demo", "{}"],
        ["store", "{}"],
        ["store", "list", "{}", "{}"],
        ["store", "add", "films.db", "{}"],
        ["store", "letters", "films.db", "--limit={}"],
    ],
)
def test_no_argument_in_a_wrong_place_shows_a_password(arguments: list[str]) -> None:
    for address in ADDRESSES[::35]:
        given = [argument.format(address.replace("\0", "")) for argument in arguments]
        result = CliRunner().invoke(app, given)
        assert result.exit_code in (1, 2), result.output
        assert not leaks(re.sub(r"[\s│]", "", result.output)), result.output


@pytest.mark.parametrize("address", ADDRESSES[:: len(PASSWORDS) - 1])
def test_no_source_of_spark_shows_a_password(address: str) -> None:
    options = sql_table.read_options({"url": address, "table": "t", "key": "id"})
    assert not leaks(repr(options))
    given = {"subscribe": "films", "kafka.bootstrap.servers": address}
    assert not leaks(refusal(lambda: kafka_options.read_options(given)))
    given = {"subscribe": "films", "kafka.bootstrap.servers": "a:1", "kafka.sasl.password": address}
    found = kafka_options.read_options(given)
    assert not leaks(repr(found))
    assert not leaks(found.hide(f"Invalid value {address}"))


def test_a_client_of_kafka_does_not_show_values_of_options() -> None:
    broker = pytest.importorskip("tidings.sources.kafka")
    given = {
        "subscribe": "films",
        "kafka.bootstrap.servers": "127.0.0.1:1",
        "kafka.sasl.jaas.config": 'password="Sw0rdfish"',
        "kafka.sasl.oauthbearer.token.endpoint.url": "Sw0rdfish",
    }
    wanted = kafka_options.read_options(given)
    assert not leaks(refusal(lambda: broker.Broker(wanted).latest()))


def test_sources_are_named_as_their_modules_say() -> None:
    assert (KAFKA, TABLE) == ("tidings-kafka", "tidings-table")


SPOOL = "postgresql://ann:Sw0rdfish@127.0.0.1:1/db"
SOURCES: list[tuple[str, dict[str, str]]] = [
    ("tidings-mqtt", {"broker": "mqtt://h", "topics": "a", "client": "c", "spool": SPOOL}),
    ("tidings-mqtt", {"broker": "mqtt://ann:Sw0rd/fishy@h", "topics": "a", "client": "c"}),
    ("tidings-rss", {"urls": "http://127.0.0.1:1/", "spool": SPOOL}),
    ("tidings-rss", {"urls": "http://ann:Sw0rd/fishy@h/x", "spool": "x"}),
    ("tidings-nats", {"servers": "nats://ann:Sw0rd/fishy@h", "stream": "S"}),
    ("tidings-nats", {"servers": "nats://h", "stream": "S", "password": "Sw0rdfish"}),
    ("tidings-nats", {"servers": "nats://h", "stream": "S", "startingSequence": "9" * 5_000}),
    ("tidings-kinesis", {"stream": "s", "endpoint": "http://ann:Sw0rdfish@127.0.0.1:1"}),
    ("tidings-kinesis", {"stream": "s", "secretAccessKey": "Sw0rdfish", "sessionToken": "1234"}),
    ("tidings-outbox", {"url": SPOOL, "table": "t", "key": "k", "value": "v"}),
]


@pytest.mark.parametrize(("name", "options"), SOURCES)
def test_no_message_source_shows_a_password(name: str, options: dict[str, str]) -> None:
    for module in ("paho", "feedparser", "nats", "boto3"):
        pytest.importorskip(module)
    assert not leaks(refusal(lambda: open_reader(name, options)))


ANYWHERE = TargetRules.of(["*"], ["0.0.0.0/0"])
URLS: dict[str, Callable[[str], Any]] = {
    "webhook": lambda url: read_url(url, ANYWHERE).host,
    "chat": lambda url: PersonChannel.load({"kind": "slack", "address": url}, ANYWHERE),
    "client": Client,
    "broker": lambda url: open_reader(
        "tidings-mqtt", {"broker": url, "topics": "a", "client": "c", "spool": "s.db"}
    ),
    "feed": lambda url: open_reader("tidings-rss", {"urls": url, "spool": "s.db"}),
    "nats": lambda url: open_reader("tidings-nats", {"servers": url, "stream": "S"}),
    "kinesis": lambda url: open_reader("tidings-kinesis", {"stream": "s", "endpoint": url}),
    "outbox": lambda url: open_reader(
        "tidings-outbox", {"url": url, "table": "t", "key": "k", "value": "v"}
    ),
    "channel": lambda url: read_channel({"type": "nats", "servers": url, "subject": "s"}),
    "queue": lambda url: read_channel({"type": "sqs", "queue": url}),
    "topic": lambda url: read_channel({"type": "sns", "topic": url}),
    "kafka": lambda url: read_channel({"type": "kafka", "servers": "a:1", "topic": url}),
    "type": lambda url: read_channel({"type": url}),
    "key": lambda url: read_channel({"type": "sqs", "queue": "films", url: "x"}),
    "option": lambda url: open_reader(
        "tidings-nats", {"servers": "nats://h", "stream": "S", url: "x"}
    ),
}


@pytest.mark.parametrize("door", URLS)
def test_no_url_of_any_kind_shows_a_password(door: str) -> None:
    for module in ("httpx2", "paho", "feedparser", "nats", "boto3"):
        pytest.importorskip(module)
    # What comes before a `/` or `?` is a host, even where it was meant as half a password.
    for address in [each for each in ADDRESSES if "1234" not in each][::3]:
        for scheme in ("http", "nats", "mqtt"):
            url = re.sub("postgres(ql)?", scheme, address)
            shown = refusal(partial(URLS[door], url))
            assert not leaks(shown), (url, shown)


def test_the_log_of_a_feed_has_no_secret_of_its_address(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = {"urls": "http://127.0.0.1:1/a?key=Sw0rdfish", "spool": str(tmp_path / "s.db")}
    reader = open_reader("tidings-rss", options)
    reader.latest()
    reader.close()
    assert "http://127.0.0.1:1/a" in caplog.text
    assert not leaks(caplog.text)


def test_no_log_has_the_address_of_a_chat(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever knows it can write to the chat; the HTTP library logs the URLs of other requests."""
    httpx2 = pytest.importorskip("httpx2")
    caplog.set_level(logging.DEBUG)
    rules = TargetRules.of(["*"], ["127.0.0.0/8"])

    async def send(url: str) -> int:
        async with open_http() as http:
            return (await post(http, url, rules, b"{}", {})).status

    with receiver() as chat:
        for path in ("/services/Sw0rdfish", "/hook?sig=Sw0rdfish"):
            assert asyncio.run(send(f"http://127.0.0.1:{chat.server_port}{path}")) == 200
        assert not leaks(caplog.text)
        httpx2.post(f"{chat.url}?shown", content=b"{}")
    assert "/hook?shown" in caplog.text


SIGNED = """The request signature we calculated does not match the signature you provided.

The Canonical String for this request should have been
'POST
/

host:sqs.eu-west-1.amazonaws.com
x-amz-security-token:Sw0rdfish
'
"""


def test_a_wrong_signature_shows_no_session_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may come from the environment or a role, so that it is not among the known secrets."""
    aws_queues = pytest.importorskip("tidings.channels.aws_queues")
    kinesis = pytest.importorskip("tidings.sources.kinesis")
    error = kinesis.ClientError({"Error": {"Code": "Wrong", "Message": SIGNED}}, "ListShards")

    def refuse(*given: Any, **named: Any) -> Any:
        raise error

    monkeypatch.setattr("boto3.client", lambda *_, **__: Namespace(list_shards=refuse))
    reader = open_reader("tidings-kinesis", {"stream": "films"})
    shown = refusal(lambda: reader.starting("latest"))
    monkeypatch.setattr(aws_queues.SqsTransport, "connect", refuse)
    sender = aws_queues.AwsSender(aws_queues.SqsTransport("films"))
    with pytest.raises(TidingsError, match="does not match the signature you provided") as caught:
        asyncio.run(sender.send([]))
    assert "does not match the signature you provided" in shown
    assert not leaks(shown + str(caught.value))
