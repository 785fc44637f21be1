"""History-based filtering of many subscribers (PREF Def. 14), where rank alone decides.

Without diversity the divrank of a set is the mean of its ranks, so the best swap drops a member of
the lowest rank. Means are rounded as in the plain implementation, which can turn members that
differ by less than the rounding into ties; only members that close to the lowest are tried.
"""

from typing import Final

from tidings.compiled.exact_sum import mean_without
from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined, kernel
from tidings.feed.columnar.kernels.axis import axis_end, event_position
from tidings.feed.columnar.kernels.decay import fresh_rank
from tidings.feed.columnar.kernels.emit import arrival_at, deliver_new, insert_match
from tidings.feed.columnar.kernels.layout import (
    MARK,
    MATCHING,
    NEXT,
    NUMBER_MASK,
    OUT,
    SEEN,
    SIZE,
    SLOT,
    Arrival,
    Offers,
    Output,
    RankedWindows,
    WindowExtent,
)
from tidings.feed.columnar.kernels.prefetch import prefetch_ahead
from tidings.feed.columnar.kernels.ranked_list import list_start, remove_entry, reserve_entry

ABSOLUTE: Final = 2e-12
RELATIVE: Final = 1e-14
"""Means of n ranks that differ by less than n times this tolerance may round to the same number."""


@inlined
def expire_members(windows: RankedWindows, row: int, now_us: int, sequence: int) -> int:
    """Drop the members that have left the window; return the position where it starts."""
    head, policy = windows.head, windows.policy
    start = axis_end(policy.axis, head[row, SEEN], now_us, sequence) - policy.length
    # From the back, because a removal shifts the entries behind it.
    for nth in range(head[row, SIZE] - 1, -1, -1):
        cell = list_start(windows, row) + nth
        if policy.axis == MATCHING:
            age = (head[row, SEEN] - (windows.entry[cell, MARK] >> 1)) & NUMBER_MASK
            expired = age >= policy.length
        else:
            slot = windows.entry[cell, SLOT]
            expired = event_position(windows.events, policy.axis, slot) < start
        if expired:
            remove_entry(windows, row, nth)
    return start


@inlined
def rank_members(windows: RankedWindows, row: int, now_us: int) -> None:
    """Write the fresh ranks of all members to the scratch."""
    start = list_start(windows, row)
    for nth in range(windows.head[row, SIZE]):
        us = windows.events.us[windows.entry[start + nth, SLOT]]
        windows.ranks[nth] = fresh_rank(windows.decay, windows.score[start + nth], us, now_us)


@inlined
def is_older(windows: RankedWindows, row: int, one: int, other: int) -> bool:
    """Return whether one member is older than another, or as old with a larger id."""
    us, id_order, start = windows.events.us, windows.events.id_order, list_start(windows, row)
    a, b = windows.entry[start + one, SLOT], windows.entry[start + other, SLOT]
    return us[a] < us[b] or (us[a] == us[b] and id_order[a] > id_order[b])


@inlined
def best_swap(windows: RankedWindows, row: int, rank: float) -> int:
    """Return the member that a match of this rank should replace, or -1.

    The scratch holds the ranks of the members, and has room for one more.
    """
    ranks, size = windows.ranks, windows.head[row, SIZE]
    lowest, highest = ranks[0], rank
    for nth in range(size):
        lowest = min(lowest, ranks[nth])
        highest = max(highest, ranks[nth])
    current = mean_without(ranks, size, -1, windows.partials)
    ranks[size] = rank
    best, value, dropped_rank = -1, 0.0, 0.0
    for nth in range(size):
        if ranks[nth] - lowest > size * (ABSOLUTE + RELATIVE * highest):
            continue
        same = best >= 0 and ranks[nth] == dropped_rank  # equal ranks leave equal means
        mean = value if same else mean_without(ranks, size + 1, nth, windows.partials)
        if best < 0 or mean > value or (mean == value and is_older(windows, row, nth, best)):
            best, value, dropped_rank = nth, mean, ranks[nth]
    if value > current or (value == current and not windows.policy.strict):
        return best
    return -1


@inlined
def add_member(
    windows: RankedWindows, output: Output, row: int, order: int, match: Arrival
) -> None:
    """Add a match to the history and deliver new members, unless the policy waits for more."""
    head, policy, us = windows.head, windows.policy, windows.events.us
    now_us = us[match.slot]
    position = insert_match(windows, row, match, True)
    start, size = list_start(windows, row), head[row, SIZE]
    windows.entry[start + position, MARK] = (head[row, SEEN] & NUMBER_MASK) << 1
    if policy.wait and size < policy.k:
        return
    oldest = now_us
    for nth in range(size):
        oldest = min(oldest, us[windows.entry[start + nth, SLOT]])
    deliver_new(windows, output, row, order, WindowExtent(oldest, now_us, size, now_us))


@inlined
def filter_match(
    windows: RankedWindows, output: Output, row: int, order: int, match: Arrival
) -> None:
    """Deliver a match if there is a free place or a swap that gains; otherwise forget it."""
    head, policy = windows.head, windows.policy
    now_us = windows.events.us[match.slot]
    head[row, SEEN] += 1
    start = expire_members(windows, row, now_us, match.sequence)
    if head[row, SIZE] >= policy.k:
        rank_members(windows, row, now_us)
        dropped = best_swap(windows, row, fresh_rank(windows.decay, match.score, now_us, now_us))
        if dropped < 0:
            return
        remove_entry(windows, row, dropped)
    if policy.axis == MATCHING or event_position(windows.events, policy.axis, match.slot) >= start:
        add_member(windows, output, row, order, match)


@kernel
def offer_history(windows: RankedWindows, output: Output, offers: Offers) -> None:
    """Offer matches from `progress[NEXT]` on; return early where a pool or the output is full."""
    head, progress, room = windows.head, output.progress, len(output.ranks)
    for index in range(progress[NEXT], len(offers.row)):
        row = int64(offers.row[index])
        progress[NEXT] = index
        prefetch_ahead(windows, offers.row, index)
        if not reserve_entry(windows, row) or progress[OUT] + head[row, SIZE] + 1 > room:
            return
        if head[row, SIZE] + 1 > len(windows.ranks):
            return  # the scratch has no room for the members and the match
        filter_match(windows, output, row, index, arrival_at(offers, index))
    progress[NEXT] = len(offers.row)
