"""Windows of many subscribers that choose diverse sets: one kernel for each kind of window.

    sliding, continuous    a choice after each match, by update where the diversifier allows it
    periodic, jumping      a choice where a period or a step ends
    history                a match replaces a delivered one if the set gains

Like those of `ranked_windows`, a kernel takes the offers of a batch in order, and stops where a
buffer is full.
"""

from typing import Final, NamedTuple

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.exact_sum import sum_add, sum_total
from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined, inner, kernel, nested
from tidings.compiled.rounding import rounded
from tidings.feed.columnar.kernels.diverse_buffer import (
    add_match,
    choice_start,
    is_newer,
    places,
    reserve_place,
    slot_at,
)
from tidings.feed.columnar.kernels.diverse_choose import (
    add_votes,
    choose_elected,
    choose_range,
    count_all_votes,
    list_members,
    measure_range,
    prepare_range,
    remove_votes,
)
from tidings.feed.columnar.kernels.diverse_greedy import distance, invalidate_from, update_choice
from tidings.feed.columnar.kernels.layout import (
    BEST,
    CHOSEN,
    CONTINUOUS,
    COUNTED,
    DONE,
    END,
    EVENT,
    EVER,
    FAR,
    HANDLE,
    HELD,
    HISTORY,
    JUMPING,
    LAST,
    MATCHING,
    NEVER,
    NEXT,
    OUT,
    PUBLISHED,
    SEEN,
    SLAB,
    TIME,
    VOTES,
    Arrival,
    AxisRange,
    DiverseBuffer,
    DiverseWindows,
    Offers,
    Output,
    PolicyCodes,
    SearchCodes,
    WindowExtent,
    arrival_at,
    write_delivery,
)
from tidings.feed.columnar.kernels.timing import (
    NONE,
    axis_end,
    fresh_rank,
    is_due,
    match_position,
    next_step,
    open_end,
    report_end,
)
from tidings.window.protocol import Moment

# Operations of all diverse windows: drop matches, measure ranges, deliver choices.


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


# Sliding and continuous diverse windows: a choice after every match.
#
# The choice is brought up to date where the diversifier allows it, and made from scratch otherwise.


@inlined
def enter(windows: DiverseWindows, row: int, match: Arrival) -> int:
    """Drop the matches that leave the window as a match arrives, and add the match.

    Return its place, or -1 if it is before the window: sequences need not rise with time.
    """
    head, low = windows.buffer.head, window_start(windows, row, match)
    drop_below(windows, row, low)
    place = add_match(windows.buffer, row, match)
    if windows.policy.axis == PUBLISHED and windows.events.sequence[match.slot] <= low:
        windows.buffer.mark[head[row, SLAB] + place] = 0
        head[row, HELD] -= 1
        return -1
    if head[row, CHOSEN] > 0 and windows.diversity.rule == VOTES:
        add_votes(windows, row, place)
    return place


@inner
def whole_extent(windows: DiverseWindows, row: int, now_us: int) -> WindowExtent:
    """Return the extent of a choice from the whole window."""
    measured = measure_range(windows, row, whole_axis(windows.policy))
    return WindowExtent(measured.oldest_us, now_us, measured.held, now_us)


@inner
def deliver_updated(
    windows: DiverseWindows, output: Output, row: int, order: int, new: int, now_us: int
) -> None:
    """Bring the choice from a window of at least two matches up to date; deliver new places."""
    buffer, head = windows.buffer, windows.buffer.head
    if windows.diversity.rule == VOTES:
        if head[row, CHOSEN] == 0:
            count_all_votes(windows, row)
        chosen = windows.scratch.chosen
        size = choose_elected(windows, row, chosen)
    else:
        if not update_choice(windows, row, places(buffer, row), new):
            return
        chosen = windows.last.place[choice_start(windows, row) :]
        size = int64(head[row, CHOSEN])
    due = 0
    for nth in range(size):
        due += 1 - (buffer.mark[head[row, SLAB] + chosen[nth]] & DONE)
    if due > 0:  # the extent takes O(w)
        extent = whole_extent(windows, row, now_us)
        deliver_chosen(windows, output, row, order, chosen[:size], extent)


@inner
def is_continuous(policy: PolicyCodes) -> bool:
    """Return whether a match that is not chosen at once is never delivered."""
    return policy.window == CONTINUOUS or policy.window == BEST  # noqa: PLR1714 - compiled


@inlined
def slide_updated(
    windows: DiverseWindows, output: Output, row: int, order: int, match: Arrival
) -> bool:
    """Add a match, and bring the choice up to date; return whether that was possible."""
    buffer, head, policy = windows.buffer, windows.buffer.head, windows.policy
    new, now_us = enter(windows, row, match), int64(windows.events.us[match.slot])
    if windows.diversity.kept_width == 0 or waits(head, policy, row) or head[row, HELD] < 2:
        head[row, CHOSEN] = 0
        return False
    before = head[row, CHOSEN]
    deliver_updated(windows, output, row, order, new, now_us)
    if is_continuous(policy):
        if before > 0:  # all others were marked when they were passed over
            buffer.mark[head[row, SLAB] + new] |= DONE
        else:
            mark_all_done(buffer, row)
    return True


@kernel
def offer_diverse_sliding(
    windows: DiverseWindows, output: Output, offers: Offers, search: SearchCodes | None
) -> None:
    """Offer matches from `progress[NEXT]` on; return early where a buffer is full."""
    progress, policy = output.progress, windows.policy
    for index in range(progress[NEXT], len(offers.row)):
        row = int64(offers.row[index])
        progress[NEXT] = index
        if not has_room(windows, output, row):
            return
        match = arrival_at(offers, index)
        if slide_updated(windows, output, row, index, match):
            continue
        now_us, continuous = int64(windows.events.us[match.slot]), is_continuous(policy)
        if not (continuous and waits(windows.buffer.head, policy, row)):
            size = choose_range(windows, row, whole_axis(policy), now_us, fewest(policy), search)
            extent = whole_extent(windows, row, now_us)
            deliver_chosen(windows, output, row, index, windows.scratch.chosen[:size], extent)
            if continuous:
                mark_all_done(windows.buffer, row)
    progress[NEXT] = len(offers.row)


# Periodic and jumping diverse windows: a choice where a period or a step ends.


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


# Diverse histories (PREF Def. 14): a match replaces a member if the divrank of the set gains.

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
