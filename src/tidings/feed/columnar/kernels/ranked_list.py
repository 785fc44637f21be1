"""The ranked list of one subscriber: entries in a slab, best first.

    slab    |  free  | FIRST                     FIRST + SIZE |  free  |
                      higher key, newer, smaller id  ...

The list may start anywhere in its slab: removing a good entry moves the few before it one cell up
instead of the many behind it one cell down.
"""

from typing import NamedTuple

from tidings.compiled.jit import inlined
from tidings.feed.columnar.kernels.layout import (
    FIRST,
    MARK,
    MATCHED,
    SIZE,
    SLAB,
    SLAB_CLASS,
    SLOT,
    RankedWindows,
)
from tidings.feed.columnar.kernels.slabs import capacity_of, release_slab, take_slab


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
