"""Checks on what users give: each returns the value or says the value and the rule."""

import math
import stat
from collections.abc import Collection, Mapping
from numbers import Real
from pathlib import Path
from typing import Any

from tidings.errors import InvalidForm, InvalidPolicy, TidingsError, shown

Kind = type[TidingsError]


def name(what: str, value: object, kind: Kind) -> str:
    """Check a non-empty string, such as an id; it is returned as a plain one."""
    if not isinstance(value, str):
        raise kind(f"{what} is a non-empty string, not {shown(value)}")
    text = plain_text(value)
    if not text:
        raise kind(f"{what} is a non-empty string, not ''")
    if not encodable(text):
        raise kind(f"{what} is text that UTF-8 can hold, not {shown(text)}")
    return text


def plain_text(text: str) -> str:
    """Return a string of a subclass, whose methods may do anything, as a plain one."""
    return text if type(text) is str else str.__str__(text)


def mapping(what: str, value: object, kind: Kind) -> dict[Any, Any]:
    """Check a mapping, and return it as a plain one; its methods may do anything."""
    if type(value) is dict:
        return value
    if not isinstance(value, Mapping):
        raise kind(f"{what}, not {shown(value)}")
    try:
        return dict(value.items())
    except Exception as error:  # noqa: BLE001 - the methods of a foreign class
        raise kind(f"{what}; this one fails with {shown(error)}") from None


def encodable(text: str) -> bool:
    """Tell whether UTF-8, and so any file, can hold a string; not with half a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def number(
    what: str, value: object, kind: Kind = InvalidPolicy, *, low: float = 0, high: float = math.inf
) -> float:
    """Check a finite number between `low` and `high`, both allowed."""
    found = _float(value)
    if not math.isfinite(found):
        raise kind(f"{what} is a finite number, not {shown(value)}")
    if not low <= found <= high:
        limit = f"at least {low:g}" if high == math.inf else f"between {low:g} and {high:g}"
        raise kind(f"{what} is {limit}, not {shown(value)}")
    return found


def _float(value: object) -> float:
    """Give a real number as a float; NaN for anything else, infinity where it is too large."""
    if type(value) is float:
        return value
    try:
        return float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    except OverflowError:
        return math.inf
    except Exception:  # noqa: BLE001 - the methods of a foreign class
        return math.nan


def positive(what: str, value: object, kind: Kind = InvalidPolicy) -> float:
    """Check a finite number above 0."""
    found = number(what, value, kind)
    if found == 0:
        raise kind(f"{what} is above 0, not {shown(value)}")
    return found


def count(
    what: str,
    value: object,
    kind: Kind = InvalidPolicy,
    *,
    low: int = 1,
    high: int | None = None,
) -> int:
    """Check a whole number of at least `low`, and of at most `high` if that is given."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise kind(f"{what} is a whole number of at least {low}, not {shown(value)}")
    found = int.__int__(value)
    if found < low:
        raise kind(f"{what} is a whole number of at least {low}, not {shown(found)}")
    if high is not None and found > high:
        raise kind(f"{what} is at most {high}, not {shown(found)}")
    return found


def flag(what: str, value: object, kind: Kind = InvalidPolicy) -> None:
    """Check true or false, which no string, number or null stands for."""
    if not isinstance(value, bool):
        raise kind(f"{what} is true or false, not {shown(value)}")


def choice(what: str, value: object, allowed: Collection[str], kind: Kind = InvalidPolicy) -> str:
    """Check one of a few words."""
    word = plain_text(value) if isinstance(value, str) else None
    if word is None or word not in allowed:
        listed = ", ".join(map(repr, allowed))
        raise kind(f"{what} is one of {listed}, not {shown(value)}")
    return word


def regular_file(path: Path) -> Path:
    """Return the path of a file or a folder; refuse pipes and devices, which may never end.

    What cannot be looked at raises an OSError, as opening it would.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise InvalidForm("this is a pipe or a device, which may never end; expected a file")
    return path
