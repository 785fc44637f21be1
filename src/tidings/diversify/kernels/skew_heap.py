"""Skew heaps (Sleator and Tarjan) in arrays: the best on top, any member may leave.

Nodes are numbers. All operations are O(log n) amortised, and nothing is allocated: a node has its
own place in the arrays for as long as it lives.
"""

from typing import Final

from tidings.compiled.array_types import Float64s, Int64s
from tidings.compiled.jit import inner

Heap = Int64s
"""A row for each node: its left and its right child and its parent, or -1."""
LEFT: Final = 0
RIGHT: Final = 1
PARENT: Final = 2
Rank = tuple[Float64s, Int64s, Int64s]
"""Of each slot its key, its time, and a number that decides between those of one time."""


@inner
def slot_before(rank: Rank, one: int, other: int) -> bool:
    """Tell whether a slot goes before another: higher key, newer, smaller number."""
    keys, times, names = rank
    if keys[one] != keys[other]:
        return keys[one] > keys[other]
    if times[one] != times[other]:
        return times[one] > times[other]
    return names[one] < names[other]


@inner
def skew_meld(heap: Heap, rank: Rank, width: int, one: int, other: int) -> int:
    """Join two heaps; give the top. Node n belongs to slot n // width."""
    if one < 0 or other < 0:
        return max(one, other)
    if slot_before(rank, other // width, one // width):
        one, other = other, one
    top = at = one
    while True:
        below = heap[at, RIGHT]
        heap[at, RIGHT] = heap[at, LEFT]
        if below >= 0 and slot_before(rank, below // width, other // width):
            below, other = other, below
        heap[at, LEFT] = other
        heap[other, PARENT] = at
        if below < 0:
            return top
        at, other = other, below


@inner
def skew_add(heap: Heap, rank: Rank, width: int, top: int, node: int) -> int:
    """Add a node; give the top."""
    heap[node, LEFT] = heap[node, RIGHT] = heap[node, PARENT] = -1
    return skew_meld(heap, rank, width, top, node)


@inner
def skew_drop(heap: Heap, rank: Rank, width: int, top: int, node: int) -> int:
    """Take out any node; give the top, or -1 where nothing is left."""
    above = heap[node, PARENT]
    one, other = heap[node, LEFT], heap[node, RIGHT]
    for child in (one, other):
        if child >= 0:
            heap[child, PARENT] = -1
    joined = skew_meld(heap, rank, width, one, other)
    if joined >= 0:
        heap[joined, PARENT] = above
    if above < 0:
        return joined
    heap[above, LEFT if heap[above, LEFT] == node else RIGHT] = joined
    return top
