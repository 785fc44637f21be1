"""Distances between rows of hashes: (all - equal) / all, for the overlap distance and Jaccard.

`all` are the keys of either row, `equal` the keys with the same mark in both.
"""

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s, UInt64s
from tidings.compiled.bits import ones
from tidings.compiled.exact_sum import PARTS, sum_add, sum_total
from tidings.compiled.jit import inner, kernel
from tidings.diversify.kernels.token_rows import Lists

Rows = tuple[Int64s, Int64s, UInt64s, UInt64s, Float64s]
"""Where each row starts and ends, its sorted keys, their marks, and weights, or none of them."""

Source = tuple[Float64s, Int64s, Lists]
"""Where distances come from: a matrix and which of its rows are meant, or else the lists."""


@inner
def shared_marks(lists: Lists, row: int, low: int, high: int, equal: Int64s) -> None:
    """Count the marks that rows from low to high have in common with `row`."""
    starts, begins, places, ends, rows = lists[0], lists[1], lists[2], lists[3], lists[4]
    for other in range(low, high):
        equal[other] = 0
    for each in range(starts[row], starts[row + 1]):
        first = places[each] + 1 if low > row else begins[each]
        for place in range(first, ends[each]):
            other = rows[place]
            if other >= high:
                break
            if other >= low:
                equal[other] += 1


@inner
def ratio(equal: int, whole: int) -> float:
    """Give the distance; 0 between rows without keys."""
    return float(whole - equal) / float(whole) if whole > 0 else 0.0


@inner
def shared_keys(lists: Lists, row: int, other: int) -> int:
    """Count the keys that two rows have in common."""
    masks, both = lists[6], 0
    for word in range(masks.shape[1]):
        both += ones(masks[row, word] & masks[other, word])
    return both


@inner
def counted_row(
    lists: Lists, row: int, span: tuple[int, int], equal: Int64s, out: Float64s
) -> None:
    """Write the distances of `row` to the rows of a span."""
    low, high = span
    shared_marks(lists, row, low, high, equal)
    sizes, masks = lists[5], lists[6]
    words = masks.shape[1]
    if words == 0:
        for other in range(low, high):
            out[other] = ratio(equal[other], sizes[row] + sizes[other] - equal[other])
    elif words == 1:  # the usual case, without a loop in the loop
        for other in range(low, high):
            both = ones(masks[row, 0] & masks[other, 0])
            out[other] = ratio(equal[other], sizes[row] + sizes[other] - both)
    else:
        for other in range(low, high):
            both = shared_keys(lists, row, other)
            out[other] = ratio(equal[other], sizes[row] + sizes[other] - both)


@inner
def fill_row(source: Source, row: int, span: tuple[int, int], equal: Int64s, out: Float64s) -> None:
    """Write the distances of `row` to the rows of a span, from wherever they come."""
    matrix, members, lists = source
    if len(members) == 0:
        counted_row(lists, row, span, equal, out)
        return
    for other in range(span[0], span[1]):
        out[other] = matrix[members[row], members[other]]


@kernel
def counted_matrix(lists: Lists, out: Float64s) -> None:
    """Write all distances; O(n²) and the rows that each mark's list names."""
    equal = np.zeros(len(out), np.int64)
    for row in range(len(out)):
        counted_row(lists, row, (0, len(out)), equal, out[row])


@inner
def merged(rows: Rows, one: int, other: int) -> float:
    """Give the distance of two rows by merging them, where all weights are 1."""
    starts, ends, keys, marks, _ = rows
    left, right, equal, both = starts[one], starts[other], 0, 0
    while left < ends[one] and right < ends[other]:
        if keys[left] == keys[right]:
            both += 1
            equal += 1 if marks[left] == marks[right] else 0
            left, right = left + 1, right + 1
        elif keys[left] < keys[right]:
            left += 1
        else:
            right += 1
    whole = ends[one] - starts[one] + ends[other] - starts[other] - both
    return ratio(equal, whole)


@inner
def weighed(rows: Rows, one: int, other: int, parts: Float64s) -> float:
    """Give the distance of two rows by merging them; weights are added without error."""
    starts, ends, keys, marks, weights = rows
    left, right, apart, total = starts[one], starts[other], 0, 0
    while left < ends[one] or right < ends[other]:
        ahead = right == ends[other] or (left < ends[one] and keys[left] < keys[right])
        behind = left == ends[one] or (right < ends[other] and keys[right] < keys[left])
        weight = weights[right] if behind else weights[left]
        total = sum_add(parts[0], total, weight)
        if ahead or behind or marks[left] != marks[right]:
            apart = sum_add(parts[1], apart, weight)
        left += 0 if behind else 1
        right += 0 if ahead else 1
    whole = sum_total(parts[0], total)
    return sum_total(parts[1], apart) / whole if whole > 0.0 else 0.0


@kernel
def merged_row(rows: Rows, row: int, others: Int64s, out: Float64s) -> None:
    """Write the distances of one row to others."""
    parts = np.empty((2, PARTS))
    for each in range(len(others)):
        if len(rows[4]) == 0:
            out[each] = merged(rows, row, others[each])
        else:
            out[each] = weighed(rows, row, others[each], parts)


@kernel
def weighed_matrix(rows: Rows, out: Float64s) -> None:
    """Write the distances between all rows, with weights."""
    parts = np.empty((2, PARTS))
    for one in range(len(out)):
        out[one, one] = 0.0
        for other in range(one):
            out[one, other] = out[other, one] = weighed(rows, one, other, parts)
