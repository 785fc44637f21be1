"""The buffer of one diverse window: a slab of places in the order of arrival, with gaps.

    slab    | newest = LAST |  free  | oldest | ... |       a place with mark 0 is free

Distances between the matches are not stored: computing one takes some nanoseconds, and a choice
that starts from the last one needs few of them.
"""

from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined
from tidings.feed.columnar.kernels.layout import (
    CHOSEN,
    HELD,
    LAST,
    SEEN,
    SLAB,
    SLAB_CLASS,
    Arrival,
    DiverseBuffer,
    DiverseWindows,
    EventColumns,
    capacity_of,
    release_slab,
    take_slab,
)


@inlined
def is_newer(events: EventColumns, one: int, other: int) -> bool:
    """Return whether an event precedes another among equals: newer, then smaller id."""
    us, id_order = events.us, events.id_order
    return us[one] > us[other] or (us[one] == us[other] and id_order[one] < id_order[other])


@inlined
def places(buffer: DiverseBuffer, row: int) -> int:
    """Return how many places the slab of a row has."""
    return capacity_of(buffer.slabs, int64(buffer.head[row, SLAB_CLASS]))


@inlined
def slot_at(windows: DiverseWindows, row: int, place: int) -> int:
    """Return the event slot of a place."""
    return windows.buffer.slot[windows.buffer.head[row, SLAB] + place]


@inlined
def choice_start(windows: DiverseWindows, row: int) -> int:
    """Return where the kept choice of a row starts: by row if k is small, otherwise by slab."""
    width = windows.diversity.kept_width
    return row * width if width > 0 else int64(windows.buffer.head[row, SLAB])


@inlined
def reserve_place(buffer: DiverseBuffer, row: int) -> bool:
    """Make room for one more match; return whether the pools had it.

    A slab of the largest class has a free place, or gets one when the window moves on.
    """
    head, slabs = buffer.head, buffer.slabs
    size_class = head[row, SLAB_CLASS]
    held, largest = head[row, HELD], len(slabs.capacity) - 1
    if size_class >= 0 and (held < slabs.capacity[size_class] or size_class == largest):
        return True
    target = take_slab(slabs, buffer.slot, size_class + 1)
    if target < 0:
        return False
    if size_class >= 0:
        move_window(buffer, row, target)
        release_slab(slabs, buffer.slot, head[row, SLAB], size_class)
    for place in range(held, slabs.capacity[size_class + 1]):
        buffer.mark[target + place] = 0
    head[row, SLAB], head[row, SLAB_CLASS] = target, size_class + 1
    head[row, LAST] = held - 1
    head[row, CHOSEN] = 0  # places have changed
    return True


@inlined
def move_window(buffer: DiverseBuffer, row: int, target: int) -> None:
    """Copy a full window to another slab, the oldest match first."""
    start, capacity = buffer.head[row, SLAB], places(buffer, row)
    for i in range(capacity):
        # The window is full, so the oldest match follows the newest.
        source = start + (buffer.head[row, LAST] + 1 + i) % capacity
        buffer.slot[target + i] = buffer.slot[source]
        buffer.handle[target + i] = buffer.handle[source]
        buffer.score[target + i] = buffer.score[source]
        buffer.mark[target + i] = buffer.mark[source]


@inlined
def add_match(buffer: DiverseBuffer, row: int, match: Arrival) -> int:
    """Write a match to the next free place behind the newest, and return that place."""
    head, mark = buffer.head, buffer.mark
    start, capacity = head[row, SLAB], places(buffer, row)
    place = head[row, LAST] + 1
    place = place if place < capacity else 0
    while mark[start + place] > 0:  # the places of a history are freed in any order
        place = place + 1 if place + 1 < capacity else 0
    head[row, SEEN] += 1
    head[row, HELD] += 1
    head[row, LAST] = place
    buffer.slot[start + place] = match.slot
    buffer.score[start + place] = match.score
    buffer.handle[start + place] = match.handle
    mark[start + place] = 2 * head[row, SEEN]
    return int64(place)
