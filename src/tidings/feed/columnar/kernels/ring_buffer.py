"""The ring buffer of one subscriber: the event slots of its window, oldest first.

    slab    | newest |   free   | FRONT = oldest | next | ... |   cell n = (FRONT + n) mod capacity

The ring knows the whole window, of which the ranked list keeps only what can still be delivered.
"""

from tidings.compiled.jit import inlined
from tidings.feed.columnar.kernels.axis import event_position
from tidings.feed.columnar.kernels.layout import (
    FRONT,
    HELD,
    MATCHING,
    PUBLISHED,
    RING,
    RING_CLASS,
    SEEN,
    SIZE,
    RankedWindows,
)
from tidings.feed.columnar.kernels.ranked_list import find_entry, remove_entry
from tidings.feed.columnar.kernels.slabs import capacity_of, release_slab, take_slab


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
