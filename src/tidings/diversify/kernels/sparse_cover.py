"""Covers with an alpha below 1, of candidates by the values they share; `cover` has the algorithm.

Rows without a common mark are at distance 1. So below an alpha of 1 only rows that share marks are
neighbours, and the inverted lists of its marks lead from a row to these alone:

    row 0   shares marks with 3 and 7   ->   ids 3 7   distances 0.4 0.5
    row 1   shares marks with none      ->

Of 1,000 products of 20 attributes, 43 % of the pairs share a value, and 1.4 % are within 0.5. The
shared marks are counted in bytes, of which eight are compared at once: few lead to a distance.
"""

from typing import Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import AnyArray, Float64s, Int32s, Int64s, UInt8s, UInt64s
from tidings.compiled.ints import int64
from tidings.compiled.jit import inner, kernel, nested
from tidings.diversify.kernels.cover import Neighbourhoods, Relevance, cover
from tidings.diversify.kernels.dense_cover import reach_of
from tidings.diversify.kernels.distances import count_shared_keys, ratio
from tidings.diversify.kernels.token_rows import InvertedLists

MOST_KEYS: Final = 127
"""Keys of a row, so that a count leaves the high bit of its byte free."""
BYTES: Final = 8
EVERY_BYTE: Final = np.uint64(0x0101010101010101)
EVERY_HIGH_BIT: Final = np.uint64(0x8080808080808080)


class SharedCounts(NamedTuple):
    """How many marks each row shares with one, as bytes and as words of eight of them."""

    equal: UInt8s
    words: UInt64s


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


@inner
def count_behind(lists: InvertedLists, row: int, equal: UInt8s) -> None:
    """Count the marks that each row behind `row` has in common with it."""
    equal[row & -BYTES :] = 0
    for element in range(lists.starts[row], lists.starts[row + 1]):
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
    others: Int32s,
    distances: Float64s,
) -> int:
    """Write the rows behind `row` that are within reach, and return how many there are."""
    equal, words = shared
    # Either row has `sizes[row]` keys at least; a margin for the rounding of the product.
    least = max(1, int(np.ceil((1.0 - reach) * lists.sizes[row] - 1e-6)))
    # The high bit of each byte is set where it reaches `least`; no byte carries into the next.
    lift = np.uint64(128 - least) * EVERY_BYTE
    count = 0
    for word in range(row // BYTES, len(words)):
        if (words[word] + lift) & EVERY_HIGH_BIT == 0:
            continue
        for other in range(word * BYTES, word * BYTES + BYTES):
            if equal[other] < least:
                continue
            # Without masks keys are marks: what is shared is equal.
            same = int64(equal[other])
            both = same
            if lists.masks.shape[1] > 0:
                both = count_shared_keys(lists, row, other)
            distance = ratio(same, lists.sizes[row] + lists.sizes[other] - both)
            if distance <= reach:
                others[count], distances[count] = other, distance
                count += 1
    return count


@nested
def near_rows(lists: InvertedLists, reach: float) -> Neighbourhoods:
    """Return for each row the others that share a mark with it and are within reach."""
    count, pairs = len(lists.sizes), 0
    behind, apart = np.empty(16 * count, np.int32), np.empty(16 * count)
    words = np.zeros((count + BYTES - 1) // BYTES, np.uint64)
    shared = SharedCounts(words.view(np.uint8), words)
    begins, counts = np.zeros(count + 1, np.int64), np.zeros(count, np.int64)
    for row in range(count):
        if len(behind) - pairs < count:  # room for all rows, twice as much as before
            behind = np.append(behind, np.empty_like(behind))
            apart = np.append(apart, np.empty_like(apart))
        count_behind(lists, row, shared.equal)
        pairs += write_near(lists, row, reach, shared, behind[pairs:], apart[pairs:])
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
