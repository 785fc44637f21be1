"""Fields of a state that was saved as JSON: each is returned if it is what it should be."""

from collections.abc import Mapping
from typing import Any, Final

from tidings.errors import InvalidForm, shown
from tidings.model.records import LAST_SEQUENCE, Event, Match

FAR: Final = 1 << 62
"""Farther than any place on an axis."""
_SCORE: Final = 1e200
"""No score is larger, so that sums of them are finite."""


def field(state: object, name: str) -> Any:
    """Return a field, whatever it holds."""
    if not isinstance(state, Mapping):
        raise InvalidForm(f"field {name!r} is missing: {shown(state)} is no object")
    if name not in state:
        raise InvalidForm(f"field {name!r} is missing")
    return state[name]


def whole(
    state: object, name: str, low: int = 0, high: int = LAST_SEQUENCE, *, missing: bool = False
) -> Any:
    """Return a field that holds a whole number between `low` and `high`, or null if it may."""
    value = field(state, name)
    if not (missing and value is None):
        number(f"field {name!r}", value, low, high)
    return value


def number(what: str, value: object, low: int = 0, high: int = LAST_SEQUENCE) -> int:
    """Return a whole number between `low` and `high`."""
    if type(value) is not int or not low <= value <= high:
        raise InvalidForm(f"{what} is a whole number from {low} to {high}, not {shown(value)}")
    return value


def items(state: object, name: str, width: int | None = None) -> list[Any]:
    """Return a field that holds a list; with a `width`, of lists that are so long."""
    value = field(state, name)
    if not isinstance(value, list):
        raise InvalidForm(f"field {name!r} is a list, not {shown(value)}")
    for each in value if width is not None else ():
        if not isinstance(each, list | tuple) or len(each) != width:
            raise InvalidForm(f"field {name!r} is a list of {width} each, not {shown(each)}")
    return value


def texts(state: object, name: str) -> list[str]:
    """Return a field that holds a list of texts."""
    found = items(state, name)
    for each in found:
        if not isinstance(each, str):
            raise InvalidForm(f"field {name!r} is a list of texts, not {shown(each)}")
    return found


def numbers(state: object, name: str, low: int, high: int) -> dict[str, int]:
    """Return a field that holds an object of whole numbers."""
    value = field(state, name)
    if not isinstance(value, Mapping):
        raise InvalidForm(f"field {name!r} is an object, not {shown(value)}")
    for key, each in value.items():
        number(f"a number in field {name!r}", each, low, high)
        if not isinstance(key, str):
            raise InvalidForm(f"the names in field {name!r} are texts, not {shown(key)}")
    return dict(value)


def read_event(form: object) -> Event:
    """Return the event of a form."""
    for name in ("id", "published_at", "attributes"):
        field(form, name)
    assert isinstance(form, Mapping)
    if not isinstance(form.get("probabilities", {}), Mapping):
        raise InvalidForm(f"field 'probabilities' is an object, not {shown(form)}")
    return Event.from_dict(form)


def read_match(form: object) -> Match:
    """Return the match of a form."""
    subscriber, score = field(form, "subscriber"), field(form, "score")
    if not isinstance(subscriber, str):
        raise InvalidForm(f"field 'subscriber' is a text, not {shown(subscriber)}")
    if type(score) not in (int, float) or not 0 <= score <= _SCORE:
        raise InvalidForm(f"field 'score' is a number of at least 0, not {shown(score)}")
    matched = tuple(texts(form, "matched"))
    return Match(subscriber, read_event(field(form, "event")), score, matched)
