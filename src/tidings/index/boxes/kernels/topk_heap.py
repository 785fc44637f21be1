"""The k best of scored ids, best score first, ties by smaller id: a heap with the worst on top."""

from tidings.compiled.array_types import Float64s, Int64s
from tidings.compiled.jit import inner, kernel

Best = tuple[Float64s, Int64s, int]
"""Rows of k scores and of k ids, and the row that is meant: a view of it would cost more."""
Found = tuple[Float64s, Int64s, Int64s]
"""A heap of scores and ids for each event, a row each, and how many it has."""


@inner
def best_worse(best: Best, one: int, other: int) -> bool:
    """Say whether the member at `one` is worse than that at `other`."""
    scores, ids, row = best
    if scores[row, one] != scores[row, other]:
        return scores[row, one] < scores[row, other]
    return ids[row, one] > ids[row, other]


@inner
def best_swap(best: Best, one: int, other: int) -> None:
    """Exchange two members."""
    scores, ids, row = best
    scores[row, one], scores[row, other] = scores[row, other], scores[row, one]
    ids[row, one], ids[row, other] = ids[row, other], ids[row, one]


@inner
def best_sink(best: Best, size: int) -> None:
    """Restore the order after the member on top has changed."""
    at, child = 0, 1
    while child < size:
        if child + 1 < size and best_worse(best, child + 1, child):
            child += 1
        if not best_worse(best, child, at):
            break
        best_swap(best, at, child)
        at, child = child, 2 * child + 1


@inner
def best_offer(best: Best, size: int, score: float, id: int) -> int:
    """Keep a scored id if it is among the k best so far; give the new size."""
    scores, ids, row = best
    if size == scores.shape[1]:
        if size > 0 and (score > scores[row, 0] or (score == scores[row, 0] and id < ids[row, 0])):
            scores[row, 0], ids[row, 0] = score, id
            best_sink(best, size)
        return size
    scores[row, size], ids[row, size] = score, id
    at = size
    while at > 0 and best_worse(best, at, (at - 1) >> 1):
        best_swap(best, at, (at - 1) >> 1)
        at = (at - 1) >> 1
    return size + 1


@inner
def best_pop(best: Best, size: int) -> int:
    """Move the member on top, the worst, behind the others; give the new size."""
    best_swap(best, 0, size - 1)
    best_sink(best, size - 1)
    return size - 1


@inner
def best_sort(best: Best, size: int) -> None:
    """Put the members in order, best first, in place."""
    for last in range(size - 1, 0, -1):
        best_swap(best, 0, last)
        best_sink(best, last)


@kernel
def sort_found(found: Found) -> None:
    """Put the heaps of all events in order."""
    for row in range(len(found[2])):
        best_sort((found[0], found[1], row), found[2][row])
