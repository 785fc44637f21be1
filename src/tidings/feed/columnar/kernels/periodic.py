"""Periodic and jumping windows of many subscribers (PREF Def. 12, TKS Def. 4.3.1).

A period keeps only its k best matches and counts the others. A jumping window is kept as a sliding
one, from which a choice is made where a step ends.
"""

from tidings.compiled.array_types import Int32s
from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined, kernel
from tidings.feed.columnar.kernels.axis import (
    axis_end,
    event_position,
    is_due,
    next_step,
    open_end,
    report_end,
)
from tidings.feed.columnar.kernels.emit import arrival_at, choose_ranked, deliver_new, insert_match
from tidings.feed.columnar.kernels.layout import (
    COUNT,
    END,
    FIRST,
    HELD,
    JUMPING,
    MATCHING,
    NEVER,
    NEWEST_US,
    NEXT,
    OLDEST_US,
    OUT,
    SEEN,
    SIZE,
    TIME,
    Arrival,
    Offers,
    Output,
    RankedWindows,
    WindowExtent,
)
from tidings.feed.columnar.kernels.prefetch import prefetch_ahead
from tidings.feed.columnar.kernels.ranked_list import reserve_entry
from tidings.feed.columnar.kernels.ring_buffer import (
    expire_ring,
    newest_us,
    push_ring,
    reserve_cell,
    ring_cell,
)
from tidings.window.protocol import Moment


@inlined
def close_period(windows: RankedWindows, output: Output, row: int, order: int, now: Moment) -> None:
    """Deliver the k best of the open period if it has ended."""
    head, policy = windows.head, windows.policy
    if not is_due(head, policy, row, now):
        return
    end, count, timed = head[row, END], head[row, COUNT], policy.step_axis == TIME
    head[row, END] = NEVER
    if policy.wait and count < policy.k:
        return  # the matches stay for the next period
    start = end - policy.step if timed else head[row, OLDEST_US]
    stop = end if timed else head[row, NEWEST_US]
    deliver_new(windows, output, row, order, WindowExtent(start, stop, count, stop))
    head[row, COUNT] = head[row, SIZE] = head[row, FIRST] = 0


@inlined
def take_steps(windows: RankedWindows, output: Output, row: int, order: int, now: Moment) -> None:
    """Choose at every step that has ended, while the window holds something."""
    head, policy, events = windows.head, windows.policy, windows.events
    axis, step_axis = policy.axis, policy.step_axis
    while is_due(head, policy, row, now):
        end, seen = head[row, END], head[row, SEEN]
        stop = end if axis == step_axis else axis_end(axis, seen, now.us, now.sequence)
        expire_ring(windows, row, stop - policy.length)
        if head[row, HELD] == 0:
            head[row, END] = NEVER
            continue
        decided = end if step_axis == TIME else newest_us(windows, row)
        chosen = choose_ranked(windows, output, row, order, decided)
        head[row, END] = end + policy.step
        if axis == step_axis and axis != MATCHING and not (chosen and policy.leave):
            # The same matches would be chosen again, and all of them are delivered.
            oldest = event_position(events, axis, windows.ring[ring_cell(windows, row, 0)])
            passed = now.us if axis == TIME else now.sequence
            head[row, END] = next_step(end, policy, oldest, passed)


@inlined
def end_passed(windows: RankedWindows, output: Output, row: int, order: int, now: Moment) -> None:
    """Close the period, or take the steps, that have ended by now."""
    if windows.policy.window == JUMPING:
        take_steps(windows, output, row, order, now)
    else:
        close_period(windows, output, row, order, now)


@inlined
def add_to_period(windows: RankedWindows, row: int, match: Arrival) -> None:
    """Count a match, and keep it if it is among the k best."""
    head, us = windows.head, windows.events.us[match.slot]
    if head[row, COUNT] == 0:
        head[row, OLDEST_US] = us
    head[row, NEWEST_US] = us  # events arrive in order of time
    head[row, COUNT] += 1
    insert_match(windows, row, match, True)
    head[row, SIZE] = min(head[row, SIZE], windows.policy.k)


@inlined
def offer_match(
    windows: RankedWindows, output: Output, row: int, order: int, match: Arrival
) -> None:
    """End the periods before a match, add it, and end the period that it completes."""
    head, now_us = windows.head, windows.events.us[match.slot]
    before = head[row, END]
    # Periods that end before the match do not contain it; one that it completes does.
    end_passed(windows, output, row, order, Moment(now_us, match.sequence - 1))
    head[row, SEEN] += 1
    if windows.policy.window == JUMPING:
        last = push_ring(windows, row, match.slot)
        insert_match(windows, row, match, last)
    else:
        add_to_period(windows, row, match)
    open_end(head, windows.events, windows.policy, row, match.slot)
    end_passed(windows, output, row, order, Moment(now_us, match.sequence))
    report_end(head, output, row, before)


@kernel
def offer_periodic(windows: RankedWindows, output: Output, offers: Offers) -> None:
    """Offer matches from `progress[NEXT]` on; return early where a pool or the output is full."""
    progress, room = output.progress, len(output.ranks)
    jumping = windows.policy.window == JUMPING
    for index in range(progress[NEXT], len(offers.row)):
        row = int64(offers.row[index])
        progress[NEXT] = index
        prefetch_ahead(windows, offers.row, index)
        # Room is reserved before anything changes, so an offer that stops here can be repeated.
        if not reserve_entry(windows, row) or progress[OUT] + windows.head[row, SIZE] + 1 > room:
            return
        if jumping and not reserve_cell(windows, row):
            return
        offer_match(windows, output, row, index, arrival_at(offers, index))
    progress[NEXT] = len(offers.row)


@kernel
def advance_periodic(windows: RankedWindows, output: Output, rows: Int32s, now: Moment) -> None:
    """Move the clock of some rows to `now`; return early where the output is full."""
    head, progress = windows.head, output.progress
    for index in range(progress[NEXT], len(rows)):
        row = int64(rows[index])
        progress[NEXT] = index
        if progress[OUT] + head[row, SIZE] > len(output.ranks):
            return
        before = head[row, END]
        end_passed(windows, output, row, index, now)
        report_end(head, output, row, before)
    progress[NEXT] = len(rows)
