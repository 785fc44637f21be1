"""Periodic and jumping diverse windows: a choice where a period or a step ends."""

from typing import NamedTuple

from tidings.compiled.array_types import Int32s
from tidings.compiled.ints import int64
from tidings.compiled.jit import inner, kernel, nested
from tidings.feed.columnar.kernels.axis import (
    axis_end,
    is_due,
    match_position,
    next_step,
    open_end,
    report_end,
)
from tidings.feed.columnar.kernels.decay import NONE
from tidings.feed.columnar.kernels.diverse_buffer import add_match, places
from tidings.feed.columnar.kernels.diverse_choose import choose_range
from tidings.feed.columnar.kernels.diverse_window import (
    deliver_chosen,
    drop_below,
    fewest,
    has_room,
    measure_range,
    waits,
    whole_axis,
)
from tidings.feed.columnar.kernels.emit import arrival_at
from tidings.feed.columnar.kernels.layout import (
    COUNTED,
    DONE,
    END,
    FAR,
    HELD,
    JUMPING,
    MATCHING,
    NEVER,
    NEXT,
    OUT,
    SEEN,
    SLAB,
    TIME,
    VOTES,
    AxisRange,
    DiverseWindows,
    Offers,
    Output,
    SearchCodes,
    WindowExtent,
)
from tidings.window.protocol import Moment


class EndedWindow(NamedTuple):
    """The range and the extent of a period or step that has ended."""

    within: AxisRange
    extent: WindowExtent


@inner
def ended_window(windows: DiverseWindows, row: int, now: Moment) -> EndedWindow:
    """Return the range and the extent of the period or step that has ended."""
    head, policy = windows.buffer.head, windows.policy
    end, timed = int64(head[row, END]), policy.step_axis == TIME
    if policy.window != JUMPING:
        within = whole_axis(policy)
        oldest, newest, held = measure_range(windows, row, within)
        start, stop = (end - policy.step, end) if timed else (oldest, newest)
        return EndedWindow(within, WindowExtent(start, stop, held, stop))
    high = end
    # Length on one axis, steps on another: the window ends where its own axis stands now.
    if policy.axis != policy.step_axis:
        high = axis_end(policy.axis, int64(head[row, SEEN]), now.us, now.sequence)
    within = AxisRange(policy.axis, high - policy.length, high)
    oldest, newest, held = measure_range(windows, row, within)
    stop = end if timed else newest
    return EndedWindow(within, WindowExtent(oldest, stop, held, stop))


@inner
def is_settled(windows: DiverseWindows, row: int, sent: int) -> bool:
    """Return whether the same matches have nothing more to deliver at later steps.

    With `leave`, delivered matches make room for others. Otherwise the same matches give the same
    choice as long as ranks stay, or only their order counts; and once all are delivered, or too
    few, there is nothing new.
    """
    buffer, policy, rule = windows.buffer, windows.policy, windows.diversity.rule
    if policy.leave:
        return sent == 0
    if windows.decay.kind == NONE or rule in (COUNTED, VOTES):
        return True
    if waits(buffer.head, policy, row):
        return True
    start = buffer.head[row, SLAB]
    for cell in range(start, start + places(buffer, row)):
        if buffer.mark[cell] > 0 and not buffer.mark[cell] & DONE:
            return False
    return True


@inner
def oldest_position(windows: DiverseWindows, row: int) -> int:
    """Return the lowest position of a window on its axis."""
    buffer, axis = windows.buffer, windows.policy.axis
    start, oldest = buffer.head[row, SLAB], int64(FAR)
    for cell in range(start, start + places(buffer, row)):
        mark = buffer.mark[cell]
        if mark > 0:
            oldest = min(oldest, match_position(windows.events, axis, buffer.slot[cell], mark))
    return oldest


@inner
def set_next_step(windows: DiverseWindows, row: int, now: Moment, sent: int) -> None:
    """Set the end of a jumping window to the next step that can deliver something."""
    head, policy = windows.buffer.head, windows.policy
    end, axis = int64(head[row, END]), policy.axis
    if head[row, HELD] == 0:
        head[row, END] = NEVER  # until the next match opens a step
        return
    head[row, END] = end + policy.step
    if axis == policy.step_axis and axis != MATCHING and is_settled(windows, row, sent):
        passed = now.us if axis == TIME else now.sequence
        head[row, END] = next_step(end, policy, oldest_position(windows, row), passed)


@inner
def close(windows: DiverseWindows, row: int, within: AxisRange, now: Moment, sent: int) -> None:
    """Empty a period, or drop the matches that a step leaves behind; set the next end."""
    buffer, head = windows.buffer, windows.buffer.head
    if windows.policy.window == JUMPING:
        drop_below(windows, row, within.low)
        set_next_step(windows, row, now, sent)
        return
    head[row, END] = NEVER
    # A period that waits for k matches keeps those it has; the next match opens a new end.
    if not waits(head, windows.policy, row):
        start = head[row, SLAB]
        for cell in range(start, start + places(buffer, row)):
            buffer.mark[cell] = 0
        head[row, HELD] = 0


@nested
def end_passed(
    windows: DiverseWindows,
    output: Output,
    row: int,
    order: int,
    now: Moment,
    search: SearchCodes | None,
) -> None:
    """Close the period, or take the steps, that have ended by now."""
    policy, progress, chosen = windows.policy, output.progress, windows.scratch.chosen
    while is_due(windows.buffer.head, policy, row, now):  # each turn moves the end, or clears it
        ended = ended_window(windows, row, now)
        before, extent = progress[OUT], ended.extent
        if extent.width > 0:
            decided_us, least = extent.decided_us, fewest(policy)
            size = choose_range(windows, row, ended.within, decided_us, least, search)
            deliver_chosen(windows, output, row, order, chosen[:size], extent)
        close(windows, row, ended.within, now, int64(progress[OUT] - before))


@kernel
def offer_diverse_periodic(
    windows: DiverseWindows, output: Output, offers: Offers, search: SearchCodes | None
) -> None:
    """Offer matches from `progress[NEXT]` on; return early where a buffer is full."""
    head, progress, policy = windows.buffer.head, output.progress, windows.policy
    for index in range(progress[NEXT], len(offers.row)):
        row = int64(offers.row[index])
        progress[NEXT] = index
        if not has_room(windows, output, row):
            return
        match = arrival_at(offers, index)
        now_us, before = int64(windows.events.us[match.slot]), head[row, END]
        # A nested kernel counts references to all arrays, about 1 us: it is called where it is due.
        earlier, now = Moment(now_us, match.sequence - 1), Moment(now_us, match.sequence)
        if is_due(head, policy, row, earlier):
            end_passed(windows, output, row, index, earlier, search)
        add_match(windows.buffer, row, match)
        open_end(head, windows.events, policy, row, match.slot)
        if is_due(head, policy, row, now):
            end_passed(windows, output, row, index, now, search)
        report_end(head, output, row, before)
    progress[NEXT] = len(offers.row)


@kernel
def advance_diverse(
    windows: DiverseWindows, output: Output, rows: Int32s, now: Moment, search: SearchCodes | None
) -> None:
    """Move the clock of some rows to `now`; return early where the output is full."""
    head, progress = windows.buffer.head, output.progress
    for index in range(progress[NEXT], len(rows)):
        row = int64(rows[index])
        progress[NEXT] = index
        if progress[OUT] + head[row, HELD] > len(output.ranks):
            return
        before = head[row, END]
        end_passed(windows, output, row, index, now, search)
        report_end(head, output, row, before)
    progress[NEXT] = len(rows)
