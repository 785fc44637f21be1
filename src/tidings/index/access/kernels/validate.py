"""Checks of an access index that comes from a file, before any other kernel follows its numbers.

Each returns whether everything that the kernels of `access*` trust holds. They read nothing outside
of their arrays, whatever these contain, and every loop is bounded by the size of an array.
"""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_types import AnyArray, Int32s
from tidings.compiled.jit import inlined, kernel
from tidings.index.access.kernels.postings import CELL_BITS, FAN_BITS, SPREAD, Lists
from tidings.index.access.kernels.records import AMONG, BETWEEN, DIFFERS, HEAD, Rows

PROBES: Final = 32  # steps for each place of a hash table; tables that were written take about 2
ACCESS: Final = 3  # numbers of a posting under the access predicate
EVERY: Final = 4  # numbers of a posting where every check is posted


class Sizes(NamedTuple):
    """How many of everything an index has."""

    ranks: int
    entries: int
    slots: int
    checks: int


class Places(NamedTuple):
    """Where records and checks lie, as `records_valid` found them."""

    begins: npt.NDArray[np.bool_]  # by word: whether a record begins there
    rows: Int32s  # by check: its record
    checks: Int32s  # by check: its first word
    firsts: Int32s  # by rank: its first check; one more for the end


@inlined
def check_size(words: Int32s, at: int, end: int, sizes: Sizes) -> int:
    """Return how many words the check at a place takes, or 0 if it is no check."""
    word = words[at]
    if word >= 0:
        return 1 if word < sizes.entries else 0
    kind = ~word & 3
    if kind in (BETWEEN, DIFFERS):
        size = 5 if kind == BETWEEN else 3
        return size if ~word >> 2 < sizes.slots and at + size <= end else 0
    if ~word != AMONG or at + 2 > end:
        return 0
    count = words[at + 1]
    if count < 1 or count > end - at - 2:
        return 0
    for each in range(at + 2, at + 2 + count):
        if words[each] < 0 or words[each] >= sizes.entries:
            return 0
    return int(2 + count)


@kernel
def records_valid(rows: Rows, sizes: Sizes, places: Places) -> bool:
    """Tell whether records lie in order of rank, each made of whole checks; note where.

    The number of a record's first check is how many checks came before it.
    """
    words, offsets, made = rows.words, rows.offsets, 0
    row = 0
    for rank in range(sizes.ranks):
        last = offsets[rank + 1]
        if offsets[rank] != row or last < row or last > len(words):
            return False
        places.firsts[rank] = made
        first, count, several = row, 0, 0
        while row < last:
            if last - row <= HEAD or words[row] >> 1 != rank or words[row + 2] != made:
                return False
            end = words[row + 1]
            if end <= row + HEAD or end > last:
                return False
            places.begins[row] = True
            several |= words[row + HEAD] == ~AMONG
            at = row + HEAD
            while at < end:
                size = check_size(words, at, end, sizes)
                if size == 0 or made == sizes.checks:
                    return False
                places.rows[made], places.checks[made] = row, at
                made += 1
                at += size
            count += 1
            row = end
        if count > 1 and not several_marked(words, first, last):
            return False
        if count == 1 and several and words[first] & 1 == 0:
            return False
    places.firsts[sizes.ranks] = made
    return row == len(words) and made == sizes.checks


@inlined
def several_marked(words: Int32s, row: int, last: int) -> bool:
    """Tell whether all records of a rank say that it may be found more than once."""
    while row < last:
        if words[row] & 1 == 0:
            return False
        row = words[row + 1]
    return True


@kernel
def trees_valid(lists: Lists) -> bool:
    """Tell whether the trees of all slots lie behind the hash table, one behind the other."""
    at, total = lists.mask + 1, len(lists.heads) // 3 - 1
    for slot in range(len(lists.cells)):
        width = lists.cells[slot]
        if width == 0:
            continue
        first = lists.edges_from[slot]
        if width < 0 or width > 1 << CELL_BITS or lists.nodes[slot] != at:
            return False
        if first < 0 or first + width - 1 > len(lists.edges):
            return False
        at += width
        while width > 1:
            width = (width + 7) >> FAN_BITS
            at += width
        if at > total:
            return False
    return bool(at == total)


@kernel
def heads_valid(lists: Lists, width: int, entries: int) -> bool:
    """Tell whether every list lies within the postings, and some place has no key."""
    heads, mask = lists.heads, lists.mask
    total, end, used = len(heads) // 3 - 1, 0, 0
    for which in range(total + 1):
        key, start = heads[3 * which], heads[3 * which + 1]
        if start < end or start > len(lists.entries) or start % width != 0:
            return False
        if which > 0 and start > end and heads[3 * which - 1] != lists.entries[end]:
            return False
        end = start
        if key < -1 or key >= entries or (which > mask and key != -1):
            return False
        used += key >= 0
    return bool(heads[1] == 0 and end == len(lists.entries) and used <= mask)


@kernel
def keys_valid(lists: Lists) -> bool:
    """Tell whether every key of the hash table is found where it is, in few steps.

    That holds for no key that is there twice. There must be a free place.
    """
    heads, mask, probes = lists.heads, lists.mask, 0
    for which in range(mask + 1):
        key = heads[3 * which]
        if key >= 0:
            at = (int(key) * SPREAD >> 12) & mask
            while heads[3 * at] != key:
                probes += 1
                if heads[3 * at] < 0 or probes > PROBES * (mask + 1):
                    return False
                at = (at + 1) & mask
            if at != which:
                return False
    return True


@kernel
def access_valid(lists: Lists, begins: npt.NDArray[np.bool_], sizes: Sizes) -> bool:
    """Tell whether postings lead to records, and their next checks to entries or slots."""
    entries = lists.entries
    for at in range(0, len(entries), ACCESS):
        row, check = entries[at], entries[at + 1]
        if row < 0 or row >= len(begins) or not begins[row]:
            return False
        if check >= sizes.entries or ~check > sizes.slots:
            return False
    return True


@kernel
def every_valid(lists: Lists, words: Int32s, places: Places, seen: npt.NDArray[np.bool_]) -> bool:
    """Tell whether every posting is that of a check, and no event can lead to a check twice.

    Under a key, checks come in order and ask for that key; in the tree of a slot, each is once.
    """
    for which in range(lists.mask + 1):
        last = -1
        for at in range(lists.heads[3 * which + 1], lists.heads[3 * which + 4], EVERY):
            if not posted_right(lists.entries, at, places):
                return False
            number, place = lists.entries[at + 2], places.checks[lists.entries[at + 2]]
            if number <= last:
                return False
            last = number
            if lists.entries[at + 3] == 0:
                if words[place] != lists.heads[3 * which] or words[place] < 0:
                    return False
            elif words[place] != ~AMONG:
                return False
    for slot in range(len(lists.cells)):
        if lists.cells[slot] > 0 and not slot_valid(lists, words, places, seen, slot):
            return False
    return True


@inlined
def posted_right(entries: Int32s, at: int, places: Places) -> bool:
    """Tell whether a posting has the number, the record and the first word of one check."""
    number = entries[at + 2]
    if number < 0 or number >= len(places.checks):
        return False
    return bool(entries[at] == places.rows[number] and entries[at + 1] == places.checks[number])


@inlined
def slot_valid(
    lists: Lists, words: Int32s, places: Places, seen: npt.NDArray[np.bool_], slot: int
) -> bool:
    """Tell whether the tree of a slot has checks of that slot, each once."""
    first, width = lists.nodes[slot], lists.cells[slot]
    last = first + width
    while width > 1:
        width = (width + 7) >> FAN_BITS
        last += width
    for at in range(lists.heads[3 * first + 1], lists.heads[3 * last + 1], EVERY):
        if not posted_right(lists.entries, at, places):
            return False
        number = lists.entries[at + 2]
        word = words[places.checks[number]]
        if word >= 0 or ~word & 3 == AMONG or ~word >> 2 != slot or seen[number]:
            return False
        seen[number] = True
    return True


@kernel
def most_parts(part: AnyArray, numbers: Int32s, firsts: Int32s, out: Int32s) -> None:
    """Write for each subscription, by number, the largest predicate number of its checks."""
    for rank in range(len(numbers)):
        most = -1
        for check in range(firsts[rank], firsts[rank + 1]):
            most = max(most, int(part[check]))
        out[numbers[rank]] = most


class Posed(NamedTuple):
    """Which predicate every check is, and where the checks of a rank begin."""

    part: AnyArray
    numbers: Int32s  # by rank
    firsts: Int32s  # by rank, one more for the end


@kernel
def nodes_valid(posed: Posed, firsts: Any, nodes: Int32s) -> bool:
    """Tell whether every predicate that some record checks is a node of its owner's graph."""
    for rank in range(len(posed.numbers)):
        first = firsts[posed.numbers[rank]]
        if first >= 0:
            for check in range(posed.firsts[rank], posed.firsts[rank + 1]):
                if nodes[first + posed.part[check]] < 0:
                    return False
    return True
