"""The entries of one subscriber, best first: room for them, where they belong, in and out."""

from tidings.compiled.jit import inlined
from tidings.feed.columnar.kernels.layout import (
    FIRST,
    LIST,
    LIST_CAP,
    LIST_CLASS,
    LIST_FREE,
    LIST_USED,
    MARK,
    MATCHED,
    SIZE,
    SLOT,
    Book,
    Events,
)


@inlined
def entry_move(book: Book, target: int, source: int) -> None:
    """Copy an entry to another place of the pool."""
    key, score, who = book[1], book[2], book[3]
    key[target] = key[source]
    score[target] = score[source]
    who[target, SLOT] = who[source, SLOT]
    who[target, MATCHED] = who[source, MATCHED]
    who[target, MARK] = who[source, MARK]


@inlined
def list_ready(book: Book, row: int) -> bool:
    """See to it that one more entry fits behind the last; say whether the pool had room.

    A list that has moved an eighth of its slab towards the end is moved back; else it gets the
    next class. So a place costs O(1) moves on average.
    """
    head, room = book[0], book[5]
    grade = head[row, LIST_CLASS]
    cap = room[grade, LIST_CAP] if grade >= 0 else 0
    first, size, base = head[row, FIRST], head[row, SIZE], head[row, LIST]
    if first + size < cap:
        return True
    grown = not (first > 0 and 8 * first >= cap)
    target = list_take(book, grade + 1) if grown else base
    if target < 0:
        return False
    for at in range(size):
        entry_move(book, target + at, base + first + at)
    if grown:
        list_free(book, row)
        head[row, LIST], head[row, LIST_CLASS] = target, grade + 1
    head[row, FIRST] = 0
    return True


@inlined
def list_take(book: Book, grade: int) -> int:
    """Give a slab of a class, or -1 if the pool has none."""
    who, room, used = book[3], book[5], book[6]
    target = room[grade, LIST_FREE]
    if target >= 0:
        room[grade, LIST_FREE] = who[target, SLOT]
    elif used[LIST_USED] + room[grade, LIST_CAP] <= len(who):
        target = used[LIST_USED]
        used[LIST_USED] += room[grade, LIST_CAP]
    return target


@inlined
def list_free(book: Book, row: int) -> None:
    """Give the slab back to its class."""
    head, who, room = book[0], book[3], book[5]
    grade = head[row, LIST_CLASS]
    if grade >= 0:
        who[head[row, LIST], SLOT] = room[grade, LIST_FREE]
        room[grade, LIST_FREE] = head[row, LIST]


@inlined
def list_place(book: Book, events: Events, row: int, key: float, slot: int) -> int:
    """Give how many entries come before a match: higher key, then newer, then smaller id."""
    head, keys, who = book[0], book[1], book[3]
    us, tie = events[0], events[2]
    base = head[row, LIST] + head[row, FIRST]
    low, high = 0, head[row, SIZE]
    while low < high:
        middle = (low + high) >> 1
        other = keys[base + middle]
        ahead = other > key
        if other == key:
            rival = who[base + middle, SLOT]
            ahead = us[rival] > us[slot] or (us[rival] == us[slot] and tie[rival] < tie[slot])
        if ahead:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def list_insert(
    book: Book, row: int, place: int, match: tuple[float, float, int, int, int]
) -> None:
    """Put (key, score, slot, handle, mark) at its place; there is room behind the last."""
    head, keys, scores, who = book[0], book[1], book[2], book[3]
    base = head[row, LIST] + head[row, FIRST]
    for at in range(base + head[row, SIZE], base + place, -1):
        entry_move(book, at, at - 1)
    at = base + place
    keys[at] = match[0]
    scores[at] = match[1]
    who[at, SLOT] = match[2]
    who[at, MATCHED] = match[3]
    who[at, MARK] = match[4]
    head[row, SIZE] += 1


@inlined
def list_remove(book: Book, row: int, place: int) -> None:
    """Take an entry out and close the gap from the nearer side."""
    head = book[0]
    base, size = head[row, LIST] + head[row, FIRST], head[row, SIZE]
    if place < size - 1 - place:
        for at in range(base + place, base, -1):
            entry_move(book, at, at - 1)
        head[row, FIRST] += 1
    else:
        for at in range(base + place, base + size - 1):
            entry_move(book, at, at + 1)
    head[row, SIZE] = size - 1


@inlined
def list_find(book: Book, row: int, slot: int, limit: int) -> int:
    """Give the place of an event among the first `limit` entries, or -1."""
    head, who = book[0], book[3]
    base = head[row, LIST] + head[row, FIRST]
    for place in range(min(limit, head[row, SIZE])):
        if who[base + place, SLOT] == slot:
            return place
    return -1


@inlined
def list_beaten(book: Book, row: int, place: int, k: int) -> None:
    """Count one more newer and better match for all from `place` on; drop those with k of them.

    An entry is counted k times at most, so this and the move behind it cost O(k) on average.
    """
    head, who = book[0], book[3]
    base = head[row, LIST] + head[row, FIRST]
    kept = base + place
    for at in range(kept, base + head[row, SIZE]):
        who[at, MARK] += 2
        if who[at, MARK] >> 1 < k:
            if kept < at:
                entry_move(book, kept, at)
            kept += 1
    head[row, SIZE] = kept - base
