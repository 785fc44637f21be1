"""Deliveries: rows of an output buffer that ranked and diverse windows share.

A kernel that runs out of room returns with its progress, and the caller makes room and calls again;
so kernels neither allocate nor raise.
"""

from tidings.compiled.array_types import Int64s
from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined
from tidings.feed.columnar.kernels.axis import event_position
from tidings.feed.columnar.kernels.decay import fresh_rank, order_key
from tidings.feed.columnar.kernels.layout import (
    DECIDED,
    DONE,
    EVENT,
    FIRST,
    HANDLE,
    HELD,
    MARK,
    MATCHED,
    NUMBER,
    ORDER,
    OUT,
    POSITION,
    ROW,
    SENT,
    SIZE,
    SLOT,
    START,
    STOP,
    WIDTH,
    Arrival,
    Offers,
    Output,
    RankedWindows,
    WindowExtent,
)
from tidings.feed.columnar.kernels.ranked_list import (
    RankedEntry,
    count_beaten,
    insert_entry,
    list_start,
    rank_position,
    remove_entry,
)
from tidings.feed.columnar.kernels.ring_buffer import oldest_us


@inlined
def arrival_at(offers: Offers, index: int) -> Arrival:
    """Return one of the offers."""
    return Arrival(
        int64(offers.slot[index]),
        offers.score[index],
        int64(offers.handle[index]),
        int64(offers.sequence[index]),
    )


@inlined
def write_delivery(
    head: Int64s, output: Output, row: int, order: int, position: int, extent: WindowExtent
) -> int:
    """Write a delivery but for its event, handle and rank; return its index."""
    columns, index = output.columns, output.progress[OUT]
    head[row, SENT] += 1
    columns[index, ORDER], columns[index, ROW] = order, row
    columns[index, POSITION], columns[index, NUMBER] = position, head[row, SENT]
    columns[index, START], columns[index, STOP] = extent.start_us, extent.stop_us
    columns[index, WIDTH], columns[index, DECIDED] = extent.width, extent.decided_us
    output.progress[OUT] = index + 1
    return index


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
