"""Bisection of failures: find the items for which a computation fails, and finish the others."""

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from tidings.model.dead_letter import Failure, try_call

I = TypeVar("I")  # noqa: E741 - an item
T = TypeVar("T")


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
