"""An access-predicate index in arrays: stamps, posting lists in score order, checks.

A check is one number: `ref >= 0` is a predicate of the vocabulary, which holds if the event has
stamped it; `~ref` is the place of an interval over the values of one slot (an attribute and a
family). An interval whose high end is NaN means "some value differs from the low end"; one of slot
-1 is no interval but a span of `members`, of which the event must have stamped some (`in`).

The lists are those of the stamped predicates, found by hashing, and those of the nodes of one
implicit binary tree a slot over the cells of a grid: an interval is posted at the lowest node that
covers its cells, so a value finds it on the way from its own cell to the root.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.kernels.heap import heap_offer, heap_sort
from tidings.kernels.policy import inner, kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Shorts = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]

SPREAD: Final = 0x9E3779B1
UNKNOWN: Final = -(1 << 31)
CELL_BITS: Final = 12


class Marks(NamedTuple):
    """What holds for the event of the current epoch, and how often it held for earlier ones."""

    epoch: Shorts
    stamp: Shorts
    hits: Shorts
    slot_stamp: Shorts
    slot_hits: Shorts
    slot_span: Shorts  # two a slot: where its values begin and end


class Rows(NamedTuple):
    """Conjunctions in order of rank; the checks of each, the most selective first."""

    start: Shorts
    refs: Shorts
    slot: Shorts
    bounds: Floats  # two an interval
    members: Shorts
    rank: Shorts
    alive: Flags  # by rank
    taken: Shorts  # by rank: the last epoch in which it was found


class Lists(NamedTuple):
    """Rows by access predicate, each list in order of rank, with what tells most of them apart.

    An entry is a row; the next check, as an entry to be stamped, or as ~slot to have a value, or
    UNKNOWN; and the first and the last cell of the access interval, if it is one.
    """

    keys: Shorts  # a hash table of stamped predicates; -1 is free
    starts: Shorts
    entries: Shorts  # three numbers each
    cells: Shorts  # by slot: how many cells, a power of two; 0 for no list
    nodes: Shorts  # by slot: the list of node 0
    edges_from: Shorts
    edges: Floats


class Said(NamedTuple):
    """Events: the vocabulary's entries that hold, and values with their slots, slot by slot."""

    ids: Ints
    slots: Ints
    values: Floats
    spans: Ints  # four an event: its first id and the one after its last, and so for its values


class Room(NamedTuple):
    """Where a question works, and writes what it found and how much it looked at."""

    lists: Shorts  # two numbers each: the list, and the cell of the value that led there, or -1
    ranks: Shorts
    heap: Ints
    looked: Ints  # predicates, subscriptions


@inner
def mark(marks: Marks, said: Said, event: int) -> int:
    """Stamp what an event says; give the new epoch. Stamps of older epochs count for nothing."""
    epoch = marks.epoch[0] + 1
    marks.epoch[0] = epoch
    for at in range(said.spans[4 * event], said.spans[4 * event + 1]):
        each = said.ids[at]
        if marks.stamp[each] != epoch:
            marks.stamp[each] = epoch
            marks.hits[each] += 1
    for at in range(said.spans[4 * event + 2], said.spans[4 * event + 3]):
        slot = said.slots[at]
        if marks.slot_stamp[slot] != epoch:
            marks.slot_stamp[slot] = epoch
            marks.slot_hits[slot] += 1
            marks.slot_span[2 * slot] = at
        marks.slot_span[2 * slot + 1] = at + 1
    return int(epoch)


@inner
def interval_holds(rows: Rows, place: int, marks: Marks, values: Floats) -> bool:
    """Tell whether some value of the interval's slot lies in it, or some member is stamped."""
    slot = rows.slot[place]
    if slot < 0:
        for at in range(int(rows.bounds[2 * place]), int(rows.bounds[2 * place + 1])):
            if marks.stamp[rows.members[at]] == marks.epoch[0]:
                return True
        return False
    if marks.slot_stamp[slot] != marks.epoch[0]:
        return False
    low, high = rows.bounds[2 * place], rows.bounds[2 * place + 1]
    for at in range(marks.slot_span[2 * slot], marks.slot_span[2 * slot + 1]):
        value = values[at]
        if low <= value <= high or (high != high and value != low):  # noqa: PLR0124 - NaN
            return True
    return False


@inner
def check_holds(rows: Rows, ref: int, marks: Marks, values: Floats) -> bool:
    """Tell whether one check holds."""
    if ref >= 0:
        return bool(marks.stamp[ref] == marks.epoch[0])
    return interval_holds(rows, ~ref, marks, values)


@inner
def row_holds(rows: Rows, row: int, marks: Marks, values: Floats) -> int:
    """Give how many checks of a row were made, negative if one failed."""
    first, last = rows.start[row], rows.start[row + 1]
    for at in range(first, last):
        if not check_holds(rows, rows.refs[at], marks, values):
            return int(first - at - 1)
    return int(last - first)


@inner
def list_of(lists: Lists, key: int) -> int:
    """Give the list of a stamped predicate, or -1."""
    mask = len(lists.keys) - 1
    at = (key * SPREAD >> 12) & mask
    while lists.keys[at] != key:
        if lists.keys[at] < 0:
            return -1
        at = (at + 1) & mask
    return at


@inner
def cell_of(edges: Floats, first: int, count: int, value: float) -> int:
    """Give how many of the edges are <= value."""
    low = first
    while count > 0:
        half = count >> 1
        if edges[low + half] <= value:
            low += half + 1
            count -= half + 1
        else:
            count = half
    return low - first


@inner
def lists_for(lists: Lists, said: Said, event: int, out: Shorts) -> int:
    """Write the lists that are not empty, of all that an event leads to; give their number."""
    size = 0
    for at in range(said.spans[4 * event], said.spans[4 * event + 1]):
        found = list_of(lists, said.ids[at])
        if found >= 0:
            out[2 * size], out[2 * size + 1] = found, -1
            size += 1
    for at in range(said.spans[4 * event + 2], said.spans[4 * event + 3]):
        slot = said.slots[at]
        if slot >= len(lists.cells) or lists.cells[slot] == 0:
            continue
        cells, first = lists.cells[slot], lists.edges_from[slot]
        cell = cell_of(lists.edges, first, cells - 1, said.values[at])
        node = cells + cell
        while node > 0:
            found = lists.nodes[slot] + node
            if lists.starts[found] < lists.starts[found + 1]:
                out[2 * size], out[2 * size + 1] = found, cell
                size += 1
            node >>= 1
    return size


@inner
def may_hold(lists: Lists, at: int, cell: int, marks: Marks) -> bool:
    """Tell by an entry alone, at its first number, whether its row may hold."""
    span = lists.entries[at + 2]
    if cell >= 0 and not (span & ((1 << CELL_BITS) - 1)) <= cell <= (span >> CELL_BITS):
        return False
    check = lists.entries[at + 1]
    if check >= 0:
        return bool(marks.stamp[check] == marks.epoch[0])
    return check == UNKNOWN or bool(marks.slot_stamp[~check] == marks.epoch[0])


@inner
def new_match(rows: Rows, row: int, marks: Marks, values: Floats, looked: Ints) -> bool:
    """Tell whether a row holds whose subscription lives and was not found before; note it."""
    looked[1] += 1
    made = row_holds(rows, row, marks, values)
    looked[0] += abs(made)
    rank = rows.rank[row]
    if made < 0 or rows.taken[rank] == marks.epoch[0] or not rows.alive[rank]:
        return False
    rows.taken[rank] = marks.epoch[0]
    return True


@inner
def find_all(rows: Rows, lists: Lists, marks: Marks, said: Said, room: Room) -> int:
    """Write the ranks of all that cover the one event, once each; give their number."""
    size, event = 0, 0
    mark(marks, said, event)
    for each in range(lists_for(lists, said, event, room.lists)):
        which, cell = room.lists[2 * each], room.lists[2 * each + 1]
        room.looked[0] += lists.starts[which + 1] - lists.starts[which]
        for at in range(3 * lists.starts[which], 3 * lists.starts[which + 1], 3):
            if may_hold(lists, at, cell, marks):
                row = lists.entries[at]
                if new_match(rows, row, marks, said.values, room.looked):
                    room.ranks[size] = rows.rank[row]
                    size += 1
    return size


@inner
def find_top(rows: Rows, lists: Lists, marks: Marks, said: Said, event: int, room: Room) -> int:
    """Write the k lowest ranks that cover an event, in order; give their number.

    A list is left where its rows, which are in order of rank, can no longer be among the lowest.
    """
    size, k = 0, len(room.heap)
    mark(marks, said, event)
    for each in range(lists_for(lists, said, event, room.lists)):
        which, cell = room.lists[2 * each], room.lists[2 * each + 1]
        for at in range(3 * lists.starts[which], 3 * lists.starts[which + 1], 3):
            row = lists.entries[at]
            if size == k and row >= room.heap[0]:
                break
            room.looked[0] += 1
            if may_hold(lists, at, cell, marks) and new_match(
                rows, row, marks, said.values, room.looked
            ):
                size = heap_offer(room.heap, size, row)
    heap_sort(room.heap, size)
    for at in range(size):
        room.heap[at] = rows.rank[room.heap[at]]
    return size


@inner
def find_tops(rows: Rows, lists: Lists, marks: Marks, said: Said, room: Room, out: Ints) -> None:
    """Write for every event the number of its k lowest ranks, and these."""
    width = len(room.heap) + 1
    for event in range(len(said.spans) // 4):
        size = find_top(rows, lists, marks, said, event, room)
        out[event * width] = size
        for at in range(size):
            out[event * width + 1 + at] = room.heap[at]


@inner
def scan_touching(rows: Rows, marks: Marks, said: Said, out: Shorts, looked: Ints) -> int:
    """Write the ranks of all of which some check holds, in order, once each; look at every row."""
    size, last = 0, -1
    mark(marks, said, 0)
    for row in range(len(rows.rank)):
        rank = rows.rank[row]
        if rank == last or not rows.alive[rank]:
            continue
        looked[1] += 1
        for at in range(rows.start[row], rows.start[row + 1]):
            looked[0] += 1
            if check_holds(rows, rows.refs[at], marks, said.values):
                out[size] = rank
                size += 1
                last = rank
                break
    return size


@inner
def scan_matching(rows: Rows, marks: Marks, said: Said, out: Shorts) -> int:
    """Write the ranks of all that cover the event, by looking at every row: the naive check."""
    size, last = 0, -1
    mark(marks, said, 0)
    for row in range(len(rows.rank)):
        rank = rows.rank[row]
        if rank != last and rows.alive[rank] and row_holds(rows, row, marks, said.values) > 0:
            out[size] = rank
            size += 1
            last = rank
    return size


@kernel
def fill_table(found: Ints, keys: Shorts) -> Shorts:
    """Put distinct keys into an empty hash table; give the places."""
    places = np.empty(len(found), np.int32)
    mask = len(keys) - 1
    for each in range(len(found)):
        at = (found[each] * SPREAD >> 12) & mask
        while keys[at] >= 0:
            at = (at + 1) & mask
        keys[at] = found[each]
        places[each] = at
    return places
