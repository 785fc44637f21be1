"""The lists that an event leads to: of stamped predicates by hashing, of intervals by a tree.

For every slot there is one implicit tree over the cells of a grid, with eight children a node: an
interval is posted at the lowest node that covers its cells, so a value finds it on the way from its
own cell to the root. The nodes lie level by level, the cells first.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_types import Int32s, Int64s
from tidings.compiled.jit import inlined, inner, kernel
from tidings.index.access.kernels.records import HEAD, Marks, check_end

SPREAD: Final = 0x9E3779B1
CELL_BITS: Final = 12
CELL_MASK: Final = (1 << CELL_BITS) - 1
UNKNOWN: Final = ~0  # a next check of which only its record tells
FAN_BITS: Final = 3
LEVELS: Final = CELL_BITS // FAN_BITS + 1
FREE: Final = -1  # a cell of a table of names in which no number is
WIDE: Final = 6  # numbers a list that an event leads to

AT: Final = 0  # the next entry
END: Final = 1
NEXT: Final = 2  # the row of the next entry
LEAST: Final = 3  # an interval's last cell must be at least this
MOST: Final = 4  # and its first at most this
KEY: Final = 5


class Lists(NamedTuple):
    """Rows by predicate, each list in order of rank.

    A list is three numbers: its key, where it starts, and its first row; a free place has key -1.
    First come the places of a hash table, then the nodes of the trees.
    """

    heads: Int32s
    entries: Int32s
    mask: int  # one less than the places of the hash table
    cells: Int32s  # by slot: how many cells, a power of two; 0 for no list
    nodes: Int32s  # by slot: the list of its first cell
    edges_from: Int32s
    edges: Int64s


@inlined
def list_of(lists: Lists, key: int) -> int:
    """Give the list of a stamped predicate, or -1."""
    at = (int(key) * SPREAD >> 12) & lists.mask
    while lists.heads[3 * at] != key:
        if lists.heads[3 * at] < 0:
            return -1
        at = (at + 1) & lists.mask
    return at


@inlined
def cell_of(lists: Lists, slot: int, value: int) -> int:
    """Give how many of the slot's edges are <= value."""
    first, count = lists.edges_from[slot], lists.cells[slot] - 1
    low = first
    while count > 0:
        half = count >> 1
        if lists.edges[low + half] <= value:
            low += half + 1
            count -= half + 1
        else:
            count = half
    return int(low - first)


@inlined
def note_list(lists: Lists, which: int, span: tuple[int, int], size: int, out: Int32s) -> int:
    """Write a list that is not empty; give how many there are now."""
    start, end = lists.heads[3 * which + 1], lists.heads[3 * which + 4]
    if start == end:
        return size
    at = WIDE * size
    out[at + AT], out[at + END], out[at + NEXT] = start, end, lists.heads[3 * which + 2]
    out[at + LEAST], out[at + MOST], out[at + KEY] = span[0], span[1], lists.heads[3 * which]
    return size + 1


@inner
def lists_for(lists: Lists, marks: Marks, ids: int, values: int, out: Int32s) -> int:
    """Write the lists that are not empty, of all that the marked event leads to, once each."""
    size = 0
    for at in range(ids):
        which = list_of(lists, marks.ids[at])
        if which >= 0:
            size = note_list(lists, which, (-1, 1 << CELL_BITS), size, out)
    at = 0
    while at < values:
        slot = marks.slots[at]
        last = marks.slot_span[2 * slot + 1]
        if slot < len(lists.cells) and lists.cells[slot] > 0:
            if last == at + 1 and marks.upper[at] == marks.lower[at]:
                cell = cell_of(lists, slot, marks.upper[at])
                size = walk_up(lists, slot, (cell, cell), size, out)
            else:
                size = lists_for_several(lists, marks, (at, last), size, out)
        at = last
    return size


@inlined
def walk_up(lists: Lists, slot: int, span: tuple[int, int], size: int, out: Int32s) -> int:
    """Write the lists from a cell to the root."""
    level, width, at = lists.nodes[slot], lists.cells[slot], span[0]
    while True:
        size = note_list(lists, level + at, span, size, out)
        if width == 1:
            return size
        level, width, at = level + width, (width + 7) >> FAN_BITS, at >> FAN_BITS


@inner
def lists_for_several(
    lists: Lists, marks: Marks, values: tuple[int, int], size: int, out: Int32s
) -> int:
    """Write the lists of a slot with several values, or with a range: all nodes over their hull."""
    slot = marks.slots[values[0]]
    least, most = lists.cells[slot], -1
    first, last = lists.cells[slot], -1
    for at in range(values[0], values[1]):
        upper = cell_of(lists, slot, marks.upper[at])
        lower = cell_of(lists, slot, marks.lower[at])
        least, most = min(least, lower), max(most, upper)
        first, last = min(first, lower, upper), max(last, upper, lower)
    level, width = lists.nodes[slot], lists.cells[slot]
    while True:
        for at in range(first, last + 1):
            size = note_list(lists, level + at, (least, most), size, out)
        if width == 1:
            return size
        level, width = level + width, (width + 7) >> FAN_BITS
        first, last = first >> FAN_BITS, last >> FAN_BITS


@inlined
def cells_of(lists: Int32s, each: int) -> tuple[int, int]:
    """Give of a list what the first cell of an interval may be at most, and the last at least."""
    return lists[each + MOST], lists[each + LEAST]


@inlined
def in_cells(cells: int, span: tuple[int, int]) -> int:
    """Tell by the cells of an interval whether it may hold for the values that led to its list."""
    return ((cells & CELL_MASK) <= span[0]) & ((cells >> CELL_BITS) >= span[1])


@kernel
def fill_table(found: Int64s, heads: Int32s, mask: int) -> Int64s:
    """Put distinct keys into an empty hash table; give the places."""
    places = np.empty(len(found), np.int64)
    for each in range(len(found)):
        at = (int(found[each]) * SPREAD >> 12) & mask
        while heads[3 * at] >= 0:
            at = (at + 1) & mask
        heads[3 * at] = found[each]
        places[each] = at
    return places


@kernel
def fill_names(hashes: Int64s, numbers: Int32s, cells: Int32s) -> int:
    """Put numbers into cells without one, by the hashes of their names; give how many were free.

    Cells that were left are taken again, so that who comes and goes often makes no long ways.
    """
    free = 0
    for each in range(len(hashes)):
        at = hashes[each] % len(cells)
        while cells[at] >= 0:
            at = (at + 1) % len(cells)
        free += cells[at] == FREE
        cells[at] = numbers[each]
    return free


@kernel
def fill_lists(which: Int64s, entries: Int32s, width: int, heads: Int32s, out: Int32s) -> None:
    """Put entries, which come in order of rank, into their lists."""
    places = len(heads) // 3
    starts = np.zeros(places + 1, np.int64)
    for each in which:
        starts[each + 1] += 1
    for at in range(places):
        starts[at + 1] += starts[at]
        heads[3 * at + 1], heads[3 * at + 2] = starts[at] * width, 0
    for each in range(len(which)):
        at = starts[which[each]] * width
        starts[which[each]] += 1
        if at == heads[3 * which[each] + 1]:
            heads[3 * which[each] + 2] = entries[each * width]
        for place in range(width):
            out[at + place] = entries[each * width + place]


@kernel
def check_places(words: Int32s, size: int, rows: Int64s, places: Int64s) -> None:
    """Write for every check the record that it is in and where it begins."""
    row, check = 0, 0
    while row < size:
        at = row + HEAD
        while at < words[row + 1]:
            rows[check], places[check] = row, at
            check += 1
            at = check_end(words, at)
        row = words[row + 1]


@kernel
def sort_checks(first: Int64s, size: Int64s, chance: npt.NDArray[np.float64]) -> Int64s:
    """Give the checks row by row, in each row those first that hold least often."""
    out = np.empty(size.sum(), np.int64)
    begin = 0
    for row in range(len(first)):
        for each in range(size[row]):
            check = first[row] + each
            at = begin + each
            while at > begin and chance[out[at - 1]] > chance[check]:
                out[at] = out[at - 1]
                at -= 1
            out[at] = check
        begin += size[row]
    return out
