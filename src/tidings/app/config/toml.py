"""The values of TOML files: tables, settings, and errors that name their key."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tidings.channels.transport import read_secret
from tidings.errors import InvalidForm, prefix_errors
from tidings.formats.json_forms import fields
from tidings.formats.redaction import HIDDEN, is_secret, shown_safely
from tidings.formats.toml_file import Form
from tidings.model import validate
from tidings.store.address import Address, read_address

_FORMAT_NAME: Final = re.compile(r"[A-Za-z_][\w.$\-]*")


def read_table(
    form: object, label: str, required: Sequence[str] = (), optional: Sequence[str] = ()
) -> Form:
    """Return the keys of a table; refuse missing and unknown ones.

    A value of another type is not shown, because an address might contain a password.
    """
    if not isinstance(form, Mapping):
        raise InvalidForm(f"{label} must be a table, not a {_type_name(form)}")
    return fields(form, label, required, optional)


def _type_name(value: object) -> str:
    names = {bool: "boolean", int: "number", float: "number", str: "string", list: "list"}
    return names.get(type(value), "value")


def read_settings(label: str, form: object) -> dict[str, str]:
    """Return a table of settings as Spark expects them: values as text, dotted keys joined.

    The value of a table `{env = "NAME"}` is that of the environment variable.

    >>> read_settings("[source.options]", {"kafka": {"bootstrap": {"servers": "a:1"}}, "rows": 5})
    {'kafka.bootstrap.servers': 'a:1', 'rows': '5'}
    """
    if not isinstance(form, Mapping):
        raise InvalidForm(f"{label} must be a table of names and values, not a {_type_name(form)}")
    return dict(_flatten(label, form, ""))


def _flatten(label: str, form: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for name, given in form.items():
        key, value = f"{prefix}{name}", given
        if isinstance(given, Mapping) and set(given) == {"env"}:
            with prefix_errors(f"{label} ", raised=InvalidForm):
                value = read_secret(key, given).reveal()
        if isinstance(value, Mapping):
            yield from _flatten(label, value, f"{key}.")
        elif isinstance(value, bool):
            yield key, str(value).lower()
        elif isinstance(value, str | int | float):
            text = str(value)
            if "\0" in text or not validate.encodable(text):
                raise InvalidForm(f"{label} {key} contains NUL, or half of a surrogate pair")
            yield key, text
        else:
            text = HIDDEN if is_secret(key) else shown_safely(value)
            raise InvalidForm(f"{label} {key} must be a string, a number or a boolean, not {text}")


def nonempty_text(name: str, value: object) -> str:
    """Check a required string; one that looks like an address is not shown in errors."""
    if isinstance(value, str) and "\0" in value:
        raise InvalidForm(f"{name} contains the character NUL")
    if isinstance(value, str) and value and validate.encodable(value):
        return value
    raise InvalidForm(f"{name} must be a non-empty string, not {shown_safely(value)}")


def format_name(value: object) -> str:
    """Check the format of a source or sink: one of ours, one of Spark's, or a class name."""
    text = nonempty_text("format", value)
    if not _FORMAT_NAME.fullmatch(text):
        raise InvalidForm(f"format must be a name such as 'kafka', not {shown_safely(text)}")
    return text


def resolve_path_option(base: Path, options: dict[str, str]) -> dict[str, str]:
    """Return options whose `path`, if there is one, is resolved from the folder of the config."""
    path = options.get("path")
    if path is None or "://" in path:
        return options
    return {**options, "path": real_path(base, path)}


def real_path(base: Path, path: str) -> str:
    """Return a path from the folder of the config, with links resolved unless they are circular."""
    return os.path.realpath(base / path)


def store_address(label: str, value: object, base: Path) -> Address:
    """Read the address of a store; the path of an SQLite file is relative to `base`."""
    return read_address(value, base=base, label=label, error=InvalidForm)
