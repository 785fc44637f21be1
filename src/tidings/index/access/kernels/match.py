"""All that covers an event, and the k best of it, by lists under the most selective predicates.

An entry is a row; the next check, as an entry to be stamped, or as ~(slot + 1) to have a value,
or UNKNOWN; and the first and the last cell of the access interval, if it is one.
"""

from typing import Final, NamedTuple

from tidings.compiled.array_types import Int32s, Int64s
from tidings.compiled.heaps import heap_offer, heap_sort
from tidings.compiled.jit import inlined, inner
from tidings.index.access.kernels.postings import (
    AT,
    END,
    NEXT,
    WIDE,
    Lists,
    cells_of,
    in_cells,
    lists_for,
)
from tidings.index.access.kernels.prefetch import prefetch
from tidings.index.access.kernels.records import (
    HEAD,
    Hits,
    Marks,
    Phrases,
    Rows,
    Said,
    Weights,
    find_by_scan,
    mark,
    row_holds,
)

BANDS: Final = 6  # bands that are each as long as all before, until there is no more
LEAST_BAND: Final = 64


class Asked(NamedTuple):
    """Events, and the vocabulary in which they speak."""

    said: Said
    phrases: Phrases
    hits: Hits


class Part(NamedTuple):
    """One part of an index as it is seen at one version; without lists only `size` words of it."""

    rows: Rows
    lists: Lists
    weights: Weights
    size: int
    version: int


class Room(NamedTuple):
    """Where a question of one reader works, and how much it looked at."""

    marks: Marks
    taken: Int32s  # by number: the last epoch in which it was found
    lists: Int32s
    heap: Int64s
    ranks: Int32s
    rows: Int32s  # those that may hold, looked at together: their records come at once
    looked: Int64s  # predicates, subscriptions, and a sum that nobody reads


@inlined
def may_hold(entries: Int32s, at: int, marks: Marks, span: tuple[int, int]) -> int:
    """Tell by an entry alone whether its row may hold: 1 or 0.

    Nothing here is a branch, since what comes out is hard to foresee.
    """
    check = entries[at + 1]
    place = check if check >= 0 else marks.always + ~check
    stamped = marks.stamp[place] == marks.epoch[0]
    return stamped & in_cells(entries[at + 2], span)


@inlined
def new_match(part: Part, row: int, room: Room) -> bool:
    """Tell whether a row holds whose subscription lives and was not found before; note it."""
    room.looked[1] += 1
    made = row_holds(part.rows.words, row, room.marks)
    room.looked[0] += abs(made)
    if made < 0:
        return False
    head = part.rows.words[row]
    rank = head >> 1
    if part.rows.notes[2 * rank + 1] <= part.version:
        return False
    if head & 1:
        number = part.rows.notes[2 * rank]
        if room.taken[number] == room.marks.epoch[0]:
            return False
        room.taken[number] = room.marks.epoch[0]
    return True


@inlined
def fetch(words: Int32s, room: Room, count: int) -> None:
    """Read the records to come, so that the memory gets them all at once and not one by one."""
    total = 0
    for at in range(count):
        total += words[room.rows[at] + HEAD]
    room.looked[2] = total


@inner
def take_all(part: Part, room: Room, count: int, size: int, out: Int32s) -> int:
    """Write the numbers of the rows that hold; give how many numbers there are now."""
    fetch(part.rows.words, room, count)
    for at in range(count):
        row = room.rows[at]
        if new_match(part, row, room):
            if size < len(out):
                out[size] = part.rows.notes[2 * (part.rows.words[row] >> 1)]
            size += 1
    return size


@inner
def find_all(part: Part, asked: Asked, room: Room, span: tuple[int, int], out: Int32s) -> int:
    """Write the numbers of all that cover an event, once each; give where they end.

    `span` is the event, and where its numbers begin. What does not fit is counted only.
    """
    event, size = span
    lists, count = part.lists, 0
    ids, values = mark(room.marks, asked.said, asked.phrases, asked.hits, event)
    for each in range(lists_for(lists, room.marks, ids, values, room.lists)):
        first, last = room.lists[WIDE * each + AT], room.lists[WIDE * each + END]
        cells = cells_of(room.lists, WIDE * each)
        room.looked[0] += (last - first) // 3
        for at in range(first, last, 3):
            room.rows[count] = lists.entries[at]
            count += may_hold(lists.entries, at, room.marks, cells)
            if count == len(room.rows):
                size, count = take_all(part, room, count, size, out), 0
    return take_all(part, room, count, size, out)


@inner
def find_many(part: Part, asked: Asked, room: Room, first: int, starts: Int64s, out: Int32s) -> int:
    """Write for the events from `first` on the numbers of all that cover them.

    `starts` gets where each begins. Give the event whose numbers did not fit, or how many there
    are.
    """
    for event in range(first, len(starts) - 1):
        end = find_all(part, asked, room, (event, starts[event]), out)
        if end > len(out):
            return event
        starts[event + 1] = end
    return len(starts) - 1


@inner
def scan_many(part: Part, asked: Asked, room: Room, first: int, starts: Int64s, out: Int32s) -> int:
    """Write the *ranks* in the same way, by looking at every record: for a part without lists."""
    for event in range(first, len(starts) - 1):
        mark(room.marks, asked.said, asked.phrases, asked.hits, event)
        seen = part.size, part.version
        found = find_by_scan(part.rows, seen, room.marks, room.looked, room.ranks)
        if starts[event] + found > len(out):
            return event
        for at in range(found):
            out[starts[event] + at] = room.ranks[at]
        starts[event + 1] = starts[event] + found
    return len(starts) - 1


@inner
def take_best(part: Part, room: Room, count: int, size: int) -> int:
    """Offer the heap the rows that hold; give its size."""
    fetch(part.rows.words, room, count)
    for at in range(count):
        row = room.rows[at]
        if (size < len(room.heap) or row < room.heap[0]) and new_match(part, row, room):
            size = heap_offer(room.heap, size, row)
    return size


@inlined
def bound(room: Room, size: int, limit: int) -> int:
    """Give before which row there may be one that belongs into the heap."""
    return min(limit, room.heap[0]) if size == len(room.heap) else limit


@inlined
def find_below(part: Part, room: Room, lists: int, size: int, limit: int) -> int:
    """Offer the heap all rows before `limit` that hold; a list goes on where it was left."""
    entries, count, last = part.lists.entries, 0, bound(room, size, limit)
    for each in range(0, WIDE * lists, WIDE):
        row = room.lists[each + NEXT]
        if row >= last:
            continue
        first, end = room.lists[each + AT], room.lists[each + END]
        cells = cells_of(room.lists, each)
        at = first
        while row < last:
            room.rows[count] = row
            count += may_hold(entries, at, room.marks, cells)
            if count == len(room.rows):
                size, count = take_best(part, room, count, size), 0
                last = bound(room, size, limit)
            at += 3
            row = entries[at] if at < end else part.size
        room.looked[0] += (at - first) // 3
        room.lists[each + AT], room.lists[each + NEXT] = at, row
    return take_best(part, room, count, size)


@inner
def find_top(part: Part, asked: Asked, room: Room, event: int, most: int) -> int:
    """Put the k lowest ranks that cover an event into the heap, in order; give their number.

    They lie before the row `most`. The lists are gone through in bands, each as long as all before
    it: so at most twice as much is looked at as if it were known where the k-th lies.
    """
    size, k = 0, len(room.heap)
    ids, values = mark(room.marks, asked.said, asked.phrases, asked.hits, event)
    lists = lists_for(part.lists, room.marks, ids, values, room.lists)
    for each in range(0, WIDE * lists, WIDE):
        prefetch(part.lists.entries, room.lists[each + AT])
    limit = (part.size >> BANDS) + LEAST_BAND
    while True:
        size = find_below(part, room, lists, size, min(limit, most))
        if size == k or limit >= most:
            break
        limit *= 2
    heap_sort(room.heap, size)
    for at in range(size):
        room.heap[at] = part.rows.words[room.heap[at]] >> 1
    return size


@inner
def find_tops(part: Part, asked: Asked, room: Room, limits: Int32s, out: Int64s) -> None:
    """Write for every event how many of the ranks below its limit cover it, and the k lowest."""
    width = len(room.heap) + 1
    for event in range(len(limits)):
        most = part.rows.offsets[limits[event]]
        size = 0
        if most > 0:
            size = find_top(part, asked, room, event, most)
        out[event * width] = size
        for at in range(size):
            out[event * width + 1 + at] = room.heap[at]


@inner
def spread(numbers: Int32s, starts: Int64s, ends: Int64s, out: Int32s) -> None:
    """Append the numbers of every event at its end so far."""
    for event in range(len(starts) - 1):
        at = ends[event]
        for each in range(starts[event], starts[event + 1]):
            out[at] = numbers[each]
            at += 1
        ends[event] = at
