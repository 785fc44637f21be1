"""Covers without a matrix of distances: from shared values, or from levels of distances.

`cover` has the algorithm.
"""

from typing import Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import (
    AnyArray,
    Bools,
    Float64s,
    Int32s,
    Int64s,
    UInt8s,
    UInt16s,
    UInt64s,
)
from tidings.compiled.ints import int64
from tidings.compiled.jit import inner, kernel, nested
from tidings.compiled.simd import lowest_bit, ones, without_lowest
from tidings.diversify.kernels.cover import Neighbourhoods, Relevance, cover
from tidings.diversify.kernels.dense_cover import NearCells, cover_by_sums, reach_of
from tidings.diversify.kernels.distances import count_shared_keys, ratio
from tidings.diversify.kernels.token_rows import InvertedLists

# Covers with an alpha below 1, of candidates by the values they share; `cover` has the algorithm.
#
# Rows without a common mark are at distance 1. So below an alpha of 1 only rows that share marks
# are neighbours, and the inverted lists of its marks lead from a row to these alone:
#
#     row 0   shares marks with 3 and 7   ->   ids 3 7   distances 0.4 0.5
#     row 1   shares marks with none      ->
#
# Of 1,000 products of 20 attributes, 43 % of the pairs share a value, and 1.4 % are within 0.5. The
# shared marks are counted in bytes, of which eight are compared at once: few lead to a distance.
#
# The most frequent marks, whose lists are by far the longest, are bits of a mask for each row. Only
# rows that share enough of the others are compared by their masks as well.


MOST_KEYS: Final = 127
"""Keys of a row, so that a count leaves the high bit of its byte free."""
BYTES: Final = 8
EVERY_BYTE: Final = np.uint64(0x0101010101010101)
EVERY_HIGH_BIT: Final = np.uint64(0x8080808080808080)


FREQUENT: Final = 64
"""Marks that are bits of a word: of 20 that a row has, three to six, which most pairs share."""


class FrequentMarks(NamedTuple):
    """The bit of each mark, -1 if it is not frequent, and the bits of each row."""

    bit: Int64s
    rows: Int64s


class SharedCounts(NamedTuple):
    """How many marks each row shares with one, as bytes and as words of eight of them.

    Frequent marks are not counted.
    """

    equal: UInt8s
    words: UInt64s
    frequent: FrequentMarks


class NearPairs(NamedTuple):
    """Rows that are near one before them, and their distances."""

    others: Int32s
    distances: Float64s


@kernel
def count_shared_pairs(list_arrays: tuple[AnyArray, ...]) -> int:
    """Return how often rows meet in the lists of their marks: at least the pairs that share one.

    Takes the fields of `InvertedLists` as a plain tuple, as do the others; see `source_arrays`.
    """
    lists, met = InvertedLists(*list_arrays), 0
    for mark in range(len(lists.heads) - 1):
        holders = lists.heads[mark + 1] - lists.heads[mark]
        met += holders * (holders - 1) // 2
    return met


@nested
def frequent_marks(lists: InvertedLists) -> FrequentMarks:
    """Return the marks of the longest lists, at most `FREQUENT`; of one length all, or none."""
    marks, rows = len(lists.heads) - 1, len(lists.sizes)
    longer = np.zeros(rows + 2, np.int64)
    for mark in range(marks):
        longer[lists.heads[mark + 1] - lists.heads[mark]] += 1
    shortest, total = rows + 1, int64(0)
    while shortest > 1 and total + longer[shortest - 1] <= FREQUENT:
        shortest -= 1
        total += longer[shortest]
    frequent = FrequentMarks(np.full(marks, -1, np.int64), np.zeros(rows, np.int64))
    bit = int64(0)
    for mark in range(marks):
        if lists.heads[mark + 1] - lists.heads[mark] < shortest:
            continue
        frequent.bit[mark] = bit
        for position in range(lists.heads[mark], lists.heads[mark + 1]):
            frequent.rows[lists.rows[position]] |= np.int64(1) << np.int64(bit)
        bit += 1
    return frequent


@inner
def count_behind(lists: InvertedLists, row: int, shared: SharedCounts) -> None:
    """Count the marks that each row behind `row` has in common with it, but for frequent ones."""
    equal, _, frequent = shared
    equal[row & -BYTES :] = 0
    for element in range(lists.starts[row], lists.starts[row + 1]):
        if frequent.bit[lists.numbers[element]] >= 0:
            continue
        # Lists are ascending: rows after `row` itself stand behind its own position.
        end = lists.heads[lists.numbers[element] + 1]
        for position in range(lists.positions[element] + 1, end):
            equal[lists.rows[position]] += 1


@inner
def write_near(
    lists: InvertedLists,
    row: int,
    reach: float,
    shared: SharedCounts,
    near: NearPairs,
    first: int,
) -> int:
    """Write the rows behind `row` that are within reach from `first` on; return where they end."""
    equal, words, frequent = shared
    # Either row has `sizes[row]` keys at least; a margin for the rounding of the product.
    least = max(1, int(np.ceil((1.0 - reach) * lists.sizes[row] - 1e-6)))
    # So many of the counted marks must be shared; none if the frequent ones may be enough.
    counted = max(0, least - ones(frequent.rows[row]))
    # The high bit of each byte is set where it reaches that; no byte carries into the next.
    lift = np.uint64(128 - counted) * EVERY_BYTE
    end = first
    for word in range(row // BYTES, len(words)):
        # The first row of a word is its lowest byte.
        reached = int64((words[word] + lift) & EVERY_HIGH_BIT)
        while reached != 0:
            other = word * BYTES + lowest_bit(reached) // 8
            reached = without_lowest(reached)
            if other <= row or other >= len(lists.sizes):
                continue
            same = int64(equal[other]) + ones(frequent.rows[row] & frequent.rows[other])
            if same < least:
                continue
            # Without masks keys are marks: what is shared is equal.
            both = same
            if lists.masks.shape[1] > 0:
                both = count_shared_keys(lists, row, other)
            distance = ratio(same, lists.sizes[row] + lists.sizes[other] - both)
            if distance <= reach:
                near.others[end], near.distances[end] = other, distance
                end += 1
    return end


@nested
def near_rows(lists: InvertedLists, reach: float) -> Neighbourhoods:
    """Return for each row the others that share a mark with it and are within reach."""
    count, pairs = len(lists.sizes), 0
    behind, apart = np.empty(16 * count, np.int32), np.empty(16 * count)
    words = np.zeros((count + BYTES - 1) // BYTES, np.uint64)
    shared = SharedCounts(words.view(np.uint8), words, frequent_marks(lists))
    begins, counts = np.zeros(count + 1, np.int64), np.zeros(count, np.int64)
    for row in range(count):
        if len(behind) - pairs < count:  # room for all rows, twice as much as before
            behind = np.append(behind, np.empty_like(behind))
            apart = np.append(apart, np.empty_like(apart))
        count_behind(lists, row, shared)
        pairs = write_near(lists, row, reach, shared, NearPairs(behind, apart), pairs)
        begins[row + 1] = pairs
        for pair in range(begins[row], pairs):
            counts[behind[pair]] += 1
        counts[row] += pairs - begins[row]
    starts = np.cumsum(counts) - counts
    ends, ids, distances = starts.copy(), np.empty(2 * pairs, np.int64), np.empty(2 * pairs)
    for row in range(count):
        for pair in range(begins[row], begins[row + 1]):
            for one, other in ((row, int64(behind[pair])), (int64(behind[pair]), row)):
                ids[ends[one]], distances[ends[one]] = other, apart[pair]
                ends[one] += 1
    return Neighbourhoods(starts, counts, ids, distances)


@kernel
def near_cover_within(
    list_arrays: tuple[AnyArray, ...], relevance: Relevance, alpha: float, chosen: Int64s
) -> int:
    """Choose with an alpha below 1, of 12 decimals; return how many were chosen.

    Rows have at most `MOST_KEYS` keys, and at least one.
    """
    near = near_rows(InvertedLists(*list_arrays), reach_of(alpha))
    return cover(near, relevance, np.arange(len(chosen)), chosen)


# Covers of rows whose distances take few values, without writing these: levels instead.
#
# Where all weights are 1, the distance of two rows follows from two small numbers, how many keys
# either row has and how many marks are equal. So a matrix holds levels of two bytes, which number
# the distances in ascending order, and a table their values:
#
#     levels[p]   -  2  3  2  0          values   0.0  0.25  0.5  1.0
#     weights[p]  0.3  0.0  0.9  0.7     what the candidates at each level weigh together
#
# The weights of a row give its sums for every alpha at once, so that a search for the largest alpha
# that yields k looks at no distance again to begin the next one.

MOST_LEVELS: Final = 4096
"""More pairs of numbers are not sorted for a choice; the distances are written then."""
LANES: Final = 4
"""Sums side by side: one would wait for the last addition to the same level."""


class Levels(NamedTuple):
    """The level of each number of keys, from `least` on, and of equal marks; and the distances."""

    least: int
    numbers: UInt16s
    values: Float64s


@nested
def levels_of(lists: InvertedLists) -> Levels:
    """Return the levels of all distances that rows can have; no values if there are too many."""
    sizes, masks = lists.sizes, lists.masks
    least, equal = sizes.min(), sizes.max()
    most = 2 * equal
    if masks.shape[1] > 0 and (masks == masks[0]).all():
        most = equal  # as of events of one kind
    span = most - least + 1
    if span * (equal + 1) > MOST_LEVELS:
        return Levels(least, np.empty((0, 0), np.uint16), np.empty(0))
    distances = np.empty((span, equal + 1))
    for keys in range(span):
        for shared in range(equal + 1):
            distances[keys, shared] = ratio(min(shared, least + keys), least + keys)
    ordered = np.sort(distances.ravel())
    count = 1
    for position in range(1, len(ordered)):
        if ordered[position] > ordered[count - 1]:
            ordered[count] = ordered[position]
            count += 1
    values = ordered[:count].copy()
    numbers = np.searchsorted(values, distances.ravel()).reshape(distances.shape)
    return Levels(least, numbers.astype(np.uint16), values)


@inner
def count_equal_marks(lists: InvertedLists, row: int, equal: UInt16s) -> None:
    """Count the marks that each row has in common with `row`."""
    equal[:] = 0
    for element in range(lists.starts[row], lists.starts[row + 1]):
        mark = lists.numbers[element]
        for position in range(lists.heads[mark], lists.heads[mark + 1]):
            equal[lists.rows[position]] += 1


@inner
def write_levels(
    lists: InvertedLists, levels: Levels, row: int, equal: UInt16s, out: UInt16s
) -> None:
    """Write the levels of the distances of a row, given the marks that others share with it."""
    least, numbers, _ = levels
    sizes, masks = lists.sizes, lists.masks
    if len(numbers) == 1:  # all have the same keys, and the levels count the unequal ones
        for other in range(len(equal)):
            out[other] = sizes[row] - equal[other]
    else:
        for other in range(len(equal)):
            both = count_shared_keys(lists, row, other) if masks.shape[1] > 0 else equal[other]
            out[other] = numbers[sizes[row] + sizes[other] - both - least, equal[other]]


@inner
def weigh_levels(row: UInt16s, weights: Float64s, lanes: Float64s, out: Float64s) -> None:
    """Write the total weight of the candidates at each level but the last."""
    for lane in range(LANES):
        lanes[lane] = 0.0
    one, two, three, four = lanes[0], lanes[1], lanes[2], lanes[3]
    whole = len(row) // LANES * LANES
    for other in range(0, whole, LANES):
        one[row[other]] += weights[other]
        two[row[other + 1]] += weights[other + 1]
        three[row[other + 2]] += weights[other + 2]
        four[row[other + 3]] += weights[other + 3]
    for other in range(whole, len(row)):
        one[row[other]] += weights[other]
    for level in range(len(out)):
        out[level] = (one[level] + two[level]) + (three[level] + four[level])


@inner
def add_levels(weights: Float64s, shares: Float64s, last: int) -> float:
    """Return the sum over all neighbours up to a level."""
    total = 0.0
    for level in range(last + 1):
        total += weights[level] * shares[level]
    return total


@nested
def find_levels(levels: UInt16s, count: int) -> Bools:
    """Return for each of `count` levels whether some pair has it."""
    present = np.zeros(count + 1, np.bool_)
    for row in levels:
        for level in row:
            present[level] = True
    return present


@inner
def below(present: Bools, last: int) -> int:
    """Return the highest level up to `last` that some pair has, or 0."""
    while last > 0 and not present[last]:
        last -= 1
    return last


@kernel
def level_cover(
    list_arrays: tuple[AnyArray, ...], relevance: Relevance, alpha: float, k: int, chosen: Int64s
) -> int:
    """Choose with an alpha, of 12 decimals, or if it is negative with the largest that yields k.

    Return how many were chosen, or -1 if there are too many levels. Every level at which the cover
    can change is tried, as in `fitting_dense_cover`.
    """
    lists = InvertedLists(*list_arrays)
    count, table = len(lists.sizes), levels_of(lists)
    values = table.values
    if len(values) == 0:
        return -1
    levels, equal = np.empty((count, count), np.uint16), np.empty(count, np.uint16)
    lanes, weighed = np.zeros((LANES, len(values) + 1)), np.empty((count, len(values)))
    weights = relevance.ranks if relevance.by_rank else np.ones(count)
    for row in range(count):
        count_equal_marks(lists, row, equal)
        write_levels(lists, table, row, equal, levels[row])
        levels[row, row] = len(values)  # beyond all others: no row is its own neighbour
        weigh_levels(levels[row], weights, lanes, weighed[row])
    if alpha >= 0.0:
        last = int64(np.searchsorted(values, reach_of(alpha), side="right")) - 1
        present = np.empty(0, np.bool_)
    else:
        present = find_levels(levels, len(values))
        last = below(present, len(values) - 1)
        last -= 1 if k > 1 and last > 0 else 0  # the largest distance yields one
        last = below(present, last)
    current, shares = np.empty(count), np.zeros(len(values) + 1)
    while True:
        for level in range(len(values)):
            within = values[level] if relevance.by_rank else 1.0
            shares[level] = within if level <= last else 0.0
        for row in range(count):
            current[row] = add_levels(weighed[row], shares, last)
        near = NearCells(levels, shares, last)
        size = cover_by_sums(near, relevance, current, chosen)
        if alpha >= 0.0 or size >= k or last <= 0:
            return size
        last = below(present, last - 1)
