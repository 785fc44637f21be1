"""Two heaps in arrays: the k smallest ranks so far, and the next of several ordered lists."""

from tidings.compiled.array_types import Int64s
from tidings.compiled.jit import inner


@inner
def heap_sink(heap: Int64s, size: int, value: int) -> None:
    """Put `value` in place of the greatest and let it sink."""
    at, child = 0, 1
    while child < size:
        if child + 1 < size and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= value:
            break
        heap[at] = heap[child]
        at, child = child, 2 * child + 1
    heap[at] = value


@inner
def heap_offer(heap: Int64s, size: int, value: int) -> int:
    """Keep `value` if it is among the len(heap) smallest so far; give the new size."""
    if size == len(heap):
        if size > 0 and value < heap[0]:
            heap_sink(heap, size, value)
        return size
    at = size
    while at > 0 and heap[(at - 1) >> 1] < value:
        heap[at] = heap[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap[at] = value
    return size + 1


@inner
def heap_sort(heap: Int64s, size: int) -> None:
    """Put the members in ascending order, in place."""
    for last in range(size - 1, 0, -1):
        value = heap[last]
        heap[last] = heap[0]
        heap_sink(heap, last, value)


@inner
def lists_before(lists: Int64s, one: int, other: int) -> bool:
    """Say whether the row at `one` comes before that at `other`."""
    if lists[one] != lists[other]:
        return lists[one] < lists[other]
    return lists[one + 1] < lists[other + 1]


@inner
def lists_swap(lists: Int64s, one: int, other: int) -> None:
    """Exchange two rows."""
    for each in range(3):
        lists[one + each], lists[other + each] = lists[other + each], lists[one + each]


@inner
def lists_sink(lists: Int64s, start: int, size: int) -> None:
    """Restore the order of a heap of lists after its first row has changed.

    Rows of three numbers lie from `start` on; the first two say which comes first, and the rest
    is the caller's: (rank, place, end) of a list, for one.
    """
    at, child = 0, 1
    while child < size:
        row = start + 3 * child
        if child + 1 < size and lists_before(lists, row + 3, row):
            child, row = child + 1, row + 3
        if not lists_before(lists, row, start + 3 * at):
            break
        lists_swap(lists, row, start + 3 * at)
        at, child = child, 2 * child + 1


@inner
def lists_push(lists: Int64s, start: int, size: int, row: tuple[int, int, int]) -> int:
    """Add a row to the heap of lists; give the new size."""
    at = size
    place = start + 3 * at
    lists[place], lists[place + 1], lists[place + 2] = row
    while at > 0:
        parent = (at - 1) >> 1
        if not lists_before(lists, start + 3 * at, start + 3 * parent):
            break
        lists_swap(lists, start + 3 * at, start + 3 * parent)
        at = parent
    return size + 1


@inner
def lists_pop(lists: Int64s, start: int, size: int) -> int:
    """Drop the first row; give the new size."""
    lists_swap(lists, start, start + 3 * (size - 1))
    lists_sink(lists, start, size - 1)
    return size - 1
