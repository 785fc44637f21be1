"""The two buffers of a ranked window: a list of what can still be delivered, and a ring of all."""

from typing import Final, NamedTuple

from tidings.compiled.array_types import Int32s
from tidings.compiled.jit import inlined
from tidings.compiled.simd import prefetch
from tidings.feed.columnar.kernels.layout import (
    FIRST,
    FRONT,
    HELD,
    MARK,
    MATCHED,
    MATCHING,
    PUBLISHED,
    RANKED_WIDTH,
    RING,
    RING_CLASS,
    SEEN,
    SIZE,
    SLAB,
    SLAB_CLASS,
    SLOT,
    RankedWindows,
    capacity_of,
    release_slab,
    take_slab,
)
from tidings.feed.columnar.kernels.timing import event_position

# The ranked list of one subscriber: entries in a slab, best first.
#
#     slab    |  free  | FIRST                     FIRST + SIZE |  free  |
#                       higher key, newer, smaller id  ...
#
# The list may start anywhere in its slab: removing a good entry moves the few before it one cell up
# instead of the many behind it one cell down.


class RankedEntry(NamedTuple):
    """One entry of a ranked list."""

    key: float
    score: float
    slot: int
    handle: int
    mark: int


@inlined
def list_start(windows: RankedWindows, row: int) -> int:
    """Return the cell of the best entry."""
    return windows.head[row, SLAB] + windows.head[row, FIRST]


@inlined
def copy_entry(windows: RankedWindows, target: int, source: int) -> None:
    """Copy an entry to another cell of the pools."""
    windows.key[target] = windows.key[source]
    windows.score[target] = windows.score[source]
    for column in range(3):
        windows.entry[target, column] = windows.entry[source, column]


@inlined
def reserve_entry(windows: RankedWindows, row: int) -> bool:
    """Make room for one more entry behind the last; return whether the pools had it.

    A list that has drifted by an eighth of its slab is moved back to the start; otherwise it gets a
    slab of the next class. Both are paid for by as many insertions: O(1) moves on average.
    """
    head = windows.head
    size_class = head[row, SLAB_CLASS]
    first, size, start = head[row, FIRST], head[row, SIZE], head[row, SLAB]
    capacity = capacity_of(windows.list_slabs, size_class)
    if first + size < capacity:
        return True
    grow = first == 0 or 8 * first < capacity
    target = start
    if grow:
        target = take_slab(windows.list_slabs, windows.entry[:, SLOT], size_class + 1)
        if target < 0:
            return False
    for i in range(size):
        copy_entry(windows, target + i, start + first + i)
    if grow:  # released only now: its first cell becomes a link
        release_list(windows, row)
        head[row, SLAB], head[row, SLAB_CLASS] = target, size_class + 1
    head[row, FIRST] = 0
    return True


@inlined
def release_list(windows: RankedWindows, row: int) -> None:
    """Release the slab of a list."""
    start, size_class = windows.head[row, SLAB], windows.head[row, SLAB_CLASS]
    release_slab(windows.list_slabs, windows.entry[:, SLOT], start, size_class)


@inlined
def rank_position(windows: RankedWindows, row: int, key: float, slot: int) -> int:
    """Return how many entries precede a match: higher key, then newer, then smaller id."""
    us, id_order = windows.events.us, windows.events.id_order
    start = list_start(windows, row)
    low, high = 0, windows.head[row, SIZE]
    while low < high:
        middle = (low + high) >> 1
        other = windows.key[start + middle]
        ahead = other > key
        if other == key:  # the total order of ties: newer, then smaller id
            rival = windows.entry[start + middle, SLOT]
            ahead = us[rival] > us[slot] or (
                us[rival] == us[slot] and id_order[rival] < id_order[slot]
            )
        if ahead:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def insert_entry(windows: RankedWindows, row: int, position: int, new: RankedEntry) -> None:
    """Insert an entry at its position; there must be room behind the last."""
    start = list_start(windows, row)
    cell = start + position
    # From the back, so that no entry is overwritten before it has moved.
    for i in range(start + windows.head[row, SIZE], cell, -1):
        copy_entry(windows, i, i - 1)
    windows.key[cell] = new.key
    windows.score[cell] = new.score
    windows.entry[cell, SLOT] = new.slot
    windows.entry[cell, MATCHED] = new.handle
    windows.entry[cell, MARK] = new.mark
    windows.head[row, SIZE] += 1


@inlined
def remove_entry(windows: RankedWindows, row: int, position: int) -> None:
    """Remove an entry, and close the gap from the nearer side."""
    head = windows.head
    start, size = list_start(windows, row), head[row, SIZE]
    if position < size - 1 - position:  # few entries precede it: the list starts a cell later
        for i in range(start + position, start, -1):
            copy_entry(windows, i, i - 1)
        head[row, FIRST] += 1
    else:
        for i in range(start + position, start + size - 1):
            copy_entry(windows, i, i + 1)
    head[row, SIZE] = size - 1


@inlined
def find_entry(windows: RankedWindows, row: int, slot: int, limit: int) -> int:
    """Return the position of an event among the first `limit` entries, or -1."""
    start = list_start(windows, row)
    for position in range(min(limit, windows.head[row, SIZE])):
        if windows.entry[start + position, SLOT] == slot:
            return position
    return -1


@inlined
def count_beaten(windows: RankedWindows, row: int, position: int, k: int) -> None:
    """Count one more newer and better match for all entries from `position` on; drop at k of them.

    An entry is counted at most k times, so counting and closing gaps cost O(k) on average.
    """
    entry = windows.entry
    start = list_start(windows, row)
    kept = start + position
    for cell in range(kept, start + windows.head[row, SIZE]):
        entry[cell, MARK] += 2  # the lowest bit is DONE
        if entry[cell, MARK] >> 1 < k:
            if kept < cell:
                copy_entry(windows, kept, cell)
            kept += 1
    windows.head[row, SIZE] = kept - start


# The ring buffer of one subscriber: the event slots of its window, oldest first.
#
#     slab    | newest |   free   | FRONT = oldest | next | ... |  cell n = (FRONT + n) mod capacity
#
# The ring knows the whole window, of which the ranked list keeps only what can still be delivered.


@inlined
def ring_cell(windows: RankedWindows, row: int, nth: int) -> int:
    """Return the cell of the n-th oldest match in the pool."""
    head = windows.head
    offset = head[row, FRONT] + nth  # below twice the capacity: no modulo is needed
    capacity = windows.ring_slabs.capacity[head[row, RING_CLASS]]
    return head[row, RING] + (offset if offset < capacity else offset - capacity)


@inlined
def reserve_cell(windows: RankedWindows, row: int) -> bool:
    """Make room for one more match; return whether the pool had it."""
    head, ring, slabs = windows.head, windows.ring, windows.ring_slabs
    size_class, held = head[row, RING_CLASS], head[row, HELD]
    if held < capacity_of(slabs, size_class):
        return True
    target = take_slab(slabs, ring, size_class + 1)
    if target < 0:
        return False
    for nth in range(held):  # unrolled, so that the new ring starts at cell 0
        ring[target + nth] = ring[ring_cell(windows, row, nth)]
    release_ring(windows, row)
    head[row, RING], head[row, RING_CLASS], head[row, FRONT] = target, size_class + 1, 0
    return True


@inlined
def release_ring(windows: RankedWindows, row: int) -> None:
    """Release the slab of a ring."""
    start, size_class = windows.head[row, RING], windows.head[row, RING_CLASS]
    release_slab(windows.ring_slabs, windows.ring, start, size_class)


@inlined
def push_ring(windows: RankedWindows, row: int, slot: int) -> bool:
    """Add the newest match; return whether its position is the last one.

    Sequences need not rise with time, so on the axis of publications a match may have to be sorted
    in; then `disorder` tells that times are not sorted any more.
    """
    head, ring, sequence = windows.head, windows.ring, windows.events.sequence
    nth = head[row, HELD]
    head[row, HELD] = nth + 1
    if windows.policy.axis == PUBLISHED:
        while nth > 0:
            before = ring[ring_cell(windows, row, nth - 1)]
            if sequence[before] <= sequence[slot]:
                break
            ring[ring_cell(windows, row, nth)] = before
            nth -= 1
            windows.disorder[0] = 1
    ring[ring_cell(windows, row, nth)] = slot
    return nth == head[row, HELD] - 1


@inlined
def expire_ring(windows: RankedWindows, row: int, start: int) -> None:
    """Drop the matches before the position `start`, also from the list.

    Invariant: with pruning, fewer than k entries precede the oldest match, because each of them is
    newer and better; so the oldest is found among the first k.
    """
    head, policy = windows.head, windows.policy
    while head[row, HELD] > 0:
        slot = windows.ring[ring_cell(windows, row, 0)]
        if policy.axis == MATCHING:
            oldest = head[row, SEEN] - head[row, HELD]  # matches are numbered without gaps
        else:
            oldest = event_position(windows.events, policy.axis, slot)
        if oldest >= start:
            break
        front = head[row, FRONT] + 1
        wraps = front == windows.ring_slabs.capacity[head[row, RING_CLASS]]
        head[row, FRONT] = 0 if wraps else front
        head[row, HELD] -= 1
        position = find_entry(windows, row, slot, policy.k if policy.prune else head[row, SIZE])
        if position >= 0:
            remove_entry(windows, row, position)


@inlined
def oldest_us(windows: RankedWindows, row: int) -> int:
    """Return the oldest publication time of the window, which must not be empty."""
    us, ring = windows.events.us, windows.ring
    oldest = us[ring[ring_cell(windows, row, 0)]]
    if windows.disorder[0]:  # only then the ring is not sorted by time
        for nth in range(1, windows.head[row, HELD]):
            oldest = min(oldest, us[ring[ring_cell(windows, row, nth)]])
    return oldest


@inlined
def newest_us(windows: RankedWindows, row: int) -> int:
    """Return the newest publication time of the window, which must not be empty."""
    us, ring, held = windows.events.us, windows.ring, windows.head[row, HELD]
    newest = us[ring[ring_cell(windows, row, held - 1)]]
    if windows.disorder[0]:
        for nth in range(held - 1):
            newest = max(newest, us[ring[ring_cell(windows, row, nth)]])
    return newest


# Prefetching: the rows of the next offers are requested early, so that cache misses overlap.
#
# At a million windows nearly every access misses the cache. The head of a row is requested FAR
# offers ahead and tells where its entries are, which are requested NEAR offers ahead.

NEAR: Final = 6
FAR: Final = 12


@inlined
def prefetch_head(windows: RankedWindows, row: int) -> None:
    """Prefetch the counters of a row, which may lie on two cache lines."""
    start = row * RANKED_WIDTH
    prefetch(windows.head, start)
    prefetch(windows.head, start + RANKED_WIDTH - 1)


@inlined
def prefetch_entries(windows: RankedWindows, row: int) -> None:
    """Prefetch the entries of a row and both ends of its ring; its head should be in the cache."""
    head, ring = windows.head, windows.ring
    start, size = list_start(windows, row), head[row, SIZE]
    for i in range(0, size, 8):  # keys of 8 bytes, lines of 64
        prefetch(windows.key, start + i)
    for i in range(0, size, 5):  # entries of 12 bytes
        prefetch(windows.entry, 3 * (start + i))
    if head[row, RING_CLASS] >= 0:
        back = head[row, FRONT] + head[row, HELD]
        capacity = windows.ring_slabs.capacity[head[row, RING_CLASS]]
        prefetch(ring, head[row, RING] + head[row, FRONT])
        prefetch(ring, head[row, RING] + (back if back < capacity else back - capacity))


@inlined
def prefetch_ahead(windows: RankedWindows, rows: Int32s, index: int) -> None:
    """Prefetch the data of the offers a little ahead of `index`."""
    if index + FAR < len(rows):
        prefetch_head(windows, rows[index + FAR])
        prefetch_entries(windows, rows[index + NEAR])
