"""Sliding and continuous windows of many subscribers (PREF Def. 13, TKS 4.3).

What k newer and better matches have beaten can never be chosen again; without it the k best are
the first k. An offer costs O(log w + k) on average over any stream, whatever the order of ranks.
"""

from tidings.compiled.jit import inlined, kernel
from tidings.feed.columnar.kernels.emit import choose, hand_out_new, take_in
from tidings.feed.columnar.kernels.layout import (
    AXIS,
    BEST,
    CONTINUOUS,
    DONE,
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
    WAIT,
    WINDOW,
    K,
    Match,
    Offers,
    Sink,
    World,
)
from tidings.feed.columnar.kernels.prefetch import expect
from tidings.feed.columnar.kernels.ranked_list import list_ready
from tidings.feed.columnar.kernels.ring_buffer import (
    axis_end,
    place_of,
    ring_expire,
    ring_push,
    ring_ready,
)


@inlined
def slide(world: World, sink: Sink, row: int, at: int, match: Match) -> None:
    """Take a match into the window, and choose."""
    book, events, plan = world
    head, who = book[0], book[3]
    axis, slot = plan[0][AXIS], match[0]
    now_us = events[0][slot]
    head[row, SEEN] += 1
    start = axis_end(axis, head[row, SEEN], now_us, match[3]) - plan[0][LENGTH]
    last = ring_push(book, events, row, slot, axis)
    ring_expire(world, row, start)
    place = -1
    if axis == MATCHING or place_of(events, axis, slot) >= start:
        place = take_in(world, row, match, last)
    chosen = choose(world, sink, row, at, now_us)
    if plan[0][WINDOW] == CONTINUOUS and chosen and place >= plan[0][K]:
        who[head[row, LIST] + head[row, FIRST] + place, MARK] |= DONE


@inlined
def best_ever(world: World, sink: Sink, row: int, at: int, match: Match) -> None:
    """Deliver a match if it is among the k best of all; else nothing is touched."""
    book, events, plan = world
    head, who = book[0], book[3]
    k, now_us = plan[0][K], events[0][match[0]]
    place = take_in(world, row, match, True)
    size = head[row, SIZE]
    if place >= 0 and not (plan[0][WAIT] and size < k):
        oldest = now_us
        for nth in range(size):
            oldest = min(oldest, events[0][who[head[row, LIST] + head[row, FIRST] + nth, SLOT]])
        hand_out_new(world, sink, row, at, (oldest, now_us, size, now_us))
    head[row, SIZE] = min(size, k)


@kernel
def slide_many(world: World, sink: Sink, offers: Offers) -> None:
    """Offer matches in order; stop where a pool or the sink has no room left.

    `sink[3]` says where to begin, and where it stopped.
    """
    book, plan = world[0], world[2]
    rows, slots, scores, handles, sequences = offers
    progress, room = sink[3], len(sink[0])
    for at in range(progress[NEXT], len(rows)):
        row = rows[at]
        progress[NEXT] = at
        expect(book, rows, at)
        if not list_ready(book, row) or progress[OUT] + book[0][row, SIZE] + 1 > room:
            return
        match = (slots[at], scores[at], handles[at], sequences[at])
        if plan[0][WINDOW] == BEST:
            best_ever(world, sink, row, at, match)
        elif ring_ready(book, row):
            slide(world, sink, row, at, match)
        else:
            return
    progress[NEXT] = len(rows)
