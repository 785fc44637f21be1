"""Avro messages, whose schema is in a file. This is the only import of fastavro."""

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from io import BytesIO
from typing import Any, Final
from uuid import UUID

import fastavro

from tidings.errors import InvalidForm, described
from tidings.formats.json_text import read_json

_FRAME: Final = 5
"""The bytes before a message that registries of schemas add: a zero, and the id of the schema."""
Decode = Callable[[bytes], Any]


def avro_decoder(schema: str, *, framed: bool) -> Decode:
    """Return the function that reads messages of a schema, given as JSON.

    With `framed`, messages begin with the id of a schema, which is skipped.
    """
    try:
        parsed = fastavro.parse_schema(read_json(schema))
    except Exception as error:  # noqa: BLE001 - a schema may cause anything
        raise InvalidForm(f"the Avro schema cannot be read: {described(error)}") from None

    def decode(value: bytes) -> Any:
        file = BytesIO(value)
        file.seek(_FRAME if framed else 0)
        form = _plain(fastavro.schemaless_reader(file, parsed, None))
        if file.tell() != len(value):
            raise InvalidForm(f"{len(value) - file.tell()} bytes are left after the Avro record")
        return form

    return decode


def _plain(value: Any) -> Any:
    """Return a value of Avro as JSON has it; times stay what they are."""
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_plain(member) for member in value]
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, UUID) or (isinstance(value, date) and not isinstance(value, datetime)):
        return str(value)
    return value
