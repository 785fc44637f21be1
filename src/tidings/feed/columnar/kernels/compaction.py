"""Upkeep of windows: compaction of their pools, and what they still refer to.

A pool that is full is compacted if much of it is free slabs: the others move to the front in the
order in which they lie, and the free lists become empty. Then it is lengthened by an eighth, so
compaction costs O(1) per entry.
"""

from tidings.compiled.array_types import AnyArray, Int32s, Int64s
from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined, kernel
from tidings.feed.columnar.kernels.diverse_buffer import places
from tidings.feed.columnar.kernels.layout import (
    CHOSEN,
    HELD,
    LAST,
    MATCHED,
    SIZE,
    SLAB,
    SLAB_CLASS,
    SLOT,
    DiverseBuffer,
    RankedWindows,
    release_slab,
)
from tidings.feed.columnar.kernels.ranked_buffer import (
    list_start,
    release_list,
    release_ring,
    ring_cell,
)


@kernel
def move_cells(pool: AnyArray, source: Int64s, target: Int64s, length: Int64s) -> None:
    """Move slabs of a pool to the front, in the order in which they lie.

    In that order no slab is overwritten before it has been moved.
    """
    for nth in range(len(source)):
        # Slabs in front of the first gap, often most of them, stay where they are.
        if source[nth] != target[nth]:
            for i in range(length[nth]):
                pool[target[nth] + i] = pool[source[nth] + i]


@kernel
def release_row(windows: RankedWindows, row: int) -> None:
    """Release all slabs of a row."""
    release_list(windows, row)
    release_ring(windows, row)


@kernel
def mark_ranked(windows: RankedWindows, has_rings: bool, alive: Int32s) -> None:
    """Mark the event slots that lists and rings still refer to."""
    head = windows.head
    for row in range(len(head)):
        start = list_start(windows, row)
        for cell in range(start, start + head[row, SIZE]):
            alive[windows.entry[cell, SLOT]] = 1
        if has_rings:  # they also hold events whose entries were pruned
            for nth in range(head[row, HELD]):
                alive[windows.ring[ring_cell(windows, row, nth)]] = 1


@inlined
def copy_set(old: Int32s, new: Int32s, handle: int, used: int) -> int:
    """Copy one set of matched subscriptions; return how much of `new` is used then."""
    count = old[~handle] + 1
    for i in range(count):
        new[used + i] = old[~handle + i]
    return used + int64(count)


@kernel
def copy_ranked_sets(windows: RankedWindows, old: Int32s, new: Int32s, used: int) -> int:
    """Copy the sets of matched subscriptions that entries refer to; return how much is used.

    A set is its length followed by its members; a handle below -1 is the complement of its start.
    """
    head, entry = windows.head, windows.entry
    for row in range(len(head)):
        start = list_start(windows, row)
        for cell in range(start, start + head[row, SIZE]):
            handle = entry[cell, MATCHED]
            if handle < -1:  # one subscription, or none, is not in the pool
                entry[cell, MATCHED] = ~used
                used = copy_set(old, new, handle, used)
    return used


@kernel
def release_diverse_row(buffer: DiverseBuffer, row: int) -> None:
    """Drop all matches of a row, and release its slab."""
    head = buffer.head
    release_slab(buffer.slabs, buffer.slot, head[row, SLAB], head[row, SLAB_CLASS])
    head[row, HELD], head[row, SLAB], head[row, SLAB_CLASS] = 0, 0, -1
    head[row, LAST], head[row, CHOSEN] = -1, 0


@kernel
def mark_diverse(buffer: DiverseBuffer, alive: Int32s) -> None:
    """Mark the event slots that windows still refer to."""
    for row in range(len(buffer.head)):
        start = buffer.head[row, SLAB]
        for place in range(start, start + places(buffer, row)):
            if buffer.mark[place] > 0:
                alive[buffer.slot[place]] = 1


@kernel
def copy_diverse_sets(buffer: DiverseBuffer, old: Int32s, new: Int32s, used: int) -> int:
    """Copy the sets of matched subscriptions that windows refer to; return how much is used."""
    for row in range(len(buffer.head)):
        start = buffer.head[row, SLAB]
        for place in range(start, start + places(buffer, row)):
            handle = buffer.handle[place]
            if buffer.mark[place] > 0 and handle < -1:
                buffer.handle[place] = ~used
                used = copy_set(old, new, handle, used)
    return used
