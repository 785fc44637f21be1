"""Upkeep of the arrays of many windows: slabs moved together, and what is still in use."""

from tidings.compiled.array_types import Int32s, Int64s
from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined, kernel
from tidings.feed.columnar.kernels.layout import (
    FIRST,
    HELD,
    LIST,
    LIST_CAP,
    LIST_CLASS,
    LIST_FREE,
    LIST_USED,
    MATCHED,
    RING,
    RING_CAP,
    RING_CLASS,
    RING_FREE,
    RING_USED,
    SIZE,
    SLOT,
    Book,
)
from tidings.feed.columnar.kernels.ranked_list import entry_move, list_free
from tidings.feed.columnar.kernels.ring_buffer import ring_cell, ring_free


@kernel
def pack_lists(book: Book, order: Int64s) -> None:
    """Move the slabs of lists together, given the rows in the order of their slabs."""
    head, room, used = book[0], book[5], book[6]
    target = 0
    for row in order:
        grade = head[row, LIST_CLASS]
        if grade >= 0:
            source = head[row, LIST]
            for at in range(head[row, FIRST], head[row, FIRST] + head[row, SIZE]):
                entry_move(book, target + at, source + at)
            head[row, LIST] = target
            target += room[grade, LIST_CAP]
    used[LIST_USED] = target
    room[:, LIST_FREE] = -1


@kernel
def pack_rings(book: Book, order: Int64s) -> None:
    """Move the slabs of rings together, given the rows in the order of their slabs."""
    head, ring, room, used = book[0], book[4], book[5], book[6]
    target = 0
    for row in order:
        grade = head[row, RING_CLASS]
        if grade >= 0:
            source, cap = head[row, RING], room[grade, RING_CAP]
            for at in range(cap):
                ring[target + at] = ring[source + at]
            head[row, RING] = target
            target += cap
    used[RING_USED] = target
    room[:, RING_FREE] = -1


@kernel
def free_row(book: Book, row: int) -> None:
    """Give all slabs of a row back."""
    list_free(book, row)
    ring_free(book, row)


@kernel
def mark_slots(book: Book, rings: bool, alive: Int32s) -> None:
    """Mark the event slots that entries or rings still refer to."""
    head, who, ring = book[0], book[3], book[4]
    for row in range(len(head)):
        base = head[row, LIST] + head[row, FIRST]
        for entry in range(base, base + head[row, SIZE]):
            alive[who[entry, SLOT]] = 1
        if rings:
            for nth in range(head[row, HELD]):
                alive[ring[ring_cell(book, row, nth)]] = 1


@inlined
def copy_set(old: Int32s, new: Int32s, handle: int, used: int) -> int:
    """Copy one set behind what is used; give how much is used then."""
    count = old[~handle] + 1
    for at in range(count):
        new[used + at] = old[~handle + at]
    return used + int64(count)


@kernel
def copy_sets(book: Book, old: Int32s, new: Int32s, used: int) -> int:
    """Copy the sets of matched subscriptions that entries refer to; give how much is used.

    A set is its length and its members; an entry refers to it by the complement of its start.
    """
    head, who = book[0], book[3]
    for row in range(len(head)):
        base = head[row, LIST] + head[row, FIRST]
        for entry in range(base, base + head[row, SIZE]):
            handle = who[entry, MATCHED]
            if handle < -1:
                who[entry, MATCHED] = ~used
                used = copy_set(old, new, handle, used)
    return used
