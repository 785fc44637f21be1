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


NULLS = {"type": "array", "items": "null"}
LINKED = {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}
EMPTY = {"type": "record", "name": "E", "fields": [{"name": "n", "type": "null"}]}
NOTHING = {"type": "fixed", "name": "F", "size": 0}


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (LINKED, "the type N contains itself"),
        (NULLS, "the items of an array take no bytes"),
        ({"type": "array", "items": EMPTY}, "the items of an array take no bytes"),
        ({"type": "array", "items": NOTHING}, "the items of an array take no bytes"),
        ({"type": "map", "values": NULLS}, "the items of an array take no bytes"),
        ({**EMPTY, "fields": [{"name": "l", "type": ["null", LINKED]}]}, "the type N contains"),
    ],
)
def test_a_schema_that_lets_a_message_take_everything_is_refused(schema: Any, reason: str) -> None:
    """A megabyte would nest a million levels and end the process; ten bytes claim any length."""
    with pytest.raises(InvalidForm, match=reason):
        avro_decoder(json.dumps(schema), framed=False)


def test_a_type_may_occur_twice_and_lists_hold_records() -> None:
    point = {"type": "record", "name": "P", "fields": [{"name": "x", "type": "int"}]}
    fields = [{"name": "a", "type": point}, {"name": "b", "type": {"type": "array", "items": "P"}}]
    schema = json.dumps({"type": "record", "name": "R", "fields": fields})
    decode = avro_decoder(schema, framed=False)
    assert decode(b"\2\4\4\2\0") == {"a": {"x": 1}, "b": [{"x": 2}, {"x": 1}]}
    with pytest.raises(InvalidForm, match="not an Avro record of the schema: EOFError"):
        decode(b"\2\4")
