"""Top-k heaps of scored ids, one row per event: best score first, ties by smaller id.

Each row is a binary heap with the worst of its k entries at position 0, so that one comparison
decides whether a candidate can enter.
"""

from typing import NamedTuple

from tidings.compiled.array_types import Float64s, Int64s
from tidings.compiled.jit import inner, kernel


class TopkHeaps(NamedTuple):
    """A row of k scores and k ids per event, and the number of entries in each row."""

    scores: Float64s
    ids: Int64s
    sizes: Int64s


@inner
def is_worse(heaps: TopkHeaps, row: int, one: int, other: int) -> bool:
    """Return whether the entry at position `one` is worse than that at `other`."""
    scores, ids = heaps.scores, heaps.ids
    if scores[row, one] != scores[row, other]:
        return scores[row, one] < scores[row, other]
    return ids[row, one] > ids[row, other]


@inner
def swap(heaps: TopkHeaps, row: int, one: int, other: int) -> None:
    """Exchange two entries."""
    scores, ids = heaps.scores, heaps.ids
    scores[row, one], scores[row, other] = scores[row, other], scores[row, one]
    ids[row, one], ids[row, other] = ids[row, other], ids[row, one]


@inner
def sink(heaps: TopkHeaps, row: int, size: int) -> None:
    """Restore the heap after the entry at position 0 has changed."""
    place, child = 0, 1
    while child < size:
        if child + 1 < size and is_worse(heaps, row, child + 1, child):
            child += 1
        if not is_worse(heaps, row, child, place):
            break
        swap(heaps, row, place, child)
        place, child = child, 2 * child + 1


@inner
def topk_offer(heaps: TopkHeaps, row: int, score: float, id: int) -> None:
    """Keep a scored id if it is among the k best so far."""
    scores, ids = heaps.scores, heaps.ids
    size = heaps.sizes[row]
    if size == scores.shape[1]:
        if size > 0 and (score > scores[row, 0] or (score == scores[row, 0] and id < ids[row, 0])):
            scores[row, 0], ids[row, 0] = score, id
            sink(heaps, row, size)
        return
    scores[row, size], ids[row, size] = score, id
    place = size
    # A new entry rises while it is worse than its parent: the root stays the worst of all.
    while place > 0 and is_worse(heaps, row, place, (place - 1) >> 1):
        swap(heaps, row, place, (place - 1) >> 1)
        place = (place - 1) >> 1
    heaps.sizes[row] = size + 1


@inner
def topk_pop(heaps: TopkHeaps, row: int) -> None:
    """Remove the worst entry; it is moved behind the others."""
    size = heaps.sizes[row] - 1
    swap(heaps, row, 0, size)
    sink(heaps, row, size)
    heaps.sizes[row] = size


@kernel
def topk_sort(heaps: TopkHeaps) -> None:
    """Sort the entries of every row, best first, in place."""
    for row in range(len(heaps.sizes)):
        # Heap sort: the worst of those that are left goes behind them.
        for last in range(heaps.sizes[row] - 1, 0, -1):
            swap(heaps, row, 0, last)
            sink(heaps, row, last)
