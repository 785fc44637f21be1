"""Two binary heaps in arrays.

    heap_*   a max-heap that keeps the k smallest numbers: heap[0] is the largest of them
    lists_*  a min-heap that merges sorted lists; a row of three numbers per list, of which the
             first two are the sort key, and the third belongs to the caller

        lists   start + 3 * n:  | rank | position | end |

The children of entry n are entries 2n + 1 and 2n + 2. Rows of a merge lie in one array, so that a
kernel needs no allocation.
"""

from tidings.compiled.array_types import Int64s
from tidings.compiled.jit import inner


@inner
def heap_sink(heap: Int64s, size: int, value: int) -> None:
    """Replace the largest number by `value`, and sift it down."""
    parent, child = 0, 1
    while child < size:
        if child + 1 < size and heap[child + 1] > heap[child]:
            child += 1
        # The value is written once, at the end: half the writes of swapping.
        if heap[child] <= value:
            break
        heap[parent] = heap[child]
        parent, child = child, 2 * child + 1
    heap[parent] = value


@inner
def heap_offer(heap: Int64s, size: int, value: int) -> int:
    """Keep `value` if it is among the len(heap) smallest so far; return the new size."""
    if size == len(heap):
        if size > 0 and value < heap[0]:
            heap_sink(heap, size, value)
        return size
    entry = size
    while entry > 0 and heap[(entry - 1) >> 1] < value:
        heap[entry] = heap[(entry - 1) >> 1]
        entry = (entry - 1) >> 1
    heap[entry] = value
    return size + 1


@inner
def heap_sort(heap: Int64s, size: int) -> None:
    """Sort the numbers of a heap in ascending order, in place."""
    for last in range(size - 1, 0, -1):
        value = heap[last]
        heap[last] = heap[0]
        heap_sink(heap, last, value)


@inner
def lists_before(lists: Int64s, one: int, other: int) -> bool:
    """Return whether the row at `one` sorts before the row at `other`."""
    if lists[one] != lists[other]:
        return lists[one] < lists[other]
    return lists[one + 1] < lists[other + 1]


@inner
def lists_swap(lists: Int64s, one: int, other: int) -> None:
    """Swap two rows."""
    for column in range(3):
        lists[one + column], lists[other + column] = lists[other + column], lists[one + column]


@inner
def lists_sink(lists: Int64s, start: int, size: int) -> None:
    """Restore the heap after its first row has changed."""
    parent, child = 0, 1
    while child < size:
        row = start + 3 * child
        if child + 1 < size and lists_before(lists, row + 3, row):
            child, row = child + 1, row + 3
        if not lists_before(lists, row, start + 3 * parent):
            break
        lists_swap(lists, row, start + 3 * parent)
        parent, child = child, 2 * child + 1


@inner
def lists_push(lists: Int64s, start: int, size: int, row: tuple[int, int, int]) -> int:
    """Add a row; return the new size."""
    entry = size
    position = start + 3 * entry
    lists[position], lists[position + 1], lists[position + 2] = row
    while entry > 0:
        parent = (entry - 1) >> 1
        if not lists_before(lists, start + 3 * entry, start + 3 * parent):
            break
        lists_swap(lists, start + 3 * entry, start + 3 * parent)
        entry = parent
    return size + 1


@inner
def lists_pop(lists: Int64s, start: int, size: int) -> int:
    """Remove the first row; return the new size."""
    lists_swap(lists, start, start + 3 * (size - 1))
    lists_sink(lists, start, size - 1)
    return size - 1
