"""Histories that diversify: members that give way to better ones; and looks that change nothing."""

from tidings.compiled.array_types import Int64s
from tidings.compiled.ints import int64
from tidings.compiled.jit import kernel, nested, nested_inner
from tidings.feed.columnar.kernels.diverse_buffer import (
    begins,
    drop_below,
    drop_place,
    emit,
    everything,
    held_within,
    match_at,
    pass_all,
    ready,
    waits,
)
from tidings.feed.columnar.kernels.diverse_choose import (
    Span,
    best_first,
    choose_span,
    lay_span,
    newest_first,
)
from tidings.feed.columnar.kernels.diverse_layout import BASE, HELD, SEEN, World, seat_put
from tidings.feed.columnar.kernels.diverse_swap import swapped
from tidings.feed.columnar.kernels.layout import (
    AXIS,
    HISTORY,
    LENGTH,
    NEXT,
    PUBLISHED,
    WINDOW,
    K,
    Match,
    Offers,
    Sink,
)
from tidings.feed.columnar.kernels.ring_buffer import axis_end


@nested
def list_members(world: World, row: int, span: Span, now_us: int) -> int:
    """Write the members of a history, best rank first; give how many there are."""
    size, chosen = lay_span(world, row, span, now_us), world[5][4]
    crowd = newest_first(world, row, size)
    chosen[:size] = crowd[0][best_first(crowd[3])]
    return size


@nested_inner
def take_place(world: World, row: int, match: Match) -> bool:
    """Take a match into the history, for a free place or for a swap; tell whether it is in."""
    head, born, numbers = world[0][0], world[0][4], world[4][0]
    low = begins(world[0][0], world[2], world[4][0], row, match)
    drop_below(world, row, low)
    full = head[row, HELD] >= numbers[K]
    place = seat_put(world[0], row, match)
    if full:
        size = lay_span(world, row, everything(world[4][0]), int64(world[2][0][match[0]]))
        gone = swapped(world, row, size, place)
        drop_place(world, row, gone)
        if gone == place:
            return False
    if numbers[AXIS] == PUBLISHED and world[2][1][match[0]] <= low:
        born[head[row, BASE] + place] = 0
        head[row, HELD] -= 1
    return full or not waits(world[0][0], world[4][0], row)


@nested_inner
def last_span(world: World, row: int, match: Match) -> Span:
    """Give the span of a window at the moment of a match."""
    head, numbers, now_us = world[0][0], world[4][0], int64(world[2][0][match[0]])
    stop = axis_end(int64(numbers[AXIS]), int64(head[row, SEEN]), now_us, match[3])
    return (int64(numbers[AXIS]), stop - int64(numbers[LENGTH]), stop)


@kernel
def better_many_diverse(world: World, sink: Sink, offers: Offers) -> None:
    """Offer matches to histories, likewise."""
    progress = sink[3]
    for at in range(progress[NEXT], len(offers[0])):
        row = int64(offers[0][at])
        progress[NEXT] = at
        if not ready(world, sink, row):
            return
        match = match_at(offers, at)
        if take_place(world, row, match):
            now_us, span = int64(world[2][0][match[0]]), last_span(world, row, match)
            oldest, _, held = held_within(world[0], world[2], row, span)
            size = list_members(world, row, span, now_us)
            extent = (oldest, now_us, held, now_us)
            emit(world, sink, row, at, world[5][4][:size], extent)
            pass_all(world[0], row)
    progress[NEXT] = len(offers[0])


@kernel
def peek(world: World, row: int, span: Span, now_us: int, least: int, found: Int64s) -> int:
    """Choose from a span, and change nothing; give how many are chosen.

    `found` gets the oldest, the newest and the count of the span. Nothing is chosen from fewer
    candidates than `least`; members of a history are listed.
    """
    found[0], found[1], found[2] = held_within(world[0], world[2], row, span)
    if found[2] == 0:
        return 0
    if world[4][0][WINDOW] == HISTORY:
        return list_members(world, row, span, now_us)
    return choose_span(world, row, span, now_us, least)
