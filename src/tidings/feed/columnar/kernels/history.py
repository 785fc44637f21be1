"""History-based filtering of many subscribers (PREF Def. 14), where rank alone decides.

Without diversity the divrank of a set is its mean rank, so the best swap drops a member of the
lowest rank. Means are rounded as the plain form rounds them, so only members within that rounding
of the lowest are tried.
"""

from typing import Final

from tidings.compiled.array_types import Float64s
from tidings.compiled.exact_sum import PARTS, mean_without
from tidings.compiled.jit import inlined, kernel
from tidings.feed.columnar.kernels.decay import fresh_rank
from tidings.feed.columnar.kernels.emit import hand_out_new, take_in
from tidings.feed.columnar.kernels.layout import (
    AXIS,
    BORN_MASK,
    FIRST,
    LENGTH,
    LIST,
    MARK,
    MATCHING,
    NEXT,
    OUT,
    SEEN,
    SIZE,
    SLOT,
    STRICT,
    WAIT,
    K,
    Match,
    Offers,
    Sink,
    World,
)
from tidings.feed.columnar.kernels.prefetch import expect
from tidings.feed.columnar.kernels.ranked_list import list_ready, list_remove
from tidings.feed.columnar.kernels.ring_buffer import axis_end, place_of

NEAR: Final = 2e-12
CLOSE: Final = 1e-14


@inlined
def forget_old(world: World, row: int, now_us: int, sequence: int) -> int:
    """Drop the members that the window has left behind; give the place where it starts."""
    book, events, plan = world
    head, who = book[0], book[3]
    axis, length = plan[0][AXIS], plan[0][LENGTH]
    start = axis_end(axis, head[row, SEEN], now_us, sequence) - length
    for nth in range(head[row, SIZE] - 1, -1, -1):
        entry = head[row, LIST] + head[row, FIRST] + nth
        if axis == MATCHING:
            gone = (head[row, SEEN] - (who[entry, MARK] >> 1)) & BORN_MASK >= length
        else:
            gone = place_of(events, axis, who[entry, SLOT]) < start
        if gone:
            list_remove(book, row, nth)
    return start


@inlined
def rank_members(world: World, row: int, now_us: int, ranks: Float64s) -> None:
    """Write the fresh ranks of all members."""
    book, events, plan = world
    head, scores, who = book[0], book[2], book[3]
    base = head[row, LIST] + head[row, FIRST]
    for nth in range(head[row, SIZE]):
        us = events[0][who[base + nth, SLOT]]
        ranks[nth] = fresh_rank(plan[1], scores[base + nth], us, now_us)


@inlined
def older(world: World, row: int, one: int, other: int) -> bool:
    """Tell whether one member is older than another, or as old with a larger id."""
    head, who = world[0][0], world[0][3]
    us, tie = world[1][0], world[1][2]
    base = head[row, LIST] + head[row, FIRST]
    a, b = who[base + one, SLOT], who[base + other, SLOT]
    return us[a] < us[b] or (us[a] == us[b] and tie[a] > tie[b])


@inlined
def best_swap(world: World, row: int, rank: float) -> int:
    """Give the member whose place a match of this rank should take, or -1.

    The scratch holds the ranks of the members; behind them there is room for one more.
    """
    head, plan, ranks = world[0][0], world[2], world[2][2][PARTS:]
    partials, size = plan[2], head[row, SIZE]
    lowest, most = ranks[0], rank
    for nth in range(size):
        lowest = min(lowest, ranks[nth])
        most = max(most, ranks[nth])
    now = mean_without(ranks, size, -1, partials)
    ranks[size] = rank
    found, value, least = -1, 0.0, 0.0
    for nth in range(size):
        if ranks[nth] - lowest > size * (NEAR + CLOSE * most):
            continue
        same = found >= 0 and ranks[nth] == least
        mean = value if same else mean_without(ranks, size + 1, nth, partials)
        if found < 0 or mean > value or (mean == value and older(world, row, nth, found)):
            found, value, least = nth, mean, ranks[nth]
    if value > now or (value == now and not plan[0][STRICT]):
        return found
    return -1


@inlined
def join(world: World, sink: Sink, row: int, at: int, match: Match) -> None:
    """Take the match into the history and deliver what is due, unless it waits for more."""
    book, events, plan = world
    head, who, now_us = book[0], book[3], events[0][match[0]]
    place = take_in(world, row, match, True)
    base, size = head[row, LIST] + head[row, FIRST], head[row, SIZE]
    who[base + place, MARK] = (head[row, SEEN] & BORN_MASK) << 1
    if plan[0][WAIT] and size < plan[0][K]:
        return
    oldest = now_us
    for nth in range(size):
        oldest = min(oldest, events[0][who[base + nth, SLOT]])
    hand_out_new(world, sink, row, at, (oldest, now_us, size, now_us))


@inlined
def better(world: World, sink: Sink, row: int, at: int, match: Match) -> None:
    """Deliver the match for a free place or for a swap, or forget it."""
    book, events, plan = world
    head, now_us = book[0], events[0][match[0]]
    head[row, SEEN] += 1
    start = forget_old(world, row, now_us, match[3])
    if head[row, SIZE] >= plan[0][K]:
        rank_members(world, row, now_us, plan[2][PARTS:])
        rank = fresh_rank(plan[1], match[1], now_us, now_us)
        dropped = best_swap(world, row, rank)
        if dropped < 0:
            return
        list_remove(book, row, dropped)
    axis = plan[0][AXIS]
    if axis == MATCHING or place_of(events, axis, match[0]) >= start:
        join(world, sink, row, at, match)


@kernel
def better_many(world: World, sink: Sink, offers: Offers) -> None:
    """Offer matches in order; stop where a pool or the sink has no room left."""
    book = world[0]
    rows, slots, scores, handles, sequences = offers
    progress, room = sink[3], len(sink[0])
    for at in range(progress[NEXT], len(rows)):
        row = rows[at]
        progress[NEXT] = at
        expect(book, rows, at)
        if not list_ready(book, row) or progress[OUT] + book[0][row, SIZE] + 1 > room:
            return
        if PARTS + book[0][row, SIZE] + 1 > len(world[2][2]):
            return
        match = (slots[at], scores[at], handles[at], sequences[at])
        better(world, sink, row, at, match)
    progress[NEXT] = len(rows)
