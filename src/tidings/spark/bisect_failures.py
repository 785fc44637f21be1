"""Bisection of failures on Spark: which errors are blamed on an item.

An error is blamed on an item unless it is about the machine or our own files: exhausted memory, a
missing file or module, a damaged index, a store or source that fails. Such errors stop the batch,
and Spark retries it. So does an interrupt, which is not an `Exception`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from tidings.errors import SourceError, StateError, StoreError
from tidings.index_files.mapped_file import Damaged
from tidings.model import dead_letter
from tidings.model.dead_letter import Culprit, Failure, Finished, try_call

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

    If the computation fails even without items, none of them is to blame and its error is raised.
    """
    return dead_letter.bisect(compute, items, _attempt_some)


def _attempt_some(compute: Callable[[Sequence[I]], T], items: Sequence[I]) -> T | Failure:
    """Return the result for some items, or a failure that one of them may be to blame for."""
    result = attempt(compute, items)
    if isinstance(result, Failure) and isinstance(try_call(compute, items[:0]), Failure):
        raise result.error
    return result
