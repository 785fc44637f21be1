"""TOML files: configs and policies, with limits of size and depth."""

import re
import tomllib
from datetime import date, time
from pathlib import Path
from typing import Any, Final

from tidings.errors import InvalidForm, clipped
from tidings.model import validate

Form = dict[str, Any]
_MAX_BYTES: Final = 16_000_000
_MAX_INTEGER_BITS: Final = 1_024
_MAX_KEY_PARTS: Final = 32
# The parser keeps every prefix of a dotted key, so its memory grows with the square of the parts.
_KEY_PART: Final = r"""(?:[\w-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')[ \t]*"""
_LONG_KEY: Final = re.compile(rf"^[ \t]*(?:{_KEY_PART}\.[ \t]*){{{_MAX_KEY_PARTS}}}", re.MULTILINE)


def read_toml(path: Path) -> Form:
    """Read a TOML file; refuse one that is invalid, too large or nested too deeply."""
    if "\0" in str(path):
        raise InvalidForm("the name of the file contains the character NUL")
    try:
        content = validate.file_bytes(path, _MAX_BYTES)
    except OSError as error:
        raise InvalidForm(f"the file cannot be read: {error.strerror or error}") from None
    try:
        text = content.decode("utf-8")
        if _LONG_KEY.search(text):
            raise ValueError(f"a key has more than {_MAX_KEY_PARTS} parts")
        form: Form = _as_json(tomllib.loads(text))
    except UnicodeDecodeError as error:
        raise InvalidForm(f"invalid TOML: byte {error.start} is not UTF-8") from None
    except (ValueError, OverflowError) as error:
        raise InvalidForm(f"invalid TOML: {clipped(str(error))}") from None
    except RecursionError:
        raise InvalidForm("invalid TOML: its values are nested too deeply") from None
    return form


def _as_json(value: Any) -> Any:
    """Return a TOML value as JSON represents it: dates and times become text."""
    if isinstance(value, dict):
        return {name: _as_json(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_as_json(inner) for inner in value]
    if isinstance(value, int) and value.bit_length() > _MAX_INTEGER_BITS:
        raise ValueError(f"an integer of {value.bit_length():,} bits is too large")
    return value.isoformat() if isinstance(value, date | time) else value
