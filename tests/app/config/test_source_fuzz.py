"""Tables `[source]` of every kind with anything in them: read, or refused without a secret."""

import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.damage import SECRET, hostile_json, hostile_text, run_cases, shows_secret
from tests.fuzz import cases

from tidings.app.config.source import read_source
from tidings.errors import TidingsError
from tidings.formats.event_source import Source
from tidings.formats.messages import MessageSource
from tidings.sources.registry import open_reader
from tidings.spark.sources import sql_table

pytestmark = pytest.mark.fuzz

EVENT = '{"sku": 7, "ts": "2026-11-16T08:00:00Z", "tags": "a|b", "n": "1,5", "id": "x"}\n'
LAYOUT: dict[str, Any] = {
    "columns": {"id": "sku", "published_at": "ts"},
    "keep": ["tags", "n"],
    "types": {"n": "number,", "published_at": "%Y-%m-%dT%H:%M:%SZ"},
    "lists": {"tags": "|"},
    "generate": ["id"],
    "content": ["n", "title"],
}
DATABASE = f"postgresql://ann:{SECRET}@127.0.0.1:1/db"
KINDS: dict[str, dict[str, Any]] = {
    "files": {"path": "events.jsonl", "files_per_batch": 2, "unreadable": "stop"},
    "csv": {"path": "*.csv", "format": "csv"},
    "kafka": {
        "format": "tidings-kafka",
        "options": {
            "kafka": {
                "bootstrap.servers": "a:1,b:2",
                "sasl.password": SECRET,
                "sasl.username": "ann",
            },
            "subscribe": "films",
            "startingOffsets": '{"films":{"0":23,"1":-2}}',
            "maxOffsetsPerTrigger": 100,
            "failOnDataLoss": "true",
            "kafkaConsumer.pollTimeoutMs": 200,
        },
    },
    "kafka-pattern": {
        "format": "tidings-kafka",
        "options": {"kafka.bootstrap.servers": "a:1", "subscribePattern": "films-.*"},
    },
    "kafka-assign": {
        "format": "tidings-kafka",
        "options": {"kafka.bootstrap.servers": "a:1", "assign": '{"films":[0,1]}'},
    },
    "kinesis": {
        "format": "kinesis",
        "options": {
            "stream": "films",
            "region": "eu-west-1",
            "endpoint": f"http://ann:{SECRET}@host",
            "accessKeyId": "AKIA",
            "secretAccessKey": SECRET,
            "startingPosition": "2026-11-16T08:00:00Z",
            "maxRecordsPerTrigger": 10,
        },
    },
    "nats": {
        "format": "nats",
        "options": {
            "servers": "nats://a:4222,tls://b",
            "stream": "FILMS",
            "subject": "films.>",
            "user": "ann",
            "password": SECRET,
            "startingSequence": "7",
            "patienceMs": 100,
        },
    },
    "nats-address": {
        "format": "nats",
        "options": {"servers": f"nats://ann:{SECRET}@a:4222", "stream": "FILMS"},
    },
    "mqtt": {
        "format": "mqtt",
        "options": {
            "broker": f"mqtt://ann:{SECRET}@localhost:1883",
            "topics": "films/#,more",
            "client": "tidings",
            "spool": "sqlite:///spool.db",
            "password": SECRET,
            "sessionExpirySeconds": 60,
        },
    },
    "rss": {
        "format": "rss",
        "options": {
            "urls": "https://a.example/feed,http://b.example/rss?q=1",
            "spool": DATABASE,
            "minInterval": "15m",
            "times": "seen",
            "maxBytes": 1_000,
        },
    },
    "rss-address": {
        "format": "rss",
        "options": {"urls": f"https://ann:{SECRET}@a.example/feed", "spool": "sqlite:///spool.db"},
    },
    "outbox": {
        "format": "outbox",
        "options": {
            "url": "sqlite:///shop.db",
            "table": "outbox",
            "key": "id",
            "value": "event",
            "starting": "earliest",
            "maxRecordsPerTrigger": 5,
        },
    },
    "postgres": {
        "format": "postgres",
        "options": {
            "url": DATABASE,
            "slot": "tidings",
            "publication": "tidings",
            "operations": "insert,update",
        },
    },
    "table": {
        "format": "tidings-table",
        "options": {"url": DATABASE, "table": "films", "key": "id", "startingAfter": -5},
        "columns": {"id": "cast(id as string)"},
    },
    "spark": {
        "format": "delta",
        "options": {"path": "films", "jdbc.password": SECRET},
        "schema": "id string",
        "select": "select * from source",
        "keep": ["a"],
    },
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "events.jsonl").write_text(EVENT)
    (tmp_path / "events.csv").write_text("sku,ts,tags,n\n7,2026-11-16T08:00:00Z,a|b,1\n")
    with closing(sqlite3.connect(tmp_path / "shop.db")) as shop, shop:
        shop.execute("CREATE TABLE outbox (id INTEGER PRIMARY KEY, event TEXT)")
        shop.execute("INSERT INTO outbox VALUES (1, ?)", [EVENT])
    return tmp_path


def changed(rng: Random, form: dict[str, Any]) -> Any:
    """Change a value of a table, or one of its options, and keep the others."""
    change = rng.random()
    if change < 0.3:
        return hostile_json(rng, form)
    if change < 0.4:
        return form | {rng.choice([*LAYOUT, "options", "schema", "encoding", "schema_file"]): "x"}
    table = form.get("options") if change < 0.9 else form
    texts = {name: str(value) for name, value in _items(table) if isinstance(value, str | int)}
    if not texts:
        return form | {"format": hostile_text(rng, "kafka")}
    name = rng.choice(sorted(texts))
    made = dict(_items(table))
    if change < 0.5:
        made[hostile_text(rng, name)] = made.pop(name)
    else:
        made[name] = hostile_text(rng, texts[name])
    return form | {"options": made} if table is form.get("options") else made


def _items(table: Any) -> Any:
    return table.items() if isinstance(table, dict) else ()


def use(form: Any, folder: Path, rng: Random) -> None:
    """Read a table, check all options, and read what needs no server."""
    source = read_source(form, folder, watched=rng.random() < 0.3)
    assert not shows_secret(repr(source))
    if isinstance(source, MessageSource):
        streaming = rng.choice([None, True, False])
        with closing(open_reader(source.format, source.options, streaming=streaming)) as reader:
            if source.options.get("url", "").startswith("sqlite:") and source.format.endswith("x"):
                start = reader.starting("earliest")
                for span in reader.spans(start, reader.advance(start, reader.latest(), 10)):
                    for batch in reader.read(span):
                        list(source.form.events(batch))
    elif isinstance(source, Source):
        for file in source.files():
            list(source.read(file))
    elif source.format == "tidings-table":
        assert not shows_secret(repr(sql_table.read_options(source.options)))


@pytest.mark.parametrize("kind", KINDS)
def test_sources(folder: Path, kind: str) -> None:
    def case(rng: Random) -> None:
        form: Any = dict(KINDS[kind])
        if kind not in ("spark", "table"):
            form |= {name: LAYOUT[name] for name in LAYOUT if rng.random() < 0.3}
        for _ in range(rng.choice([1, 1, 2, 3])):
            form = changed(rng, form) if isinstance(form, dict) else form
        try:
            use(form, folder, rng)
        except TidingsError as error:
            if shows_secret(str(error)):
                raise AssertionError(str(error)) from None
            raise

    run_cases(kind, case, cases(100))
