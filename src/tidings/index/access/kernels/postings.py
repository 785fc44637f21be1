"""Posting lists that an event leads to: of stamped terms by hashing, of intervals by a tree.

Every list is three numbers in `heads`; its entries are a contiguous range of `entries`:

    heads     | key start first-row | key start first-row | ...  | end
                hash table: mask + 1 places  | nodes of the trees, slot by slot
    entries   | row ... | row ... | row ... |            in order of rank within a list

For every slot there is one implicit tree over the cells of a grid, with eight children a node:

    level 2                  0
    level 1      0           1     ...
    cells        0 1 ... 7   8 ... 15  ...             stored level by level, the cells first

An interval is posted at the lowest node that covers its cells, so a value finds it on the way from
its own cell to the root: at most LEVELS lists, each with few entries that do not hold.
"""

from typing import Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.jit import inlined, inner, kernel
from tidings.index.access.kernels.records import HEAD, Stamps, check_end, count_up_to

SPREAD: Final = 0x9E3779B1  # multiplicative hashing, by the golden ratio
CELL_BITS: Final = 12
CELL_MASK: Final = (1 << CELL_BITS) - 1
UNKNOWN: Final = ~0  # the next check is neither a term nor a slot; its record tells
FAN_BITS: Final = 3
LEVELS: Final = CELL_BITS // FAN_BITS + 1
FREE: Final = -1  # a cell of an id table that was never used

# Columns of a list that an event leads to, as `collect_lists` writes them.
WIDE: Final = 6
NEXT_ENTRY: Final = 0
END: Final = 1
NEXT_ROW: Final = 2  # the row of the next entry
LEAST: Final = 3  # the last cell of an interval must be at least this
MOST: Final = 4  # and its first cell at most this
KEY: Final = 5


class Postings(NamedTuple):
    """Rows by predicate, each list in order of rank."""

    heads: Int32s  # a free place of the hash table, and a node, has key -1
    entries: Int32s
    mask: int  # one less than the places of the hash table
    cells: Int32s  # by slot: how many cells, a power of two; 0 for no list
    nodes: Int32s  # by slot: the list of its first cell
    edges_from: Int32s  # by slot: its first edge
    edges: Int64s  # the lowest values of all cells but the first


@inlined
def find_list(postings: Postings, key: int) -> int:
    """Return the list of a stamped term, or -1."""
    place = (int(key) * SPREAD >> 12) & postings.mask
    while postings.heads[3 * place] != key:
        if postings.heads[3 * place] < 0:
            return -1
        place = (place + 1) & postings.mask
    return place


@inlined
def find_cell(postings: Postings, slot: int, value: int) -> int:
    """Return how many edges of the slot are <= value."""
    return count_up_to(postings.edges, postings.edges_from[slot], postings.cells[slot] - 1, value)


@inlined
def push_list(
    postings: Postings, which: int, cells: tuple[int, int], size: int, out: Int32s
) -> int:
    """Write a list unless it is empty; return how many lists there are now."""
    # A list ends where the next one starts, so no end is stored.
    start, end = postings.heads[3 * which + 1], postings.heads[3 * which + 4]
    if start == end:
        return size
    place = WIDE * size
    out[place + NEXT_ENTRY], out[place + END] = start, end
    out[place + NEXT_ROW] = postings.heads[3 * which + 2]
    out[place + KEY] = postings.heads[3 * which]
    out[place + LEAST], out[place + MOST] = cells
    return size + 1


@inner
def collect_lists(postings: Postings, stamps: Stamps, terms: int, values: int, out: Int32s) -> int:
    """Write each non-empty list that the stamped event leads to, once; return their number."""
    size = 0
    for place in range(terms):
        which = find_list(postings, stamps.terms[place])
        if which >= 0:
            # Limits that every posting passes: under a term there are no cells.
            size = push_list(postings, which, (-1, 1 << CELL_BITS), size, out)
    value = 0
    while value < values:
        slot = stamps.slots[value]
        last = stamps.slot_span[2 * slot + 1]
        # A slot may be newer than the segment.
        if slot < len(postings.cells) and postings.cells[slot] > 0:
            if last == value + 1 and stamps.upper[value] == stamps.lower[value]:
                cell = find_cell(postings, slot, stamps.upper[value])
                size = walk_up(postings, slot, (cell, cell), size, out)
            else:
                size = collect_hull_lists(postings, stamps, (value, last), size, out)
        value = last
    return size


@inlined
def walk_up(postings: Postings, slot: int, cells: tuple[int, int], size: int, out: Int32s) -> int:
    """Write the lists from a cell to the root; return how many lists there are now."""
    level, width, node = postings.nodes[slot], postings.cells[slot], cells[0]
    while True:
        size = push_list(postings, level + node, cells, size, out)
        if width == 1:
            return size
        level, width, node = level + width, (width + 7) >> FAN_BITS, node >> FAN_BITS


@inner
def collect_hull_lists(
    postings: Postings, stamps: Stamps, values: tuple[int, int], size: int, out: Int32s
) -> int:
    """Write the lists of a slot with several values, or with a range: all nodes over their hull."""
    slot = stamps.slots[values[0]]
    least, most = postings.cells[slot], -1
    first, last = postings.cells[slot], -1
    for value in range(values[0], values[1]):
        upper = find_cell(postings, slot, stamps.upper[value])
        lower = find_cell(postings, slot, stamps.lower[value])
        least, most = min(least, lower), max(most, upper)
        first, last = min(first, lower, upper), max(last, upper, lower)
    level, width = postings.nodes[slot], postings.cells[slot]
    while True:
        # The paths of several values meet in common ancestors: by level, each list comes once.
        for node in range(first, last + 1):
            size = push_list(postings, level + node, (least, most), size, out)
        if width == 1:
            return size
        level, width = level + width, (width + 7) >> FAN_BITS
        first, last = first >> FAN_BITS, last >> FAN_BITS


@inlined
def cell_limits(lists: Int32s, which: int) -> tuple[int, int]:
    """Return the greatest first cell and the least last cell of intervals that may hold."""
    return lists[which + MOST], lists[which + LEAST]


@inlined
def in_cells(cells: int, limits: tuple[int, int]) -> int:
    """Return 1 if an interval may hold, by its packed first and last cell; else 0."""
    return ((cells & CELL_MASK) <= limits[0]) & ((cells >> CELL_BITS) >= limits[1])


@kernel
def fill_hash_table(keys: Int64s, heads: Int32s, mask: int) -> Int64s:
    """Insert distinct keys into an empty hash table; return their places."""
    places = np.empty(len(keys), np.int64)
    for position in range(len(keys)):
        place = (int(keys[position]) * SPREAD >> 12) & mask
        while heads[3 * place] >= 0:
            place = (place + 1) & mask
        heads[3 * place] = keys[position]
        places[position] = place
    return places


@kernel
def fill_id_table(hashes: Int64s, numbers: Int32s, cells: Int32s) -> int:
    """Insert numbers by the hashes of their ids; return how many cells were never used before.

    Tombstones are reused, so that an id that comes and goes often does not lengthen the probes.
    """
    free = 0
    for position in range(len(hashes)):
        cell = hashes[position] % len(cells)
        while cells[cell] >= 0:
            cell = (cell + 1) % len(cells)
        free += cells[cell] == FREE
        cells[cell] = numbers[position]
    return free


@kernel
def fill_postings(lists: Int64s, entries: Int32s, width: int, heads: Int32s, out: Int32s) -> None:
    """Distribute entries, which come in order of rank, to their lists (a counting sort)."""
    places = len(heads) // 3
    starts = np.zeros(places + 1, np.int64)
    for which in lists:
        starts[which + 1] += 1
    for place in range(places):
        starts[place + 1] += starts[place]
        heads[3 * place + 1], heads[3 * place + 2] = starts[place] * width, 0
    for position in range(len(lists)):
        which = lists[position]
        target = starts[which] * width
        starts[which] += 1
        # The head repeats the first row, so that a search can skip the list without reading it.
        if target == heads[3 * which + 1]:
            heads[3 * which + 2] = entries[position * width]
        for column in range(width):
            out[target + column] = entries[position * width + column]


@kernel
def locate_checks(words: Int32s, size: int, records: Int64s, places: Int64s) -> None:
    """Write for every check the record that it is in, and its first word."""
    record, check = 0, 0
    while record < size:
        place = record + HEAD
        while place < words[record + 1]:
            records[check], places[check] = record, place
            check += 1
            place = check_end(words, place)
        record = words[record + 1]


@kernel
def sort_checks(first: Int64s, size: Int64s, chance: Float64s) -> Int64s:
    """Return the checks row by row, within a row the least likely first.

    Insertion sort: a conjunction has a handful of checks, and equal ones keep their order.
    """
    out = np.empty(size.sum(), np.int64)
    begin = 0
    for row in range(len(first)):
        for position in range(size[row]):
            check = first[row] + position
            target = begin + position
            while target > begin and chance[out[target - 1]] > chance[check]:
                out[target] = out[target - 1]
                target -= 1
            out[target] = check
        begin += size[row]
    return out
