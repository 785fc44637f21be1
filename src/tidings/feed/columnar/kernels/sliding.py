"""Sliding and continuous windows of many subscribers (PREF Def. 13, TKS 4.3).

An entry that k newer and better matches beat can never be chosen again: all of them stay in the
window at least as long. Without such entries the k best are the first k of the list. An offer costs
O(log w + k) on average over any stream, whatever the order of the ranks.
"""

from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined, kernel
from tidings.feed.columnar.kernels.axis import axis_end, event_position
from tidings.feed.columnar.kernels.emit import arrival_at, choose_ranked, deliver_new, insert_match
from tidings.feed.columnar.kernels.layout import (
    BEST,
    CONTINUOUS,
    DONE,
    MARK,
    MATCHING,
    NEXT,
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
from tidings.feed.columnar.kernels.ranked_list import list_start, reserve_entry
from tidings.feed.columnar.kernels.ring_buffer import expire_ring, push_ring, reserve_cell


@inlined
def slide(windows: RankedWindows, output: Output, row: int, order: int, match: Arrival) -> None:
    """Add a match to the window, and choose."""
    head, policy, events = windows.head, windows.policy, windows.events
    now_us = events.us[match.slot]
    head[row, SEEN] += 1
    start = axis_end(policy.axis, head[row, SEEN], now_us, match.sequence) - policy.length
    last = push_ring(windows, row, match.slot)
    expire_ring(windows, row, start)
    position = -1
    if policy.axis == MATCHING or event_position(events, policy.axis, match.slot) >= start:
        position = insert_match(windows, row, match, last)
    chosen = choose_ranked(windows, output, row, order, now_us)
    if policy.window == CONTINUOUS and chosen and position >= policy.k:
        # A continuous window delivers a match when it arrives or never.
        windows.entry[list_start(windows, row) + position, MARK] |= DONE


@inlined
def keep_best(windows: RankedWindows, output: Output, row: int, order: int, match: Arrival) -> None:
    """Deliver a match if it is among the k best of all time; otherwise ignore it."""
    head, policy, us = windows.head, windows.policy, windows.events.us
    now_us = us[match.slot]
    position = insert_match(windows, row, match, True)
    size = head[row, SIZE]
    if position >= 0 and not (policy.wait and size < policy.k):
        oldest = now_us
        for nth in range(size):
            oldest = min(oldest, us[windows.entry[list_start(windows, row) + nth, SLOT]])
        deliver_new(windows, output, row, order, WindowExtent(oldest, now_us, size, now_us))
    head[row, SIZE] = min(size, policy.k)


@kernel
def offer_sliding(windows: RankedWindows, output: Output, offers: Offers) -> None:
    """Offer matches from `progress[NEXT]` on; return early where a pool or the output is full."""
    progress, room = output.progress, len(output.ranks)
    for index in range(progress[NEXT], len(offers.row)):
        row = int64(offers.row[index])
        progress[NEXT] = index
        prefetch_ahead(windows, offers.row, index)
        # Room is reserved before anything changes, so an offer that stops here can be repeated.
        if not reserve_entry(windows, row) or progress[OUT] + windows.head[row, SIZE] + 1 > room:
            return
        match = arrival_at(offers, index)
        if windows.policy.window == BEST:
            keep_best(windows, output, row, index, match)
        elif reserve_cell(windows, row):
            slide(windows, output, row, index, match)
        else:
            return
    progress[NEXT] = len(offers.row)
