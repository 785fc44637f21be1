"""Operations of all diverse windows: drop matches, measure ranges, deliver choices."""

from typing import NamedTuple

from tidings.compiled.array_types import Int32s, Int64s
from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined, inner
from tidings.feed.columnar.kernels.axis import axis_end, match_position
from tidings.feed.columnar.kernels.decay import fresh_rank
from tidings.feed.columnar.kernels.diverse_buffer import places, reserve_place
from tidings.feed.columnar.kernels.diverse_greedy import invalidate_from
from tidings.feed.columnar.kernels.diverse_lsh import remove_votes
from tidings.feed.columnar.kernels.emit import write_delivery
from tidings.feed.columnar.kernels.layout import (
    CHOSEN,
    DONE,
    EVENT,
    EVER,
    FAR,
    HANDLE,
    HELD,
    HISTORY,
    LAST,
    MATCHING,
    OUT,
    SEEN,
    SLAB,
    VOTES,
    Arrival,
    AxisRange,
    DiverseBuffer,
    DiverseWindows,
    Output,
    PolicyCodes,
    WindowExtent,
)


class RangeSize(NamedTuple):
    """The times of the oldest and newest match of a range, and how many matches it holds."""

    oldest_us: int
    newest_us: int
    held: int


@inlined
def whole_axis(policy: PolicyCodes) -> AxisRange:
    """Return the range of all matches."""
    return AxisRange(policy.axis, int64(-FAR), int64(FAR))


@inner
def drop_match(windows: DiverseWindows, row: int, place: int) -> None:
    """Drop a match, and its part in the kept choice."""
    head = windows.buffer.head
    if head[row, CHOSEN] > 0:  # else no choice is kept, and there is nothing to mend
        if windows.diversity.rule == VOTES:
            remove_votes(windows, row, place)
        else:
            invalidate_from(windows, row, place)
    windows.buffer.mark[head[row, SLAB] + place] = 0
    head[row, HELD] -= 1


@inner
def drop_below(windows: DiverseWindows, row: int, low: int) -> None:
    """Drop the matches below a position on the axis of the window.

    Where matches are counted, the window is a ring without gaps, and only its oldest are looked at;
    except a history, from which any match may have been swapped out.
    """
    buffer, policy, head = windows.buffer, windows.policy, windows.buffer.head
    if head[row, HELD] == 0:
        return
    start, capacity = head[row, SLAB], places(buffer, row)
    if policy.axis == MATCHING and policy.window != HISTORY:
        # Positions are consecutive: the oldest of HELD matches is at SEEN - HELD.
        while head[row, HELD] > 0 and head[row, SEEN] - head[row, HELD] < low:
            oldest = head[row, LAST] - head[row, HELD] + 1
            drop_match(windows, row, int64(oldest if oldest >= 0 else oldest + capacity))
        return
    for place in range(capacity):
        mark, slot = buffer.mark[start + place], buffer.slot[start + place]
        if mark > 0 and match_position(windows.events, policy.axis, slot, mark) < low:
            drop_match(windows, row, place)


@inlined
def window_start(windows: DiverseWindows, row: int, match: Arrival) -> int:
    """Return the position where the window starts once a match has arrived."""
    policy, us = windows.policy, int64(windows.events.us[match.slot])
    if policy.axis == EVER:
        return -FAR
    new = 1 if policy.axis == MATCHING else 0  # SEEN does not count the match yet
    seen = int64(windows.buffer.head[row, SEEN])
    return axis_end(policy.axis, seen, us, match.sequence) + new - policy.length


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


@inner
def deliver_chosen(
    windows: DiverseWindows,
    output: Output,
    row: int,
    order: int,
    chosen: Int32s,
    extent: WindowExtent,
) -> None:
    """Deliver the chosen matches that are not done yet, and mark them as done."""
    buffer = windows.buffer
    for nth in range(len(chosen)):
        cell = buffer.head[row, SLAB] + chosen[nth]
        if buffer.mark[cell] & DONE:
            continue
        buffer.mark[cell] |= DONE
        slot = buffer.slot[cell]
        # Positions count all chosen matches, also those that were delivered before.
        index = write_delivery(buffer.head, output, row, order, nth + 1, extent)
        output.columns[index, EVENT] = slot
        output.columns[index, HANDLE] = buffer.handle[cell]
        us = windows.events.us[slot]
        output.scores[index] = buffer.score[cell]
        output.ranks[index] = fresh_rank(windows.decay, buffer.score[cell], us, extent.decided_us)


@inlined
def mark_all_done(buffer: DiverseBuffer, row: int) -> None:
    """Mark all matches of a window as done."""
    start = buffer.head[row, SLAB]
    for cell in range(start, start + places(buffer, row)):
        if buffer.mark[cell] > 0:
            buffer.mark[cell] |= DONE


@inlined
def waits(head: Int64s, policy: PolicyCodes, row: int) -> bool:
    """Return whether a window waits for k matches."""
    return policy.wait and head[row, HELD] < policy.k


@inlined
def fewest(policy: PolicyCodes) -> int:
    """Return how many candidates a choice needs."""
    return policy.k if policy.wait else 1


@inlined
def has_room(windows: DiverseWindows, output: Output, row: int) -> bool:
    """Return whether the pools, the output and the scratch have room for one more match."""
    buffer, used = windows.buffer, output.progress[OUT]
    # At worst, all matches that are held are delivered together with the new one.
    if not reserve_place(buffer, row) or used + buffer.head[row, HELD] + 1 > len(output.ranks):
        return False
    return places(buffer, row) <= len(windows.scratch.rank)
