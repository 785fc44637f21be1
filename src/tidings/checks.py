"""Checks on what users give: each returns the value or says the value and the rule."""

import math
from collections.abc import Collection
from numbers import Real

from tidings.errors import InvalidPolicy, TidingsError

Kind = type[TidingsError]


def name(what: str, value: object, kind: Kind) -> str:
    """Check a non-empty string, such as an id."""
    if not isinstance(value, str) or not value:
        raise kind(f"{what} is a non-empty string, not {value!r}")
    if not encodable(value):
        raise kind(f"{what} is text that UTF-8 can hold, not {value!r}")
    return value


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
        raise kind(f"{what} is a finite number, not {value!r}")
    if not low <= found <= high:
        limit = f"at least {low:g}" if high == math.inf else f"between {low:g} and {high:g}"
        raise kind(f"{what} is {limit}, not {value!r}")
    return found


def _float(value: object) -> float:
    """Give a real number as a float; NaN for anything else, infinity where it is too large."""
    try:
        return float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    except OverflowError:
        return math.inf


def positive(what: str, value: object, kind: Kind = InvalidPolicy) -> float:
    """Check a finite number above 0."""
    found = number(what, value, kind)
    if found == 0:
        raise kind(f"{what} is above 0, not {value!r}")
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
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise kind(f"{what} is a whole number of at least {low}, not {value!r}")
    if high is not None and value > high:
        raise kind(f"{what} is at most {high}, not {value!r}")
    return value


def flag(what: str, value: object, kind: Kind = InvalidPolicy) -> None:
    """Check true or false, which no string, number or null stands for."""
    if not isinstance(value, bool):
        raise kind(f"{what} is true or false, not {value!r}")


def choice(what: str, value: object, allowed: Collection[str], kind: Kind = InvalidPolicy) -> None:
    """Check one of a few words."""
    if not isinstance(value, str) or value not in allowed:
        listed = ", ".join(map(repr, allowed))
        raise kind(f"{what} is one of {listed}, not {value!r}")
