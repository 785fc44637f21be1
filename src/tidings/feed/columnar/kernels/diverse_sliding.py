"""Sliding and continuous windows that diversify: chosen from after every match."""

from tidings.compiled.array_types import Int64s
from tidings.compiled.ints import int64
from tidings.compiled.jit import kernel, nested_inner
from tidings.feed.columnar.kernels.diverse_buffer import (
    Extent,
    begins,
    drop_below,
    emit,
    everything,
    fewest,
    held_within,
    match_at,
    pass_all,
    ready,
    waits,
)
from tidings.feed.columnar.kernels.diverse_choose import choose_span
from tidings.feed.columnar.kernels.diverse_greedy import choose_kept
from tidings.feed.columnar.kernels.diverse_layout import (
    BASE,
    CAP,
    GRADE,
    HELD,
    KEEPS,
    KEPT,
    RULE,
    VOTES,
    World,
    kept_from,
    seat_put,
)
from tidings.feed.columnar.kernels.diverse_lsh import choose_voted, vote_anew, vote_in
from tidings.feed.columnar.kernels.layout import (
    AXIS,
    BEST,
    CONTINUOUS,
    DONE,
    NEXT,
    PUBLISHED,
    WINDOW,
    Match,
    Offers,
    Sink,
)


@nested_inner
def enter(world: World, row: int, match: Match) -> int:
    """Drop what the window leaves behind as a match comes, and add the match.

    Gives its place; -1 if the window had left it behind before it came.
    """
    head, numbers = world[0][0], world[4][0]
    low = begins(world[0][0], world[2], world[4][0], row, match)
    drop_below(world, row, low)
    place = seat_put(world[0], row, match)
    if numbers[AXIS] == PUBLISHED and world[2][1][match[0]] <= low:
        world[0][4][head[row, BASE] + place] = 0
        head[row, HELD] -= 1
        return -1
    if head[row, KEPT] > 0 and world[4][2][RULE] == VOTES:
        vote_in(world, row, place)
    return place


@nested_inner
def whole(world: World, row: int, now_us: int) -> Extent:
    """Give the extent of a choice from all that a window holds."""
    oldest, _, held = held_within(world[0], world[2], row, everything(world[4][0]))
    return (oldest, now_us, held, now_us)


@nested_inner
def choose_again(world: World, sink: Sink, row: int, at: int, new: int, now_us: int) -> None:
    """Choose from a whole window of two at least, by what is kept, and deliver what is new."""
    head, born, room = world[0][0], world[0][4], world[0][5]
    if world[4][2][RULE] == VOTES:
        if head[row, KEPT] == 0:
            vote_anew(world, row)
        size, chosen = choose_voted(world, row, world[5][4]), world[5][4]
    else:
        cap = int64(room[head[row, GRADE], CAP])
        if not choose_kept(world, row, cap, new):
            return
        size, chosen = int64(head[row, KEPT]), world[1][0][kept_from(world, row) :]
    due = 0
    for nth in range(size):
        due += 1 - (born[head[row, BASE] + chosen[nth]] & DONE)
    if due > 0:
        emit(world, sink, row, at, chosen[:size], whole(world, row, now_us))


@nested_inner
def passes(numbers: Int64s) -> bool:
    """Tell whether what is passed over once is never delivered: continuous windows."""
    window = numbers[WINDOW]
    return window == CONTINUOUS or window == BEST  # noqa: PLR1714 - compiled


@nested_inner
def slide(world: World, sink: Sink, row: int, at: int, match: Match) -> bool:
    """Take a match into the window, and choose by what is kept; tell whether that was possible."""
    head = world[0][0]
    new, now_us = enter(world, row, match), int64(world[2][0][match[0]])
    if world[4][2][KEEPS] == 0 or waits(world[0][0], world[4][0], row) or head[row, HELD] < 2:
        head[row, KEPT] = 0
        return False
    stood = head[row, KEPT]
    choose_again(world, sink, row, at, new, now_us)
    if passes(world[4][0]):
        if stood > 0:
            world[0][4][head[row, BASE] + new] |= DONE
        else:
            pass_all(world[0], row)
    return True


@kernel
def slide_many_diverse(world: World, sink: Sink, offers: Offers) -> None:
    """Offer matches to sliding and continuous windows, in order; stop where there is no room left.

    `sink[3]` says where to begin, and where it stopped.
    """
    progress = sink[3]
    for at in range(progress[NEXT], len(offers[0])):
        row = int64(offers[0][at])
        progress[NEXT] = at
        if not ready(world, sink, row):
            return
        match, numbers = match_at(offers, at), world[4][0]
        if slide(world, sink, row, at, match):
            continue
        now_us, passing = int64(world[2][0][match[0]]), passes(numbers)
        if not (passing and waits(world[0][0], numbers, row)):
            size = choose_span(world, row, everything(numbers), now_us, fewest(numbers))
            extent = whole(world, row, now_us)
            emit(world, sink, row, at, world[5][4][:size], extent)
            if passing:
                pass_all(world[0], row)
    progress[NEXT] = len(offers[0])
