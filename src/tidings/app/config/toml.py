"""How a TOML file is read: its text, its places in errors, and tables of settings."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, time
from pathlib import Path
from typing import Any, Final

from tidings.errors import InvalidForm, TidingsError, clipped
from tidings.formats.json_forms import fields
from tidings.formats.redaction import HIDDEN, is_secret, shown_safely
from tidings.model import validate
from tidings.store.address import Address, read_address

Form = dict[str, Any]
_MOST_BYTES: Final = 16_000_000
_MOST_BITS: Final = 1_024


def read_toml(path: Path) -> Form:
    """Read a file; what is no TOML, and what is too large or nests too deeply, is refused."""
    try:
        with validate.regular_file(path).open("rb") as file:
            text = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise InvalidForm(f"the file cannot be read: {error.strerror or error}") from None
    if len(text) > _MOST_BYTES:
        raise InvalidForm(f"the file has more than {_MOST_BYTES:,} bytes; a config is smaller")
    try:
        found: Form = _plain(tomllib.loads(text.decode("utf-8")))
    except UnicodeDecodeError as error:
        raise InvalidForm(f"this is no TOML: byte {error.start} is not UTF-8") from None
    except (ValueError, OverflowError) as error:
        raise InvalidForm(f"this is no TOML: {clipped(str(error))}") from None
    except RecursionError:
        raise InvalidForm("this is no TOML: its values nest too deeply") from None
    return found


def table(
    form: object, label: str, required: Sequence[str] = (), optional: Sequence[str] = ()
) -> Form:
    """Return the fields of a table of the config; what it is instead is not shown.

    An address in the wrong place would show its password otherwise.
    """
    if not isinstance(form, Mapping):
        raise InvalidForm(f"{label}: the form is an object with named fields, not a {_kind(form)}")
    return fields(form, label, required, optional)


def store_address(what: str, value: object, base: Path) -> Address:
    """Read the address of a store; the path of an SQLite file is seen from the folder `base`."""
    return read_address(value, base=base, what=what, error=InvalidForm)


def _kind(value: object) -> str:
    names = {bool: "boolean", int: "number", float: "number", str: "text", list: "list"}
    return names.get(type(value), "value")


def _plain(value: Any) -> Any:
    """Give a value of TOML as JSON has it: its times are text."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise ValueError(f"an integer of {value.bit_length():,} bits is too large")
    return value.isoformat() if isinstance(value, date | time) else value


@contextmanager
def naming(place: str) -> Iterator[None]:
    """Put the place of a mistake before its message."""
    try:
        yield
    except TidingsError as error:
        raise InvalidForm(f"{place}{error}") from None


def settings(label: str, form: object) -> dict[str, str]:
    """Give a table of settings as Spark has them: all text, and dotted keys in one piece.

    >>> settings("[source.options]", {"kafka": {"bootstrap": {"servers": "a:1"}}, "rows": 5})
    {'kafka.bootstrap.servers': 'a:1', 'rows': '5'}
    """
    if not isinstance(form, Mapping):
        raise InvalidForm(f"{label} is a table of names and values, not a {_kind(form)}")
    return dict(_flat(label, form, ""))


def _flat(label: str, form: Mapping[str, Any], before: str) -> Iterator[tuple[str, str]]:
    for name, each in form.items():
        if isinstance(each, Mapping):
            yield from _flat(label, each, f"{before}{name}.")
        elif isinstance(each, bool):
            yield f"{before}{name}", str(each).lower()
        elif isinstance(each, str | int | float):
            yield f"{before}{name}", str(each)
        else:
            what = HIDDEN if is_secret(f"{before}{name}") else shown_safely(each)
            raise InvalidForm(
                f"{label} {before}{name} is a text, a number, true or false, not {what}"
            )
