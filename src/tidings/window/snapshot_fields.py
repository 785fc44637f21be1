"""Checked access to the fields of a snapshot in JSON."""

from collections.abc import Mapping
from typing import Any, Final

from tidings.errors import InvalidForm, shown
from tidings.model.records import LAST_SEQUENCE, Event, Match

FAR: Final = 1 << 62
"""Beyond any coordinate on an axis."""
_SCORE: Final = 1e200
"""The largest score, so that sums of scores stay finite."""


def field(state: object, name: str) -> Any:
    """Return a field of any type."""
    if not isinstance(state, Mapping):
        raise InvalidForm(f"field {name!r} is missing: {shown(state)} is not an object")
    if name not in state:
        raise InvalidForm(f"field {name!r} is missing")
    return state[name]


def whole(
    state: object, name: str, low: int = 0, high: int = LAST_SEQUENCE, *, missing: bool = False
) -> Any:
    """Return an integer field between `low` and `high`; with `missing`, null is allowed."""
    value = field(state, name)
    if not (missing and value is None):
        number(f"field {name!r}", value, low, high)
    return value


def number(what: str, value: object, low: int = 0, high: int = LAST_SEQUENCE) -> int:
    """Return an integer between `low` and `high`."""
    if type(value) is not int or not low <= value <= high:
        raise InvalidForm(f"{what} must be an integer from {low} to {high}, not {shown(value)}")
    return value


def items(state: object, name: str, width: int | None = None) -> list[Any]:
    """Return a list field; with a `width`, a list of lists of that length."""
    value = field(state, name)
    if not isinstance(value, list):
        raise InvalidForm(f"field {name!r} must be a list, not {shown(value)}")
    for item in value if width is not None else ():
        if not isinstance(item, list | tuple) or len(item) != width:
            raise InvalidForm(
                f"field {name!r} must be a list of lists of {width}, not of {shown(item)}"
            )
    return value


def texts(state: object, name: str) -> list[str]:
    """Return a field that is a list of strings."""
    values = items(state, name)
    for value in values:
        if not isinstance(value, str):
            raise InvalidForm(f"field {name!r} must be a list of strings, not of {shown(value)}")
    return values


def numbers(state: object, name: str, low: int, high: int) -> dict[str, int]:
    """Return a field that is an object of integers."""
    value = field(state, name)
    if not isinstance(value, Mapping):
        raise InvalidForm(f"field {name!r} must be an object, not {shown(value)}")
    for key, entry in value.items():
        number(f"a number in field {name!r}", entry, low, high)
        if not isinstance(key, str):
            raise InvalidForm(f"the names in field {name!r} must be strings, not {shown(key)}")
    return dict(value)


def read_event(form: object) -> Event:
    """Read an event from its JSON form."""
    for name in ("id", "published_at", "attributes"):
        field(form, name)
    assert isinstance(form, Mapping)
    if not isinstance(form.get("probabilities", {}), Mapping):
        raise InvalidForm(f"field 'probabilities' must be an object, not {shown(form)}")
    return Event.from_dict(form)


def read_match(form: object) -> Match:
    """Read a match from its JSON form."""
    subscriber, score = field(form, "subscriber"), field(form, "score")
    if not isinstance(subscriber, str):
        raise InvalidForm(f"field 'subscriber' must be a string, not {shown(subscriber)}")
    if type(score) not in (int, float) or not 0 <= score <= _SCORE:
        raise InvalidForm(f"field 'score' must be a number of at least 0, not {shown(score)}")
    matched = tuple(texts(form, "matched"))
    return Match(subscriber, read_event(field(form, "event")), score, matched)
