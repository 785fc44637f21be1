"""Windows of many subscribers in which rank alone decides: one kernel for each kind of window.

    offer_sliding     after each match the k best of the last ones; continuous, the k best so far
    offer_periodic    where a period or a step ends, the k best of it
    offer_history     a match that raises the mean rank of what was delivered

A kernel takes the offers of a batch in order, row by row, and stops where a buffer is full.
"""

from typing import Final

from tidings.compiled.array_types import Int32s
from tidings.compiled.exact_sum import mean_without
from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined, kernel
from tidings.feed.columnar.kernels.layout import (
    BEST,
    CONTINUOUS,
    COUNT,
    DONE,
    END,
    EVENT,
    FIRST,
    HANDLE,
    HELD,
    JUMPING,
    MARK,
    MATCHED,
    MATCHING,
    NEVER,
    NEWEST_US,
    NEXT,
    NUMBER_MASK,
    OLDEST_US,
    OUT,
    SEEN,
    SIZE,
    SLOT,
    TIME,
    Arrival,
    Offers,
    Output,
    RankedWindows,
    WindowExtent,
    arrival_at,
    write_delivery,
)
from tidings.feed.columnar.kernels.ranked_buffer import (
    RankedEntry,
    count_beaten,
    expire_ring,
    insert_entry,
    list_start,
    newest_us,
    oldest_us,
    prefetch_ahead,
    push_ring,
    rank_position,
    remove_entry,
    reserve_cell,
    reserve_entry,
    ring_cell,
)
from tidings.feed.columnar.kernels.timing import (
    axis_end,
    event_position,
    fresh_rank,
    is_due,
    next_step,
    open_end,
    order_key,
    report_end,
)
from tidings.window.protocol import Moment

# Choices by rank: the k best of a ranked list, and what is delivered of them.


@inlined
def deliver_new(
    windows: RankedWindows, output: Output, row: int, order: int, extent: WindowExtent
) -> None:
    """Deliver those of the k best that are not done yet, and mark them as done."""
    entry = windows.entry
    for nth in range(min(windows.policy.k, windows.head[row, SIZE])):
        cell = list_start(windows, row) + nth
        if entry[cell, MARK] & DONE:
            continue  # it keeps its position among the k best
        entry[cell, MARK] |= DONE
        slot, score = entry[cell, SLOT], windows.score[cell]
        index = write_delivery(windows.head, output, row, order, nth + 1, extent)
        output.columns[index, EVENT] = slot
        output.columns[index, HANDLE] = entry[cell, MATCHED]
        output.scores[index] = score
        output.ranks[index] = fresh_rank(
            windows.decay, score, windows.events.us[slot], extent.decided_us
        )


@inlined
def insert_match(windows: RankedWindows, row: int, match: Arrival, last: bool) -> int:
    """Insert a match into the list, and drop the entries that k newer and better ones beat.

    Return its position, or -1 if it can never be chosen. `last` says that no entry of the window
    leaves it later.
    """
    policy = windows.policy
    key = order_key(windows.decay, match.score, windows.events.us[match.slot])
    position = rank_position(windows, row, key, match.slot)
    if policy.capped and position >= policy.k:
        return -1  # nothing ever leaves a capped list before its better ones
    beaten = 0
    if policy.prune:
        if last:
            count_beaten(windows, row, position, policy.k)
        else:
            beaten = count_out_of_order(windows, row, position, match.slot)
            if beaten >= policy.k:
                return -1
    new = RankedEntry(key, match.score, match.slot, match.handle, 2 * beaten)
    insert_entry(windows, row, position, new)
    return position


@inlined
def count_out_of_order(windows: RankedWindows, row: int, position: int, slot: int) -> int:
    """Count the beaten entries where a match is not the last to leave; return how many beat it."""
    entry, axis, k = windows.entry, windows.policy.axis, windows.policy.k
    own, beaten = event_position(windows.events, axis, slot), 0
    # From the back, because a removal shifts the entries behind it.
    for nth in range(windows.head[row, SIZE] - 1, -1, -1):
        cell = list_start(windows, row) + nth
        other = event_position(windows.events, axis, entry[cell, SLOT])
        if nth < position:
            beaten += other >= own
        elif other <= own:
            entry[cell, MARK] += 2
            if entry[cell, MARK] >> 1 >= k:
                remove_entry(windows, row, nth)
    return beaten


@inlined
def choose_ranked(
    windows: RankedWindows, output: Output, row: int, order: int, now_us: int
) -> bool:
    """Choose the k best of the window and deliver the new ones; return whether there were enough.

    With `leave`, the list holds only what is not delivered yet, and the chosen entries leave it.
    """
    head, policy = windows.head, windows.policy
    size, held = head[row, SIZE], head[row, HELD]
    if size == 0 or (policy.wait and (size if policy.leave else held) < policy.k):
        return False
    extent = WindowExtent(oldest_us(windows, row), now_us, held, now_us)
    deliver_new(windows, output, row, order, extent)
    if policy.leave:  # the chosen entries are the first ones, so leaving is O(1)
        chosen = min(policy.k, size)
        head[row, FIRST] += chosen
        head[row, SIZE] -= chosen
    return True


# Sliding and continuous windows of many subscribers (PREF Def. 13, TKS 4.3).
#
# An entry that k newer and better matches beat can never be chosen again: all of them stay in the
# window at least as long. Without such entries the k best are the first k of the list. An offer
# costs O(log w + k) on average over any stream, whatever the order of the ranks.


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


# Periodic and jumping windows of many subscribers (PREF Def. 12, TKS Def. 4.3.1).
#
# A period keeps only its k best matches and counts the others. A jumping window is kept as a
# sliding one, from which a choice is made where a step ends.


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


# History-based filtering of many subscribers (PREF Def. 14), where rank alone decides.
#
# Without diversity the divrank of a set is the mean of its ranks, so the best swap drops a member
# of the lowest rank. Means are rounded as in the plain implementation, which can turn members that
# differ by less than the rounding into ties; only members that close to the lowest are tried.

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
