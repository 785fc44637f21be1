"""Sliding and continuous diverse windows: a choice after every match.

The choice is brought up to date where the diversifier allows it, and made from scratch otherwise.
"""

from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined, inner, kernel
from tidings.feed.columnar.kernels.diverse_buffer import add_match, choice_start, places
from tidings.feed.columnar.kernels.diverse_choose import choose_range
from tidings.feed.columnar.kernels.diverse_greedy import update_choice
from tidings.feed.columnar.kernels.diverse_lsh import add_votes, choose_elected, count_all_votes
from tidings.feed.columnar.kernels.diverse_window import (
    deliver_chosen,
    drop_below,
    fewest,
    has_room,
    mark_all_done,
    measure_range,
    waits,
    whole_axis,
    window_start,
)
from tidings.feed.columnar.kernels.emit import arrival_at
from tidings.feed.columnar.kernels.layout import (
    BEST,
    CHOSEN,
    CONTINUOUS,
    DONE,
    HELD,
    NEXT,
    PUBLISHED,
    SLAB,
    VOTES,
    Arrival,
    DiverseWindows,
    Offers,
    Output,
    PolicyCodes,
    SearchCodes,
    WindowExtent,
)


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
    """Return whether a match that is passed over once is never delivered."""
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
