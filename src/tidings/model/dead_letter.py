"""Refused records: the record, the reason, and the functions that turn errors into them.

One record never stops the others, so readers return a `BadRecord` in place of a record that they
cannot read, and engines, stores and streams keep a `DeadLetter` for everything they refuse. Where a
whole batch fails, `bisect` finds the items that make it fail.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from tidings.errors import clipped, described, shown
from tidings.model.values import printable

R = TypeVar("R")
T = TypeVar("T")
I = TypeVar("I")  # noqa: E741 - an item


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
    """Return the result of a call, or the error it raised; a MemoryError is raised."""
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
    """Return the result of `read(raw)`, or a bad record with `raw` and the reason.

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


class Finished(NamedTuple, Generic[I, T]):
    """The result of a computation for some items."""

    items: Sequence[I]
    result: T


class Culprit(NamedTuple, Generic[I]):
    """An item for which the computation fails even alone, and the reason."""

    item: I
    reason: str


def bisect(
    compute: Callable[[Sequence[I]], T],
    items: Sequence[I],
    attempt: Callable[..., T | Failure] = try_call,
) -> Iterator[Finished[I, T] | Culprit[I]]:
    """Compute a result for all items, in as many calls as it takes to leave out the culprits.

    It is one call where nothing fails; among n items, each culprit costs about 2 log n more. Parts
    are finished in the order of the items. A call that fails must have changed nothing. `attempt`
    calls the computation, and raises the errors that no item is to blame for.

    >>> [*bisect(lambda numbers: [6 // n for n in numbers], [1, 2, 3])]
    [Finished(items=[1, 2, 3], result=[6, 3, 2])]
    """
    result = attempt(compute, items)
    if not isinstance(result, Failure):
        yield Finished(items, result)
    elif len(items) <= 1:
        yield from (Culprit(item, result.reason) for item in items)
    else:
        middle = len(items) // 2
        for half in (items[:middle], items[middle:]):
            yield from bisect(compute, half, attempt)
