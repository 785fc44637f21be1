"""Refused records: what was refused, the reason, and the functions that turn errors into them.

One record never stops the others, so readers return a `BadRecord` in place of a record that they
cannot read, and engines, stores and streams keep a `DeadLetter` for everything they refuse.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from tidings.errors import clipped, described, shown
from tidings.model.values import printable

R = TypeVar("R")
T = TypeVar("T")


@dataclass(frozen=True)
class BadRecord:
    """A record that a reader refused.

    `position` counts from 1: the row of a table, or the line of a JSON Lines file.
    """

    record: Mapping[str, Any] = field(hash=False)
    reason: str
    position: int

    def __repr__(self) -> str:
        record = shown(self.record)
        return f"BadRecord(record={record}, reason={self.reason!r}, position={self.position})"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; values that JSON cannot hold become text."""
        record = printable_record(self.record)
        return {"record": record, "reason": self.reason, "position": self.position}


@dataclass(frozen=True)
class DeadLetter:
    """Something that was refused, as it was given, and the reason."""

    record: Any
    reason: str

    def __repr__(self) -> str:
        return f"DeadLetter(record={shown(self.record)}, reason={self.reason!r})"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"record": printable_record(self.record), "reason": self.reason}


class Failure(NamedTuple):
    """The error that a function raised, returned in place of its result."""

    error: Exception

    @property
    def reason(self) -> str:
        """The error in one line of at most 1 kB."""
        return described(self.error)


def try_call(function: Callable[..., T], *arguments: Any) -> T | Failure:
    """Return what a function returns, or the error it raises; a MemoryError is raised."""
    try:
        return function(*arguments)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a record may cause anything
        return Failure(error)


def printable_record(record: object) -> Any:
    """Return a record as JSON can hold it; one that cannot be printed becomes a short text."""
    form = try_call(printable, record)
    return {"text": clipped(shown(record))} if isinstance(form, Failure) else form


def attempt(
    read: Callable[[R], T], raw: R, position: int, show: Callable[[R], Mapping[str, Any]]
) -> T | BadRecord:
    """Return what `read` makes of `raw`, or a bad record that shows `raw` and the reason.

    Reading is a computation on one record, so whatever it raises is the record's fault; only an
    exhausted memory is not.
    """
    result = try_call(read, raw)
    if not isinstance(result, Failure):
        return result
    form = try_call(show, raw)
    if isinstance(form, Failure):
        form = {"text": clipped(shown(raw))}
    return BadRecord(form, result.reason, position)
