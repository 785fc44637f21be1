"""The matches that one subscriber's window holds, oldest place first, and when they leave it."""

from tidings.compiled.jit import inlined
from tidings.feed.columnar.kernels.layout import (
    AXIS,
    DISORDER,
    FRONT,
    HELD,
    MATCHING,
    PRUNE,
    PUBLISHED,
    RING,
    RING_CAP,
    RING_CLASS,
    RING_FREE,
    RING_USED,
    SEEN,
    SIZE,
    TIME,
    Book,
    Events,
    K,
    World,
)
from tidings.feed.columnar.kernels.ranked_list import list_find, list_remove


@inlined
def ring_cell(book: Book, row: int, nth: int) -> int:
    """Give where in the pool the n-th oldest match lies."""
    head, room = book[0], book[5]
    at = head[row, FRONT] + nth
    cap = room[head[row, RING_CLASS], RING_CAP]
    return head[row, RING] + (at if at < cap else at - cap)


@inlined
def ring_ready(book: Book, row: int) -> bool:
    """See to it that one more match fits; say whether the pool had room."""
    head, ring, room, used = book[0], book[4], book[5], book[6]
    grade, held = head[row, RING_CLASS], head[row, HELD]
    if held < (room[grade, RING_CAP] if grade >= 0 else 0):
        return True
    target = room[grade + 1, RING_FREE]
    if target >= 0:
        room[grade + 1, RING_FREE] = ring[target]
    elif used[RING_USED] + room[grade + 1, RING_CAP] <= len(ring):
        target = used[RING_USED]
        used[RING_USED] += room[grade + 1, RING_CAP]
    else:
        return False
    for nth in range(held):
        ring[target + nth] = ring[ring_cell(book, row, nth)]
    ring_free(book, row)
    head[row, RING], head[row, RING_CLASS], head[row, FRONT] = target, grade + 1, 0
    return True


@inlined
def ring_free(book: Book, row: int) -> None:
    """Give the slab back to its class."""
    head, ring, room = book[0], book[4], book[5]
    grade = head[row, RING_CLASS]
    if grade >= 0:
        ring[head[row, RING]] = room[grade, RING_FREE]
        room[grade, RING_FREE] = head[row, RING]


@inlined
def place_of(events: Events, axis: int, slot: int) -> int:
    """Give the place of an event in time or among the published ones."""
    return events[0][slot] if axis == TIME else events[1][slot] - 1


@inlined
def axis_end(axis: int, seen: int, us: int, sequence: int) -> int:
    """Give the first place after now."""
    if axis == TIME:
        return us + 1
    return sequence if axis == PUBLISHED else seen


@inlined
def has_passed(axis: int, end: int, seen: int, us: int, sequence: int) -> bool:
    """Tell whether nothing before `end` can still come."""
    return end <= us if axis == TIME else end <= axis_end(axis, seen, us, sequence)


@inlined
def next_step(span: tuple[int, int, int], oldest: int, now: int) -> int:
    """Return the next step at which a window that was chosen from changes, or the first after now.

    `span` is the step that has ended, how far steps are apart, and the length of the window. No
    match comes in between, so the next change is that the oldest place is left behind.
    """
    end, step, length = span
    leaving = (oldest + length - end) // step + 1
    passed = (now - end) // step + 1
    return end + step * max(1, min(leaving, passed))


@inlined
def ring_push(book: Book, events: Events, row: int, slot: int, axis: int) -> bool:
    """Add the newest match; tell whether its place is last, which numbers need not be."""
    head, ring, used = book[0], book[4], book[6]
    nth = head[row, HELD]
    head[row, HELD] = nth + 1
    if axis == PUBLISHED:
        while nth > 0:
            before = ring[ring_cell(book, row, nth - 1)]
            if events[1][before] <= events[1][slot]:
                break
            ring[ring_cell(book, row, nth)] = before
            nth -= 1
            used[DISORDER] = 1
    ring[ring_cell(book, row, nth)] = slot
    return nth == head[row, HELD] - 1


@inlined
def ring_expire(world: World, row: int, start: int) -> None:
    """Drop what lies before the place `start`, also from the list.

    Where only k better and newer ones oust an entry, the oldest is always among the first k.
    """
    book, events, plan = world
    head, ring, room = book[0], book[4], book[5]
    axis, k, prune = plan[0][AXIS], plan[0][K], plan[0][PRUNE]
    while head[row, HELD] > 0:
        slot = ring[ring_cell(book, row, 0)]
        if axis == MATCHING:
            place = head[row, SEEN] - head[row, HELD]
        else:
            place = place_of(events, axis, slot)
        if place >= start:
            break
        front = head[row, FRONT] + 1
        head[row, FRONT] = 0 if front == room[head[row, RING_CLASS], RING_CAP] else front
        head[row, HELD] -= 1
        found = list_find(book, row, slot, k if prune else head[row, SIZE])
        if found >= 0:
            list_remove(book, row, found)


@inlined
def ring_oldest_us(book: Book, events: Events, row: int) -> int:
    """Give the oldest publication time in the window."""
    head, ring, used = book[0], book[4], book[6]
    oldest = events[0][ring[ring_cell(book, row, 0)]]
    if used[DISORDER]:
        for nth in range(1, head[row, HELD]):
            oldest = min(oldest, events[0][ring[ring_cell(book, row, nth)]])
    return oldest


@inlined
def ring_newest_us(book: Book, events: Events, row: int) -> int:
    """Give the newest publication time in the window."""
    head, ring, used = book[0], book[4], book[6]
    newest = events[0][ring[ring_cell(book, row, head[row, HELD] - 1)]]
    if used[DISORDER]:
        for nth in range(head[row, HELD] - 1):
            newest = max(newest, events[0][ring[ring_cell(book, row, nth)]])
    return newest
