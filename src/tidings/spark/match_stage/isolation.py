"""One record never stops the others: what fails for many events is found in the few that cause it.

An error is the fault of a record unless it tells of the machine or of our own files: an exhausted
memory, a file or a module that is missing, a damaged index, a store or a source that fails. Those
stop the batch, and Spark tries it again. An interrupt is no `Exception`, and stops it as well.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from tidings.errors import SourceError, StateError, StoreError
from tidings.index_files.mapped_file import Damaged
from tidings.model.dead_letter import Failure, try_call
from tidings.model.records import Event

T = TypeVar("T")

STOPS: Final = (
    MemoryError,
    OSError,
    ImportError,
    Damaged,
    StateError,
    StoreError,
    SourceError,
)
"""Errors that are nobody's record."""


class Done(NamedTuple, Generic[T]):
    """What a work has made of some events."""

    events: Sequence[Event]
    made: T


class Culprit(NamedTuple):
    """An event for which the work fails even if it is alone, and why."""

    event: Event
    reason: str


def tried(work: Callable[..., T], *given: object) -> T | Failure:
    """Return what `work` returns, or what it raises; an error that stops the batch is raised."""
    made = try_call(work, *given)
    if isinstance(made, Failure) and isinstance(made.error, STOPS):
        raise made.error
    return made


def isolated(
    work: Callable[[Sequence[Event]], T], events: Sequence[Event]
) -> Iterator[Done[T] | Culprit]:
    """Do a work for all events, in as many calls as it takes to leave out those that fail alone.

    It is one call where nothing fails. Of n events, each culprit costs about 2 log n more. A work
    that fails even for no events at all is not the fault of any of them, and its error is raised.
    """
    made = tried(work, events)
    if not isinstance(made, Failure):
        yield Done(events, made)
        return
    nothing = try_call(work, events[:0])
    if isinstance(nothing, Failure):
        raise made.error
    yield from _halved(work, events, made)


def _halved(
    work: Callable[[Sequence[Event]], T], events: Sequence[Event], failure: Failure
) -> Iterator[Done[T] | Culprit]:
    if len(events) == 1:
        yield Culprit(events[0], failure.reason)
        return
    middle = len(events) // 2
    for half in (events[:middle], events[middle:]):
        made = tried(work, half)
        if isinstance(made, Failure):
            yield from _halved(work, half, made)
        else:
            yield Done(half, made)
