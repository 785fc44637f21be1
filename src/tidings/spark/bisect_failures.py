"""Bisection of failures: find the few items for which a computation fails, and finish the others.

An error is blamed on an item unless it is about the machine or our own files: exhausted memory, a
missing file or module, a damaged index, a store or source that fails. Such errors stop the batch,
and Spark retries it. So does an interrupt, which is not an `Exception`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from tidings.errors import SourceError, StateError, StoreError
from tidings.index_files.mapped_file import Damaged
from tidings.model.dead_letter import Failure, try_call

I = TypeVar("I")  # noqa: E741 - an item
T = TypeVar("T")

FATAL: Final = (
    MemoryError,
    OSError,
    ImportError,
    Damaged,
    StateError,
    StoreError,
    SourceError,
)
"""Errors that no item is to blame for."""


class Finished(NamedTuple, Generic[I, T]):
    """The result of a computation for some items."""

    items: Sequence[I]
    result: T


class Culprit(NamedTuple, Generic[I]):
    """An item for which the computation fails even alone, and the reason."""

    item: I
    reason: str


def attempt(compute: Callable[..., T], *arguments: object) -> T | Failure:
    """Return the result of `compute`, or its failure; a fatal error is raised."""
    result = try_call(compute, *arguments)
    if isinstance(result, Failure) and isinstance(result.error, FATAL):
        raise result.error
    return result


def bisect(
    compute: Callable[[Sequence[I]], T], items: Sequence[I]
) -> Iterator[Finished[I, T] | Culprit[I]]:
    """Compute a result for all items, in as many calls as it takes to leave out the culprits.

    It is one call where nothing fails; among n items, each culprit costs about 2 log n more. If the
    computation fails even without items, none of them is to blame and its error is raised.
    """
    result = attempt(compute, items)
    if not isinstance(result, Failure):
        yield Finished(items, result)
        return
    if isinstance(try_call(compute, items[:0]), Failure):
        raise result.error
    yield from _halve(compute, items, result)


def _halve(
    compute: Callable[[Sequence[I]], T], items: Sequence[I], failure: Failure
) -> Iterator[Finished[I, T] | Culprit[I]]:
    if len(items) == 1:
        yield Culprit(items[0], failure.reason)
        return
    middle = len(items) // 2
    for half in (items[:middle], items[middle:]):
        result = attempt(compute, half)
        if isinstance(result, Failure):
            yield from _halve(compute, half, result)
        else:
            yield Finished(half, result)
