"""Distances between rows of hashes: (all - equal) / all, for the overlap distance and Jaccard.

`all` counts the keys of either row, `equal` the keys with the same mark in both. For the overlap
distance a key is an attribute and its mark the attribute with its values (PREF Def. 7); for Jaccard
both are an attribute=value token (TKS 5.2.3).

Two ways to the same number, by how many distances are wanted:

- One pair, or one row against some: merge two sorted rows, O(a + b). `SortedRows` has gaps, since
  events come and go:

      starts, ends    row 0: 0, 3    row 1: 5, 7
      keys            0  1  2   .  .  0  3  ...           ascending within a row
      marks           m0 m1 m2  .  .  m0 m5 ...
      weights         w0 w1 w2  .  .  w0 w3 ...           empty if all weights are 1
      masks           0b0111          0b1001              a bit for each key, if there are few;
                                                          then the pools have 8 cells to spare

  Masks compare 64 keys at a time: only marks of keys in both rows are read. Of 20 attributes among
  300, that takes a sixth of the time of a merge, whose branches cannot be predicted.

- One row against all: walk the inverted lists of its marks, which visit only rows that share one.
"""

from typing import NamedTuple

import numpy as np

from tidings.compiled.array_types import AnyArray, Float64s, Int64s, UInt64s
from tidings.compiled.exact_sum import PARTS, sum_add, sum_total
from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined, inner, kernel
from tidings.compiled.simd import WORDS, equal_words, lowest_bit, ones, without_lowest
from tidings.diversify.kernels.token_rows import InvertedLists


class SortedRows(NamedTuple):
    """Rows of hashes in flat arrays: row i is starts[i] to ends[i], its keys ascending."""

    starts: Int64s
    ends: Int64s
    keys: UInt64s
    marks: UInt64s
    weights: Float64s
    masks: Int64s  # by row: the keys as bits of some words; no words where keys are too many


class DistanceSource(NamedTuple):
    """The source of the distances of n candidates: rows of a matrix, or inverted lists.

    Candidate i is row `members[i]` of the matrix; without members, the lists are read.
    """

    matrix: Float64s
    members: Int64s
    lists: InvertedLists


SourceArrays = tuple[Float64s, Int64s, tuple[AnyArray, ...]]


def source_arrays(source: DistanceSource) -> SourceArrays:
    """Return a source as plain tuples, for a kernel that is called from Python.

    Numba finds the type of a nested named tuple in 5.7 us, of a plain one in 2.3 us; a choice from
    100 candidates takes 130 us. Naming the fields again inside the kernel is free.
    """
    return (source.matrix, source.members, tuple(source.lists))


@inner
def ratio(equal: int, whole: int) -> float:
    """Return the distance; 0 between rows without keys."""
    return float(whole - equal) / float(whole) if whole > 0 else 0.0


@inner
def merged_distance(rows: SortedRows, one: int, other: int) -> float:
    """Return the distance of two rows by merging them, where all weights are 1."""
    starts, ends, keys, marks = rows.starts, rows.ends, rows.keys, rows.marks
    left, right, equal, both = starts[one], starts[other], 0, 0
    # `both` counts shared keys, to count the keys of either row without a second pass.
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


@inlined
def count_equal(marks: UInt64s, left: int, right: int, count: int) -> int:
    """Return how many of `count` marks are equal, side by side; some cells behind are read too."""
    equal = 0
    for first in range(0, count, WORDS):
        beyond = int64(-1) << int64(min(WORDS, count - first))
        equal += ones(equal_words(marks, left + first, right + first) & ~beyond)
    return equal


@inlined
def masked_distance(rows: SortedRows, one: int, other: int) -> float:
    """Return the distance of two rows by their masks, where all weights are 1."""
    marks, masks = rows.marks, rows.masks
    left, right, equal, both = rows.starts[one], rows.starts[other], 0, 0
    for word in range(masks.shape[1]):
        mine, theirs = masks[one, word], masks[other, word]
        shared = mine & theirs
        both += ones(shared)
        if mine == theirs:  # as of events of one kind, whose marks stand side by side
            equal += count_equal(marks, left, right, ones(mine))
        else:
            while shared != 0:
                below = ~(int64(-1) << lowest_bit(shared))
                mark, rival = marks[left + ones(mine & below)], marks[right + ones(theirs & below)]
                equal += 1 if mark == rival else 0
                shared = without_lowest(shared)
        left, right = left + ones(mine), right + ones(theirs)
    ends = rows.ends[one] - rows.starts[one] + rows.ends[other] - rows.starts[other]
    return ratio(equal, ends - both)


@inlined
def row_distance(rows: SortedRows, one: int, other: int) -> float:
    """Return the distance of two rows, where all weights are 1."""
    if rows.masks.shape[1] > 0:
        return masked_distance(rows, one, other)
    return merged_distance(rows, one, other)


@kernel
def write_masks(rows: SortedRows, slots: Int64s) -> None:
    """Write the masks of some rows, whose keys are below 64 times the words."""
    for row in slots:
        rows.masks[row] = 0
        for position in range(rows.starts[row], rows.ends[row]):
            key = int64(rows.keys[position])
            rows.masks[row, key // 64] |= int64(1) << (key % 64)


@inner
def weighted_distance(rows: SortedRows, one: int, other: int, parts: Float64s) -> float:
    """Return the weighted distance of two rows by merging them.

    Weights are summed without error, so that the order of the attributes cannot decide a tie.
    `parts` is scratch space for two sums.
    """
    starts, ends, keys, marks, weights, _ = rows
    left, right, unequal, total = starts[one], starts[other], 0, 0
    while left < ends[one] or right < ends[other]:  # to the end of both: all weights count
        only_left = right == ends[other] or (left < ends[one] and keys[left] < keys[right])
        only_right = left == ends[one] or (right < ends[other] and keys[right] < keys[left])
        weight = weights[right] if only_right else weights[left]
        total = sum_add(parts[0], total, weight)
        if only_left or only_right or marks[left] != marks[right]:
            unequal = sum_add(parts[1], unequal, weight)
        left += 0 if only_right else 1
        right += 0 if only_left else 1
    whole = sum_total(parts[0], total)
    return sum_total(parts[1], unequal) / whole if whole > 0.0 else 0.0


@kernel
def distances_to(rows: SortedRows, row: int, others: Int64s, out: Float64s) -> None:
    """Write the distances of one row to others."""
    parts = np.empty((2, PARTS))
    for position in range(len(others)):
        if len(rows.weights) == 0:
            out[position] = row_distance(rows, row, others[position])
        else:
            out[position] = weighted_distance(rows, row, others[position], parts)


@kernel
def weighted_matrix(rows: SortedRows, out: Float64s) -> None:
    """Write the weighted distances between all rows."""
    parts = np.empty((2, PARTS))
    for one in range(len(out)):
        out[one, one] = 0.0
        for other in range(one):  # symmetric: half of the pairs
            out[one, other] = out[other, one] = weighted_distance(rows, one, other, parts)


@inner
def count_shared_marks(lists: InvertedLists, row: int, low: int, high: int, equal: Int64s) -> None:
    """Count the marks that each row from `low` to `high` has in common with `row`."""
    starts, numbers, heads = lists.starts, lists.numbers, lists.heads
    positions, rows = lists.positions, lists.rows
    for other in range(low, high):
        equal[other] = 0
    for element in range(starts[row], starts[row + 1]):
        # Lists are ascending: rows after `row` itself stand behind its own position.
        mark = numbers[element]
        first = positions[element] + 1 if low > row else heads[mark]
        for position in range(first, heads[mark + 1]):
            other = rows[position]
            if other >= high:
                break
            if other >= low:
                equal[other] += 1


@inner
def count_shared_keys(lists: InvertedLists, row: int, other: int) -> int:
    """Return the number of keys that two rows have in common."""
    masks, both = lists.masks, 0
    for word in range(masks.shape[1]):
        both += ones(masks[row, word] & masks[other, word])
    return both


@inner
def listed_row(
    lists: InvertedLists, row: int, span: tuple[int, int], equal: Int64s, out: Float64s
) -> None:
    """Write the distances of `row` to the rows of a span."""
    low, high = span
    count_shared_marks(lists, row, low, high, equal)
    sizes, masks = lists.sizes, lists.masks
    words = masks.shape[1]
    if words == 0:  # keys are marks: what is shared is equal
        for other in range(low, high):
            out[other] = ratio(equal[other], sizes[row] + sizes[other] - equal[other])
    elif words == 1:  # the usual case, at most 64 attributes: no loop within the loop
        for other in range(low, high):
            both = ones(masks[row, 0] & masks[other, 0])
            out[other] = ratio(equal[other], sizes[row] + sizes[other] - both)
    else:
        for other in range(low, high):
            both = count_shared_keys(lists, row, other)
            out[other] = ratio(equal[other], sizes[row] + sizes[other] - both)


@inner
def fill_row(
    source: DistanceSource, row: int, span: tuple[int, int], equal: Int64s, out: Float64s
) -> None:
    """Write the distances of `row` to the rows of a span, from either source."""
    matrix, members = source.matrix, source.members
    if len(members) == 0:
        listed_row(source.lists, row, span, equal, out)
        return
    for other in range(span[0], span[1]):
        out[other] = matrix[members[row], members[other]]


@kernel
def listed_matrix(list_arrays: tuple[AnyArray, ...], out: Float64s) -> None:
    """Write all distances; O(n²), plus the length of the list of every mark.

    Takes the fields of `InvertedLists` as a plain tuple; see `source_arrays`.
    """
    lists = InvertedLists(*list_arrays)
    equal = np.zeros(len(out), np.int64)
    for row in range(len(out)):
        listed_row(lists, row, (0, len(out)), equal, out[row])
