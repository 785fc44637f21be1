"""Avro messages with a schema from a file."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from typing import Any
from uuid import UUID

import pytest

from tidings.errors import InvalidForm
from tidings.formats.avro import avro_decoder

fastavro = pytest.importorskip("fastavro")
SCHEMA = {
    "type": "record",
    "name": "Film",
    "fields": [
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
        },
        {"name": "genres", "type": {"type": "array", "items": "string"}},
        {"name": "note", "type": ["null", "string"], "default": None},
    ],
}
NAME = UUID("12345678123456781234567812345678")
AT = datetime(2026, 11, 16, tzinfo=UTC)


def encoded() -> bytes:
    film: dict[str, Any] = {
        "id": NAME,
        "at": AT,
        "day": date(2026, 11, 16),
        "price": Decimal("7.50"),
        "genres": ["drama"],
        "note": None,
    }
    file = BytesIO()
    fastavro.schemaless_writer(file, SCHEMA, film)
    return file.getvalue()


@pytest.mark.parametrize("framed", [False, True])
def test_a_record_becomes_values_of_json_and_times(framed: bool) -> None:
    decode = avro_decoder(json.dumps(SCHEMA), framed=framed)
    frame = b"\0\0\0\0\x07" if framed else b""
    assert decode(frame + encoded()) == {
        "id": str(NAME),
        "at": AT,
        "day": "2026-11-16",
        "price": 7.5,
        "genres": ["drama"],
        "note": None,
    }


def test_bytes_that_are_left_over_are_refused() -> None:
    with pytest.raises(InvalidForm, match="3 bytes are left after the Avro record"):
        avro_decoder(json.dumps(SCHEMA), framed=False)(encoded() + b"abc")


@pytest.mark.parametrize("schema", ["", "{}", '{"type": "nonsense"}'])
def test_a_wrong_schema_is_refused(schema: str) -> None:
    with pytest.raises(InvalidForm, match="the Avro schema cannot be read"):
        avro_decoder(schema, framed=False)
