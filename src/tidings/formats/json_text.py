"""JSON as it is read from outside: UTF-8, without NaN or Infinity, and each name once an object.

Python's own reader takes more than JSON is: numbers that are none, names that occur twice, of which
it keeps the last. Records of strangers are refused instead, with the reason.
"""

import json
from collections.abc import Iterator
from typing import Any, BinaryIO, Final, NamedTuple, NoReturn

from tidings.errors import InvalidForm, shown

_BOM: Final = "\ufeff"
_CHUNK: Final = 1 << 16


def read_json(text: str | bytes) -> Any:
    """Read a JSON text; what is no JSON is an `InvalidForm` that says why.

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
    return text.removeprefix(_BOM)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen = set[str]()
        for name, _ in pairs:
            if name in seen:
                raise InvalidForm(f"the name {shown(name)} occurs twice in an object")
            seen.add(name)
    return found


def _constant(name: str) -> NoReturn:
    raise InvalidForm(f"{name} is no number of JSON")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant)


_LAX: Final = json.JSONDecoder(parse_int=str, parse_float=str)
_SPACE: Final = " \t\n\r"


def array_texts(text: bytes) -> list[str] | None:
    """Return the texts of an array's members, of which each may be no JSON in the strict sense.

    None: it is no array. A text that has no members to tell apart is an `InvalidForm`.
    """
    whole = _decoded(text)
    try:
        return _members(whole)
    except RecursionError:
        raise InvalidForm("its lists and objects nest too deeply") from None
    except ValueError as error:
        raise InvalidForm(str(error)) from None


def _members(text: str) -> list[str] | None:
    at, found = _skip(text, 0), list[str]()
    if text[at : at + 1] != "[":
        _LAX.decode(text)
        return None
    at = _skip(text, at + 1)
    while text[at : at + 1] != "]" or found:
        _, end = _LAX.raw_decode(text, at)
        found.append(text[at:end])
        at = _skip(text, end)
        if text[at : at + 1] == "]":
            break
        if text[at : at + 1] != ",":
            raise json.JSONDecodeError("Expecting ',' delimiter", text, at)
        at = _skip(text, at + 1)
    if _skip(text, at + 1) < len(text):
        raise json.JSONDecodeError("Extra data", text, at + 1)
    return found


def _skip(text: str, at: int) -> int:
    """Return the place of the next sign that is no space."""
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


class Line(NamedTuple):
    """A line of a file, or the beginning of one that is too long."""

    position: int
    text: bytes
    whole: bool


def read_lines(file: BinaryIO, most_bytes: int) -> Iterator[Line]:
    """Read the lines of a file that are not blank; never more than `most_bytes` of one at once."""
    position = 0
    while text := file.readline(most_bytes + 2):
        position += 1
        whole = len(text.rstrip(b"\r\n")) <= most_bytes
        ends = text.endswith(b"\n")
        if whole and text.strip():
            yield Line(position, text, whole=True)
        elif not whole:
            yield Line(position, text, whole=False)
        # The rest of a line that is too long is passed over piece by piece.
        while not ends and (rest := file.readline(_CHUNK)):
            ends = rest.endswith(b"\n")
