"""Damaged and hostile messages are events or bad records, whatever envelope they claim to have."""

import json
from datetime import UTC, datetime
from functools import cache
from io import BytesIO
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests.damage import flipped, hostile_json, run_cases
from tests.fuzz import cases

from tidings.formats.layout import Layout
from tidings.formats.messages import AVRO, FRAMED_AVRO, MessageForm
from tidings.model.dead_letter import BadRecord
from tidings.model.limits import Limits
from tidings.model.records import Event
from tidings.sources.protocol import MESSAGES

fastavro = pytest.importorskip("fastavro")
pytestmark = pytest.mark.fuzz
PUBLIC = Limits.public()
PLAIN = {"id": "e1", "published_at": 7, "attributes": {"a": [1, "x"]}, "content": {"t": {"u": 1}}}
FLAT = {"sku": 7, "ts": "2026-11-16T08:00:00Z", "genre": ["drama"], "more": {"a": None}}
CLOUD = {
    "specversion": "1.0",
    "id": "7",
    "source": "shop",
    "type": "sold",
    "time": "2026-11-16T08:00:00Z",
    "data": {"genre": "drama", "prices": [1, 2.5]},
}
HEADERS = {f"ce_{name}": value for name, value in CLOUD.items() if isinstance(value, str)}
SCHEMA = {
    "type": "record",
    "name": "Film",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
        },
        {"name": "genres", "type": {"type": "array", "items": ["null", "string", "double"]}},
        {"name": "facts", "type": {"type": "map", "values": ["boolean", "int"]}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "key", "type": {"type": "fixed", "name": "Key", "size": 3}},
    ],
}
JSON_FORM, FLAT_FORM = (
    MessageForm(),
    MessageForm(layout=Layout({"id": "sku", "published_at": "ts"})),
)
TEXTS = ["", "\ud800", "\0", "9" * 5_000, "%ff", "2026-13-01", "1.0", "é" * 300, "ce_id"]


@cache
def avro_message() -> bytes:
    film: dict[str, Any] = {"id": "e1", "at": datetime(2026, 11, 16, tzinfo=UTC), "price": 7}
    film |= {"genres": ["drama", None, 1.5], "facts": {"a": True, "b": 7}, "kind": "B"}
    file = BytesIO()
    fastavro.schemaless_writer(file, SCHEMA, film | {"price": b"\2\1", "key": b"abc"})
    return file.getvalue()


@cache
def avro_form(encoding: str) -> MessageForm:
    layout = Layout({"published_at": "at"})
    return MessageForm(encoding, json.dumps(SCHEMA), layout, content=("facts",))


def read(form: MessageForm, *rows: dict[str, Any]) -> None:
    """Read messages: each is an event or a bad record that can be written, and a line of JSON."""
    common = {"partition": "p", "timestamp": datetime(2026, 11, 16, tzinfo=UTC)}
    listed = [{**common, "position": str(n), **row} for n, row in enumerate(rows)]
    batch = pa.RecordBatch.from_pylist(listed, MESSAGES)
    for limits in (Limits.trusted(), PUBLIC):
        found = list(form.events(batch, limits))
        assert all(isinstance(each, Event | BadRecord) for each in found)
        assert all(isinstance(json.dumps(each.to_dict()), str) for each in found)
        reasons = [each.reason for each in found if isinstance(each, BadRecord)]
        assert max(map(len, reasons), default=0) <= 1_000
        assert len(found) == form.lines(batch, limits).num_rows == len(rows)


def json_message(rng: Random) -> None:
    form, value = rng.choice([(JSON_FORM, PLAIN), (JSON_FORM, CLOUD), (FLAT_FORM, FLAT)])
    for _ in range(rng.randint(1, 3)):
        value = hostile_json(rng, value)
    try:
        text = json.dumps(value).encode()
    except RecursionError:
        text = b"[" * 100_000
    good = json.dumps(PLAIN).encode()
    read(form, {"value": flipped(rng, text) if rng.random() < 0.3 else text}, {"value": good})


def header_message(rng: Random) -> None:
    texts = dict(HEADERS)
    for _ in range(rng.randint(1, 3)):
        name = rng.choice([*texts, "ce-specversion", "specversion", ""])
        texts[name] = rng.choice([*TEXTS, *HEADERS.values()])
    encoded = {name: text.encode(errors="replace") for name, text in texts.items()}
    headers = [
        {"key": name, "value": rng.choice([None, b"\xff"]) if rng.random() < 0.1 else text}
        for name, text in encoded.items()
    ]
    value = rng.choice([None, b"", b"{}", b"[1]", b"7", b'{"a": 1}', b"\xff", b'{"data": {}}'])
    read(JSON_FORM, {"value": value, "headers": headers})


def avro_bytes(rng: Random) -> None:
    encoding = rng.choice([AVRO, FRAMED_AVRO])
    value = (b"\0\0\0\0\7" if encoding == FRAMED_AVRO else b"") + avro_message()
    for _ in range(rng.randint(1, 4)):
        value = flipped(rng, value or b"x")
    if rng.random() < 0.3:
        at = rng.randrange(len(value) + 1)
        scrap = rng.choice([b"\xff" * 9 + b"\1", b"\xfe" + b"\xff" * 8, b"\1"])
        value = value[:at] + scrap + value[at:]
    read(avro_form(encoding), {"value": value})


@pytest.mark.parametrize("case", [json_message, header_message, avro_bytes])
def test_messages(case: Any) -> None:
    run_cases(case.__name__, case, cases(200))
