"""Rows of hashes: sorting them, numbering their hashes, and inverted lists of their marks.

A row holds the hashes of one event. All rows lie one behind the other in flat arrays:

    starts   0        3           5                       row i is starts[i] to starts[i + 1]
    keys     k0 k1 k2 k0 k3       ...
    marks    m0 m1 m2 m0 m5       ...                     the mark of the key at the same position

Inverted lists answer "which rows share a mark with row i" without comparing pairs of rows: the rows
that hold mark m are `rows[heads[m]:heads[m + 1]]`, in ascending order.
"""

from typing import Any, NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s, Int64s, UInt32s, UInt64s
from tidings.compiled.ints import int64
from tidings.compiled.jit import inner, kernel


class InvertedLists(NamedTuple):
    """The rows that hold each mark, and the keys of each row as bits.

    The mark of element p has the number `numbers[p]`, and `positions[p]` is the position in `rows`
    of the row that p belongs to: rows behind it are found without a search. Row i has `sizes[i]`
    keys, which are the bits of `masks[i]`; `masks` has no columns where keys are marks (Jaccard).
    `rows` has no sign, so that kernels need not ask whether an index counts from the end.
    """

    starts: Int64s
    numbers: Int32s
    heads: Int64s
    positions: Int32s
    rows: UInt32s
    sizes: Int64s
    masks: Int64s


@kernel
def sort_rows(starts: Int64s, keys: UInt64s, marks: UInt64s, weights: Float64s) -> None:
    """Sort each row by its keys, in place, and its marks and weights with them.

    By insertion, since a row has as many elements as an event has attributes: few.
    """
    for row in range(len(starts) - 1):
        first = starts[row]
        for element in range(first + 1, starts[row + 1]):
            key, mark = keys[element], marks[element]
            weight = weights[element] if len(weights) > 0 else 1.0
            position = element
            while position > first and keys[position - 1] > key:
                keys[position], marks[position] = keys[position - 1], marks[position - 1]
                if len(weights) > 0:
                    weights[position] = weights[position - 1]
                position -= 1
            keys[position], marks[position] = key, mark
            if len(weights) > 0:
                weights[position] = weight


@inner
def table_position(table: Int32s | Int64s, hashes: UInt64s, sought: Any) -> int:
    """Return the position of a hash in an open-addressing table of indexes into `hashes`.

    Where the table lacks the hash, this is the free position that belongs to it. The hashes are
    uniform, so that their low bits serve as the home position, and probing is linear.
    """
    last = len(table) - 1
    # The cast keeps numba from mixing signed and unsigned numbers, which would make them floats.
    position = int64(sought & np.uint64(last))
    while table[position] >= 0 and hashes[table[position]] != sought:
        position = (position + 1) & last
    return position


@kernel
def number_hashes(hashes: UInt64s, numbers: Int32s) -> int:
    """Assign numbers to distinct hashes in order of first occurrence; return their count."""
    size = 16
    while size < 2 * len(hashes):  # at most half full, so that probes stay short
        size *= 2
    table = np.full(size, -1, np.int32)
    count = 0
    for element in range(len(hashes)):
        position = table_position(table, hashes, hashes[element])
        if table[position] < 0:
            table[position] = element
            numbers[element] = count
            count += 1
        else:
            numbers[element] = numbers[table[position]]
    return count


@kernel
def list_rows(
    starts: Int64s, numbers: Int32s, heads: Int64s, positions: Int32s, rows: UInt32s
) -> None:
    """Write the fields of `InvertedLists`, by numbers of marks; `heads` has one more than those.

    A counting sort: rows are visited in ascending order, so that each list is ascending too.
    """
    heads[:] = 0
    for element in range(len(numbers)):
        heads[numbers[element] + 1] += 1
    for mark in range(1, len(heads)):
        heads[mark] += heads[mark - 1]
    filled = heads[:-1].copy()
    for row in range(len(starts) - 1):
        for element in range(starts[row], starts[row + 1]):
            mark = numbers[element]
            rows[filled[mark]] = row
            positions[element] = filled[mark]
            filled[mark] += 1


@kernel
def mask_rows(starts: Int64s, numbers: Int32s, masks: Int64s) -> None:
    """Set the bit of each key of each row, given the numbers of the keys."""
    for row in range(len(starts) - 1):
        for element in range(starts[row], starts[row + 1]):
            masks[row, numbers[element] >> 6] |= np.int64(1) << np.int64(numbers[element] & 63)
