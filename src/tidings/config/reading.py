"""How a TOML file is read: its text, its places in errors, and tables of settings."""

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date, time
from pathlib import Path
from typing import Any

from tidings.errors import InvalidForm, TidingsError

Form = dict[str, Any]


def read_toml(path: Path) -> Form:
    """Read a file; what is no TOML is refused."""
    try:
        return {name: _plain(each) for name, each in tomllib.loads(path.read_text("utf-8")).items()}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidForm(f"this is no TOML: {error}") from None


def _plain(value: Any) -> Any:
    """Give a value of TOML as JSON has it: its times are text."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
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
        raise InvalidForm(f"{label} is a table of names and values, not {form!r}")
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
            raise InvalidForm(
                f"{label} {before}{name} is a text, a number, true or false, not {each!r}"
            )
