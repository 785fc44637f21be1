"""Rows of sorted hashes: sorting them, and lists of which rows hold a mark."""

from typing import Any

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s, UInt64s
from tidings.compiled.ints import int64
from tidings.compiled.jit import inner, kernel

Lists = tuple[Int64s, Int64s, Int64s, Int64s, Int64s, Int64s, Int64s]
"""Row i has the elements starts[i] to starts[i + 1]. The rows that hold the mark of element p are
lists[begins[p]:ends[p]], ascending, with its own at places[p]. Row i has attributes[i] keys, which
are the bits of masks[i]; masks have no columns where keys are marks."""


Found = tuple[Int64s, Int64s, Int64s, Int64s]
"""Begins, places, ends and lists, as above."""


@kernel
def sort_rows(starts: Int64s, keys: UInt64s, marks: UInt64s, weights: Float64s) -> None:
    """Sort each row by its keys, in place, its marks and weights with them; rows are short."""
    for row in range(len(starts) - 1):
        first = starts[row]
        for each in range(first + 1, starts[row + 1]):
            key, mark = keys[each], marks[each]
            weight = weights[each] if len(weights) > 0 else 1.0
            at = each
            while at > first and keys[at - 1] > key:
                keys[at], marks[at] = keys[at - 1], marks[at - 1]
                if len(weights) > 0:
                    weights[at] = weights[at - 1]
                at -= 1
            keys[at], marks[at] = key, mark
            if len(weights) > 0:
                weights[at] = weight


@kernel
def number_hashes(hashes: UInt64s, numbers: Int64s) -> int:
    """Number different hashes from 0 in order of their first place; give how many there are."""
    size = 16
    while size < 2 * len(hashes):
        size *= 2
    table = np.full(size, -1, np.int64)
    count = 0
    for each in range(len(hashes)):
        place = table_place(table, hashes, hashes[each])
        if table[place] < 0:
            table[place] = each
            numbers[each] = count
            count += 1
        else:
            numbers[each] = numbers[table[place]]
    return count


@inner
def table_place(table: Int64s, hashes: UInt64s, wanted: Any) -> int:
    """Give the place of a hash in an open table of where hashes stand, or its free place."""
    last = len(table) - 1
    place = int64(wanted & np.uint64(last))
    while table[place] >= 0 and hashes[table[place]] != wanted:
        place = (place + 1) & last
    return place


@kernel
def list_rows(starts: Int64s, numbers: Int64s, count: int, found: Found) -> None:
    """Write for each element where the list of its mark begins, ends and holds its own row."""
    begins, places, ends, lists = found
    sizes = np.zeros(count + 1, np.int64)
    for each in range(len(numbers)):
        sizes[numbers[each] + 1] += 1
    heads = np.cumsum(sizes)
    filled = heads[:-1].copy()
    for row in range(len(starts) - 1):
        for each in range(starts[row], starts[row + 1]):
            mark = numbers[each]
            lists[filled[mark]] = row
            places[each] = filled[mark]
            filled[mark] += 1
            begins[each], ends[each] = heads[mark], heads[mark + 1]


@kernel
def mask_rows(starts: Int64s, numbers: Int64s, masks: Int64s) -> None:
    """Set the bit of each key of a row."""
    for row in range(len(starts) - 1):
        for each in range(starts[row], starts[row + 1]):
            masks[row, numbers[each] >> 6] |= np.int64(1) << (numbers[each] & 63)
