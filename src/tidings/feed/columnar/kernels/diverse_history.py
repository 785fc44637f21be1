"""Diverse histories (PREF Def. 14): a match replaces a member if the divrank of the set gains."""

from typing import Final

from tidings.compiled.array_types import Float64s
from tidings.compiled.exact_sum import sum_add, sum_total
from tidings.compiled.ints import int64
from tidings.compiled.jit import inner, kernel
from tidings.compiled.rounding import rounded
from tidings.feed.columnar.kernels.axis import axis_end
from tidings.feed.columnar.kernels.diverse_buffer import add_match, is_newer, slot_at
from tidings.feed.columnar.kernels.diverse_choose import (
    list_members,
    prepare_range,
)
from tidings.feed.columnar.kernels.diverse_greedy import distance
from tidings.feed.columnar.kernels.diverse_window import (
    deliver_chosen,
    drop_below,
    drop_match,
    has_room,
    mark_all_done,
    measure_range,
    waits,
    whole_axis,
    window_start,
)
from tidings.feed.columnar.kernels.emit import arrival_at
from tidings.feed.columnar.kernels.layout import (
    HELD,
    NEXT,
    PUBLISHED,
    SEEN,
    SLAB,
    Arrival,
    AxisRange,
    DiverseWindows,
    Offers,
    Output,
    SearchCodes,
    WindowExtent,
)

RANKS, DISTANCES, REST = range(2, 5)
"""Rows of the partial sums: of ranks, of distances, and of what is left of them."""
PARTIALS: Final = 5


@inner
def sum_without(partials: Float64s, kind: int, size: int, removed: Float64s) -> float:
    """Return one of the sums without some of its terms, exactly."""
    # Exact partial sums can be reduced exactly; a plain float sum would drift.
    for i in range(size):
        partials[REST, i] = partials[kind, i]
    for number in removed:
        size = sum_add(partials[REST], size, -number)
    return sum_total(partials[REST], size)


@inner
def sum_all(windows: DiverseWindows, size: int) -> tuple[int, int]:
    """Sum up ranks and distances of the first places; return how many partial sums both have.

    Distances are also written down if the matrix has room for them.
    """
    scratch, partials, matrix = windows.scratch, windows.scratch.partials, windows.scratch.distances
    rank_parts, distance_parts, stored = 0, 0, size <= len(matrix)
    for one in range(size):
        rank_parts = sum_add(partials[RANKS], rank_parts, scratch.rank[one])
        if stored:
            matrix[one, one] = 0.0
        for other in range(one):
            features, rival = scratch.features[one], scratch.features[other]
            apart = distance(windows.features, features, rival, partials)
            if stored:
                matrix[one, other] = matrix[other, one] = apart
            distance_parts = sum_add(partials[DISTANCES], distance_parts, apart)
    return (rank_parts, distance_parts)


@inner
def distances_from(windows: DiverseWindows, one: int, size: int, out: Float64s) -> None:
    """Write the distances of one place to the first `size` places."""
    scratch = windows.scratch
    for other in range(size):
        features, rival = scratch.features[one], scratch.features[other]
        apart = distance(windows.features, features, rival, scratch.partials)
        out[other] = apart if other != one else 0.0


@inner
def swap_values(windows: DiverseWindows, size: int, values: Float64s) -> None:
    """Write for each of the first places the divrank (PREF Def. 10) of all others; O(size²).

    Distances that the matrix has no room for are computed again, so memory stays O(size).
    """
    scratch, sigma = windows.scratch, windows.diversity.sigma
    partials, matrix, distances = scratch.partials, scratch.distances, scratch.value
    rank_parts, distance_parts = sum_all(windows, size)
    pairs = (size - 1) * (size - 2) // 2
    for out in range(size):
        rank = sum_without(partials, RANKS, rank_parts, scratch.rank[out : out + 1]) / (size - 1)
        apart = 0.0
        if pairs > 0 and size <= len(matrix):
            removed = matrix[out, :size]
            apart = sum_without(partials, DISTANCES, distance_parts, removed) / pairs
        elif pairs > 0:
            distances_from(windows, out, size, distances)
            apart = sum_without(partials, DISTANCES, distance_parts, distances[:size]) / pairs
        values[out] = rounded(sigma * rank + (1 - sigma) * apart)


@inner
def dropped_by_swap(windows: DiverseWindows, row: int, size: int, new: int) -> int:
    """Return the member of a full history that the match at `new` replaces, or `new` itself.

    All `size` places are candidates in the scratch. Of equal sets the one without the oldest wins.
    """
    values, best = windows.scratch.link, -1
    swap_values(windows, size, values)
    for place in range(size):
        if place == new:
            continue
        older = best >= 0 and is_newer(
            windows.events, slot_at(windows, row, best), slot_at(windows, row, place)
        )
        if best < 0 or values[place] > values[best] or (values[place] == values[best] and older):
            best = place
    equal = values[best] == values[new] and not windows.policy.strict
    return best if values[best] > values[new] or equal else new


@inner
def add_member(windows: DiverseWindows, row: int, match: Arrival) -> bool:
    """Add a match to the history if there is room or a swap; return whether to deliver."""
    head, events, policy = windows.buffer.head, windows.events, windows.policy
    low = window_start(windows, row, match)
    drop_below(windows, row, low)
    full = head[row, HELD] >= policy.k
    place = add_match(windows.buffer, row, match)
    if full:  # the match competes as one of k + 1 members
        size = prepare_range(windows, row, whole_axis(policy), int64(events.us[match.slot]))
        dropped = dropped_by_swap(windows, row, size, place)
        drop_match(windows, row, dropped)
        if dropped == place:
            return False
    if policy.axis == PUBLISHED and events.sequence[match.slot] <= low:
        windows.buffer.mark[head[row, SLAB] + place] = 0
        head[row, HELD] -= 1
    return full or not waits(head, policy, row)


@kernel
def offer_diverse_history(
    windows: DiverseWindows, output: Output, offers: Offers, search: SearchCodes | None
) -> None:
    """Offer matches from `progress[NEXT]` on; return early where a buffer is full."""
    head, policy, progress = windows.buffer.head, windows.policy, output.progress
    for index in range(progress[NEXT], len(offers.row)):
        row = int64(offers.row[index])
        progress[NEXT] = index
        if not has_room(windows, output, row):
            return
        match = arrival_at(offers, index)
        if add_member(windows, row, match):
            now_us = int64(windows.events.us[match.slot])
            stop = axis_end(policy.axis, int64(head[row, SEEN]), now_us, match.sequence)
            within = AxisRange(policy.axis, stop - policy.length, stop)
            measured = measure_range(windows, row, within)
            size = list_members(windows, row, within, now_us)
            extent = WindowExtent(measured.oldest_us, now_us, measured.held, now_us)
            deliver_chosen(windows, output, row, index, windows.scratch.chosen[:size], extent)
            mark_all_done(windows.buffer, row)
    progress[NEXT] = len(offers.row)
