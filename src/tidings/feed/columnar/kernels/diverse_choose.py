"""Choices from a window from scratch, by the rule of every diversifier; `peek` changes nothing.

    window --prepare_range--> candidates in the scratch, by place
       greedy rules           work on the places directly (`diverse_greedy`)
       covers, votes, sets    copy the candidates, newest first, and call the kernels of `diversify`

The tie order of the plain implementation follows from the copies: they are sorted by time and id
once, and every later sort is stable. Kernels with the argument `search` are compiled without the
second kind of rules where it is None, in half of the time.
"""

from typing import NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s, Int64s, UInt64s
from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined, inner, kernel, nested
from tidings.diversify.kernels.cover import Relevance
from tidings.diversify.kernels.dense_cover import cover_within, fitting_dense_cover
from tidings.diversify.kernels.hashing import count_votes
from tidings.diversify.kernels.optimal import BestSet, SetProblem, best_set
from tidings.diversify.protocol import TieOrder
from tidings.feed.columnar.kernels.diverse_buffer import is_newer, places
from tidings.feed.columnar.kernels.diverse_greedy import choose_greedy, distance, prepare_place
from tidings.feed.columnar.kernels.layout import (
    CHOSEN,
    DONE,
    HELD,
    HISTORY,
    OPTIMAL,
    RELEVANT,
    SLAB,
    VOTES,
    AxisRange,
    DiverseWindows,
    FeatureColumns,
    SearchCodes,
)
from tidings.feed.columnar.kernels.timing import match_position, order_key


class RangeSize(NamedTuple):
    """The times of the oldest and newest match of a range, and how many matches it holds."""

    oldest_us: int
    newest_us: int
    held: int


@inner
def measure_range(windows: DiverseWindows, row: int, within: AxisRange) -> RangeSize:
    """Return the times and the size of a range of matches; zeros if it is empty."""
    buffer = windows.buffer
    start, oldest, newest, held = buffer.head[row, SLAB], 0, 0, 0
    for cell in range(start, start + places(buffer, row)):
        mark, slot = buffer.mark[cell], buffer.slot[cell]
        if mark == 0:
            continue
        position = match_position(windows.events, within.axis, slot, mark)
        if within.low <= position < within.high:
            us = int64(windows.events.us[slot])
            oldest = us if held == 0 else min(oldest, us)
            newest = us if held == 0 else max(newest, us)
            held += 1
    return RangeSize(oldest, newest, held)


class CandidateColumns(NamedTuple):
    """Copies of the candidates, newest first, then by smaller id."""

    place: Int64s
    slot: Int64s
    rank: Float64s
    key: Float64s
    features: Int64s


@inner
def prepare_range(windows: DiverseWindows, row: int, within: AxisRange, now_us: int) -> int:
    """Make the matches of a range candidates; return how many there are.

    With `delivered = "leave"`, delivered matches are not candidates.
    """
    buffer, linked, leave = windows.buffer, windows.scratch.linked, windows.policy.leave
    start, size = buffer.head[row, SLAB], 0
    for place in range(places(buffer, row)):
        linked[place] = -1
        mark = buffer.mark[start + place]
        if mark == 0 or (leave and mark & DONE):
            continue
        position = match_position(windows.events, within.axis, buffer.slot[start + place], mark)
        if within.low <= position < within.high:
            prepare_place(windows, row, place, now_us)
            size += 1
    return size


@nested
def copy_candidates(windows: DiverseWindows, row: int, size: int) -> CandidateColumns:
    """Copy the `size` candidates of the scratch, sorted by time and id."""
    buffer, scratch, events = windows.buffer, windows.scratch, windows.events
    start, us = buffer.head[row, SLAB], events.us
    place, count = np.empty(size, np.int64), 0
    for candidate in range(places(buffer, row)):
        if scratch.linked[candidate] >= 0:
            place[count] = candidate
            count += 1
    # Ids first, then times by a stable sort: newest first, then smaller id.
    place = place[stable_order(events.id_order[buffer.slot[start + place]])]
    place = place[stable_order(-us[buffer.slot[start + place]])]
    slot, key = np.empty(size, np.int64), np.empty(size)
    for i in range(size):
        cell = start + place[i]
        slot[i] = buffer.slot[cell]
        key[i] = order_key(windows.decay, buffer.score[cell], us[slot[i]])
    return CandidateColumns(place, slot, scratch.rank[place], key, scratch.features[place])


@nested
def best_first(keys: Float64s) -> Int64s:
    """Return the order of candidates by key; ties stay as they are."""
    return stable_order(-keys)


@nested
def distance_matrix(features: FeatureColumns, rows: Int64s, partials: Float64s) -> Float64s:
    """Return the distances between candidates, given by their rows of hashes."""
    size = len(rows)
    matrix = np.zeros((size, size))
    for one in range(size):
        for other in range(one):
            apart = distance(features, rows[one], rows[other], partials)
            matrix[one, other] = matrix[other, one] = apart
    return matrix


@nested
def choose_cover(
    matrix: Float64s, ranks: Float64s, order: Int64s, k: int, search: SearchCodes
) -> Int64s:
    """Cover all candidates; return the k most relevant of the cover, in the order of choice."""
    size = len(ranks)
    best, chosen = np.empty(size, np.int64), np.arange(size)
    best[order] = np.arange(size)
    relevance = Relevance(ranks, best, search.rule == RELEVANT)
    if search.alpha < 0:
        count = fitting_dense_cover(matrix, relevance, k, chosen)
    else:
        count = cover_within(matrix, relevance, search.alpha, chosen)
    chosen = chosen[:count]
    # The k most relevant of the cover stay in the order of choice.
    places = best[chosen]
    limit = places[stable_order(places)[min(k, count) - 1]]
    return chosen[places <= limit]


@nested
def choose_by_votes(bands: UInt64s, order: Int64s, k: int) -> Int64s:
    """Return the k candidates with most votes, if they have any; of ties the most relevant."""
    votes = np.empty(len(order), np.int64)
    count_votes(bands, order, votes)
    chosen = order[stable_order(-votes[order])][:k]
    return chosen[votes[chosen] > 0]


@nested
def gain_bounds(matrix: Float64s, ranks: Float64s, sigma: float, k: int) -> Float64s:
    """Return bounds on what each adds: its rank and half of its m largest distances, for m < k."""
    bounds, pairs = np.empty((k, len(ranks))), max(k * (k - 1) // 2, 1)
    for i in range(len(ranks)):
        largest, total = stable_order(-matrix[i]), 0.0
        for m in range(k):
            bounds[m, i] = sigma * ranks[i] / k + (1 - sigma) * total / (2 * pairs)
            total += matrix[i, largest[m]]
    return bounds


@nested
def choose_best_set(
    matrix: Float64s, ranks: Float64s, ties: TieOrder, order: Int64s, sigma: float
) -> Int64s:
    """Return the set of largest divrank of the size of `order`, which is the first guess."""
    best = BestSet(order[stable_order(order)], np.empty(1))
    bounds = gain_bounds(matrix, ranks, sigma, len(order))
    best_set(SetProblem(matrix, ranks, sigma), ties, bounds, best)
    return best.members


@nested
def choose_copied(
    windows: DiverseWindows, candidates: CandidateColumns, search: SearchCodes
) -> Int64s:
    """Choose at most k of the copied candidates; all, best first, if they are fewer than k."""
    events, slot, sigma = windows.events, candidates.slot, windows.diversity.sigma
    k, order = windows.policy.k, best_first(candidates.key)
    if len(slot) < k:
        return order
    # Votes compare bands. All other searches read distances again and again: a matrix pays.
    if search.rule == VOTES:
        bands = windows.features.bands[windows.features.band_row[slot]]
        return choose_by_votes(bands, order, k)
    matrix = distance_matrix(windows.features, candidates.features, windows.scratch.partials)
    if search.rule != OPTIMAL:
        return choose_cover(matrix, candidates.rank, order, k, search)
    us = events.us[slot]
    ties = TieOrder(np.arange(len(slot)), us - us.min(), events.id_order[slot])
    chosen = choose_best_set(matrix, candidates.rank, ties, order[:k], sigma)
    return chosen[best_first(candidates.key[chosen])]


@nested
def choose_searched(windows: DiverseWindows, row: int, size: int, search: SearchCodes) -> int:
    """Choose at most k of the `size` candidates by a search; return how many."""
    candidates = copy_candidates(windows, row, size)
    order = choose_copied(windows, candidates, search)
    for i in range(len(order)):
        windows.scratch.chosen[i] = candidates.place[order[i]]
    return len(order)


@inner
def list_best(windows: DiverseWindows, row: int, most: int) -> int:
    """Write the places of the candidates, best first, at most `most` of them; return how many."""
    chosen, start, size = windows.scratch.chosen, windows.buffer.head[row, SLAB], 0
    for place in range(places(windows.buffer, row)):
        if windows.scratch.linked[place] < 0:
            continue
        low, high = 0, size
        while low < high:
            middle = (low + high) // 2
            if is_more_relevant(windows, start + place, start + chosen[middle]):
                high = middle
            else:
                low = middle + 1
        size = min(size + 1, most)  # a full list loses its last entry
        for position in range(size - 1, low, -1):
            chosen[position] = chosen[position - 1]
        if low < most:
            chosen[low] = place
    return size


@inner
def list_members(windows: DiverseWindows, row: int, within: AxisRange, now_us: int) -> int:
    """Write the members of a history within a range, best rank first; return how many."""
    return list_best(windows, row, prepare_range(windows, row, within, now_us))


@nested
def choose_range(
    windows: DiverseWindows,
    row: int,
    within: AxisRange,
    now_us: int,
    least: int,
    search: SearchCodes | None,
) -> int:
    """Choose at most k matches of a range and write their places; return how many.

    None are chosen from fewer candidates than `least`, which is at least 1; all are chosen from
    fewer than k. Greedy sets come in the order of choice, others best rank first.
    """
    size = prepare_range(windows, row, within, now_us)
    if size < least:
        return 0
    if search is not None:
        return choose_searched(windows, row, size, search)
    count, scratch = min(windows.policy.k, size), windows.scratch
    if count == 1:  # one has no distance to another: the highest rank
        return list_best(windows, row, 1)
    capacity = places(windows.buffer, row)
    choose_greedy(windows, row, capacity, count, scratch.chosen, scratch.value)
    return count


@kernel
def peek(
    windows: DiverseWindows,
    row: int,
    within: AxisRange,
    now_us: int,
    least: int,
    search: SearchCodes | None,
) -> tuple[int, int, int, int]:
    """Choose from a range without changing the window.

    Return how many are chosen, the oldest and the newest time of the range, and how many matches it
    holds. None are chosen from fewer candidates than `least`; the members of a history are listed.
    """
    oldest, newest, held = measure_range(windows, row, within)
    size = 0
    if held > 0 and windows.policy.window == HISTORY:
        size = list_members(windows, row, within, now_us)
    elif held > 0:
        size = choose_range(windows, row, within, now_us, least, search)
    return (size, oldest, newest, held)


# Votes of the LSH buckets of a window, kept up to date as matches come and go (ILSH, TKS 5.2).
#
# An event has one band for each table; the events of a window with the same band form a bucket, and
# the most relevant one of a bucket gets its vote. Buckets are not stored: the bands of a match are
# compared with those of the window, in O(w L) for w matches and L tables.


@inlined
def key_at(windows: DiverseWindows, cell: int) -> float:
    """Return the key that sorts a cell of the pools by rank at every time."""
    slot = windows.buffer.slot[cell]
    return order_key(windows.decay, windows.buffer.score[cell], windows.events.us[slot])


@inner
def is_more_relevant(windows: DiverseWindows, one: int, other: int) -> bool:
    """Return whether one cell of the pools precedes another: higher rank, then newer."""
    key, rival, slot = key_at(windows, one), key_at(windows, other), windows.buffer.slot
    return key > rival or (key == rival and is_newer(windows.events, slot[one], slot[other]))


@inner
def find_winners(windows: DiverseWindows, row: int, own: int, winners: Int64s) -> None:
    """Write for each table the most relevant other cell in the bucket of cell `own`, or -1."""
    buffer, bands, band_row = windows.buffer, windows.features.bands, windows.features.band_row
    tables, start = bands.shape[1], buffer.head[row, SLAB]
    mine = band_row[buffer.slot[own]]
    for table in range(tables):
        winners[table] = -1
    for cell in range(start, start + places(buffer, row)):
        if buffer.mark[cell] == 0 or cell == own:
            continue
        # Most pairs share no bucket; this pass has no branches, so LLVM can vectorize it.
        other, shared = band_row[buffer.slot[cell]], 0
        for table in range(tables):
            shared += bands[mine, table] == bands[other, table]
        if shared == 0:
            continue
        for table in range(tables):
            if bands[mine, table] == bands[other, table]:
                best = winners[table]
                if best < 0 or is_more_relevant(windows, cell, best):
                    winners[table] = cell


@inner
def add_votes(windows: DiverseWindows, row: int, place: int) -> None:
    """Count for a new match the votes of the buckets in which it is the most relevant."""
    votes, winners = windows.last.votes, windows.scratch.winners
    own = windows.buffer.head[row, SLAB] + place
    find_winners(windows, row, own, winners)
    votes[own] = 0
    for best in winners:
        if best < 0:
            votes[own] += 1
        elif is_more_relevant(windows, own, best):  # it takes the vote over
            votes[own] += 1
            votes[best] -= 1


@inner
def remove_votes(windows: DiverseWindows, row: int, place: int) -> None:
    """Pass the votes of a match that leaves on to the next most relevant ones."""
    votes, winners = windows.last.votes, windows.scratch.winners
    own = windows.buffer.head[row, SLAB] + place
    if votes[own] == 0:
        return
    find_winners(windows, row, own, winners)
    for best in winners:
        # Where another was more relevant, the bucket had not voted for this match.
        if best >= 0 and is_more_relevant(windows, own, best):
            votes[best] += 1


@inner
def count_all_votes(windows: DiverseWindows, row: int) -> None:
    """Count the votes of a window as if its matches arrived one by one."""
    head, mark, marks = windows.buffer.head, windows.buffer.mark, windows.scratch.linked
    start, capacity = head[row, SLAB], places(windows.buffer, row)
    # A mark of 0 hides a match from the others until it arrives.
    for place in range(capacity):
        marks[place] = mark[start + place]
        mark[start + place] = 0
    for place in range(capacity):
        mark[start + place] = marks[place]
        if marks[place] > 0:
            add_votes(windows, row, place)
    head[row, CHOSEN] = 1


@inlined
def is_elected(windows: DiverseWindows, one: int, other: int) -> bool:
    """Return whether one cell of the pools precedes another: more votes, then more relevant."""
    votes = windows.last.votes
    if votes[one] != votes[other]:
        return votes[one] > votes[other]
    return is_more_relevant(windows, one, other)


@inner
def choose_elected(windows: DiverseWindows, row: int, chosen: Int32s) -> int:
    """Write the places with most votes, at most k; return how many.

    If the window holds fewer than k matches, all are chosen, the most relevant first.
    """
    buffer, votes, k = windows.buffer, windows.last.votes, windows.policy.k
    start, size = int64(buffer.head[row, SLAB]), 0
    few = buffer.head[row, HELD] < k
    for cell in range(start, start + places(buffer, row)):
        if buffer.mark[cell] == 0 or (votes[cell] == 0 and not few):
            continue
        position = size
        while position > 0:
            before = start + chosen[position - 1]
            if few:
                ahead = is_more_relevant(windows, cell, before)
            else:
                ahead = is_elected(windows, cell, before)
            if not ahead:
                break
            if position < k:
                chosen[position] = chosen[position - 1]
            position -= 1
        if position < k:
            chosen[position] = cell - start
            size = min(k, size + 1)
    return size


# A stable sort for kernels.
#
# `np.sort` and `np.argsort` inside a kernel take 2 to 3 s to compile for each type of keys.


@inner
def merge_runs(
    keys: Int64s | Float64s, order: Int64s, merged: Int64s, start: int, middle: int, stop: int
) -> None:
    """Merge two sorted runs of `order`; of equal keys those of the first run come first."""
    first, second = start, middle
    for cell in range(start, stop):
        if second == stop or (first < middle and not keys[order[second]] < keys[order[first]]):
            merged[cell] = order[first]
            first += 1
        else:
            merged[cell] = order[second]
            second += 1


@nested
def stable_order(keys: Int64s | Float64s) -> Int64s:
    """Return the positions of keys in ascending order; equal ones stay as they are."""
    size, width = len(keys), 1
    order, merged = np.empty(size, np.int64), np.empty(size, np.int64)
    for position in range(size):
        order[position] = position
    # Bottom-up: no recursion, and the two buffers swap roles instead of being copied.
    while width < size:
        for start in range(0, size, 2 * width):
            middle, stop = min(start + width, size), min(start + 2 * width, size)
            merge_runs(keys, order, merged, start, middle, stop)
        order, merged = merged, order
        width *= 2
    return order
