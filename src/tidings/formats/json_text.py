"""Strict JSON: UTF-8, without NaN or Infinity, and without duplicate names in an object.

Python's parser accepts NaN, and keeps the last of several equal names; records from outside are
refused instead.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Final, NamedTuple, NoReturn

from tidings.errors import InvalidForm, shown

_BOM: Final = "\ufeff"
_CHUNK: Final = 1 << 16
_MOST_BLANK: Final = 1_000_000
"""Blank lines in a row; a compressed file of a megabyte could hold a billion of them."""


def read_json(text: str | bytes) -> Any:
    """Parse a JSON text; raise an `InvalidForm` with the reason if it is invalid or not a text.

    >>> read_json('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    tidings.errors.InvalidForm: the name 'a' occurs twice in an object
    """
    try:
        return _DECODER.decode(_decoded(text))
    except RecursionError:
        raise InvalidForm("its lists and objects nest too deeply") from None
    except InvalidForm:
        raise
    except ValueError as error:
        raise InvalidForm(str(error)) from None


def _decoded(text: str | bytes) -> str:
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidForm(f"it is not UTF-8: byte {error.start + 1}, {error.reason}") from None
    if not isinstance(text, str):  # a cell of SQLite has any type, whatever its column declares
        raise InvalidForm(f"{shown(text)} is not a text")
    return text.removeprefix(_BOM)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        seen = set[str]()
        for name, _ in pairs:
            if name in seen:
                raise InvalidForm(f"the name {shown(name)} occurs twice in an object")
            seen.add(name)
    return fields


def _constant(name: str) -> NoReturn:
    raise InvalidForm(f"{name} is not a JSON number")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant)


_LAX: Final = json.JSONDecoder(parse_int=str, parse_float=str)
_SPACE: Final = re.compile(r"[ \t\n\r]*")


def array_texts(text: bytes) -> list[str] | None:
    """Return the texts of the members of a JSON array; each may still violate strict JSON.

    Returns None for JSON that is not an array; raises an `InvalidForm` if members cannot be split.
    """
    whole = _decoded(text)
    try:
        return _members(whole)
    except RecursionError:
        raise InvalidForm("its lists and objects nest too deeply") from None
    except ValueError as error:
        raise InvalidForm(str(error)) from None


def _members(text: str) -> list[str] | None:
    position, members = _skip(text, 0), list[str]()
    if text[position : position + 1] != "[":
        _LAX.decode(text)
        return None
    position = _skip(text, position + 1)
    while text[position : position + 1] != "]" or members:
        _, end = _LAX.raw_decode(text, position)
        members.append(text[position:end])
        position = _skip(text, end)
        if text[position : position + 1] == "]":
            break
        if text[position : position + 1] != ",":
            raise json.JSONDecodeError("Expecting ',' delimiter", text, position)
        position = _skip(text, position + 1)
    if _skip(text, position + 1) < len(text):
        raise json.JSONDecodeError("Extra data", text, position + 1)
    return members


def _skip(text: str, position: int) -> int:
    """Return the position of the next character that is not white space."""
    space = _SPACE.match(text, position)
    return space.end() if space else position


class Line(NamedTuple):
    """A line of a file, or the beginning of a line that is too long."""

    position: int
    text: bytes
    whole: bool


def read_lines(file: BinaryIO, most_bytes: int) -> Iterator[Line]:
    """Yield the lines of a file that are not blank, without their ends.

    Lines have at most `most_bytes`; what is left of longer ones is a little longer, too.
    """
    position = last = 0
    while text := file.readline(most_bytes + 2):
        position += 1
        ends = text.endswith(b"\n")
        text = text.rstrip(b"\r\n")
        whole = len(text) <= most_bytes
        if not whole or text.strip():
            last = position
            yield Line(position, text, whole)
        elif position - last > _MOST_BLANK:
            raise InvalidForm(f"more than {_MOST_BLANK:,} lines in a row are blank")
        # The rest of a line that is too long is skipped in chunks.
        while not ends and (rest := file.readline(_CHUNK)):
            ends = rest.endswith(b"\n")
