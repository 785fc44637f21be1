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
        _may_be_empty(parsed, {}, ())
    except Exception as error:  # noqa: BLE001 - a schema may cause anything
        raise InvalidForm(f"the Avro schema cannot be read: {described(error)}") from None

    def decode(value: bytes) -> Any:
        file = BytesIO(value)
        file.seek(_FRAME if framed else 0)
        try:
            form = _plain(fastavro.schemaless_reader(file, parsed, None))
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - a message may cause anything
            reason = type(error).__name__  # its text may hold an address in memory
            raise InvalidForm(
                f"the message is not an Avro record of the schema: {reason}"
            ) from None
        if file.tell() != len(value):
            raise InvalidForm(f"{len(value) - file.tell()} bytes are left after the Avro record")
        return form

    return decode


def _may_be_empty(schema: Any, known: dict[str, bool], within: tuple[str, ...]) -> bool:
    """Return whether a value of a schema may take no bytes; refuse what one message can abuse.

    The reader is C without a limit of depth, so a recursive type would let a message end the
    process; and an array of values without bytes would let a few bytes claim any number of them.
    """
    if isinstance(schema, list):
        for member in schema:
            _may_be_empty(member, known, within)
        return False
    if isinstance(schema, str):
        if schema in within:
            raise InvalidForm(f"the type {schema} contains itself; messages could nest endlessly")
        return known.get(schema, schema == "null")
    kind = schema["type"]
    if kind in ("record", "error"):
        inner = (*within, schema["name"])
        empty = [_may_be_empty(field["type"], known, inner) for field in schema["fields"]]
        known[schema["name"]] = all(empty)
    elif kind == "fixed":
        known[schema["name"]] = schema["size"] == 0
    elif kind == "array" and _may_be_empty(schema["items"], known, within):
        raise InvalidForm("the items of an array take no bytes; a message could claim any number")
    elif kind == "map":
        _may_be_empty(schema["values"], known, within)
    elif kind not in ("array", "enum"):
        return _may_be_empty(kind, known, within)
    return known.get(schema.get("name", ""), False)


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
