"""Periodic and jumping windows of many subscribers (PREF Def. 12, TKS Def. 4.3.1).

A period keeps its k best, and counts the rest. A jumping window is kept as a sliding one, and
chosen from where a step ends.
"""

from tidings.compiled.array_types import Int32s
from tidings.compiled.jit import inlined, kernel
from tidings.feed.columnar.kernels.emit import choose, hand_out_new, note_end, take_in
from tidings.feed.columnar.kernels.layout import (
    AXIS,
    COUNT,
    END,
    FIRST,
    HELD,
    JUMPING,
    LEAVE,
    LENGTH,
    MATCHING,
    NEVER,
    NEWEST_US,
    NEXT,
    OLDEST_US,
    ORIGIN,
    OUT,
    SEEN,
    SIZE,
    STEP,
    STEP_AXIS,
    TIME,
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
    has_passed,
    next_step,
    place_of,
    ring_cell,
    ring_expire,
    ring_newest_us,
    ring_push,
    ring_ready,
)


@inlined
def close_period(world: World, sink: Sink, row: int, at: int, now: tuple[int, int]) -> None:
    """Deliver the k best of the open period if now is past its end."""
    head, numbers = world[0][0], world[2][0]
    end, timed = head[row, END], numbers[STEP_AXIS] == TIME
    if end == NEVER or not has_passed(numbers[STEP_AXIS], end, head[row, SEEN], now[0], now[1]):
        return
    head[row, END] = NEVER
    count = head[row, COUNT]
    if numbers[WAIT] and count < numbers[K]:
        return
    start = end - numbers[STEP] if timed else head[row, OLDEST_US]
    when = end if timed else head[row, NEWEST_US]
    hand_out_new(world, sink, row, at, (start, when, count, when))
    head[row, COUNT] = head[row, SIZE] = head[row, FIRST] = 0


@inlined
def take_steps(world: World, sink: Sink, row: int, at: int, now: tuple[int, int]) -> None:
    """Choose at every step that now is past, while the window holds something."""
    book, events, plan = world
    head, numbers = book[0], plan[0]
    axis, step_axis = numbers[AXIS], numbers[STEP_AXIS]
    while head[row, END] != NEVER and has_passed(
        step_axis, head[row, END], head[row, SEEN], now[0], now[1]
    ):
        end = head[row, END]
        stop = end if axis == step_axis else axis_end(axis, head[row, SEEN], now[0], now[1])
        ring_expire(world, row, stop - numbers[LENGTH])
        if head[row, HELD] == 0:
            head[row, END] = NEVER
            continue
        when = end if step_axis == TIME else ring_newest_us(book, events, row)
        chosen = choose(world, sink, row, at, when)
        head[row, END] = end + numbers[STEP]
        if axis == step_axis and axis != MATCHING and not (chosen and numbers[LEAVE]):
            # The same choice from the same matches brings nothing new.
            oldest = place_of(events, axis, book[4][ring_cell(book, row, 0)])
            span = (end, numbers[STEP], numbers[LENGTH])
            head[row, END] = next_step(span, oldest, axis_end(axis, 0, now[0] - 1, now[1]))


@inlined
def end_what_passed(world: World, sink: Sink, row: int, at: int, now: tuple[int, int]) -> None:
    """Close the period, or take the steps, that now is past."""
    if world[2][0][WINDOW] == JUMPING:
        take_steps(world, sink, row, at, now)
    else:
        close_period(world, sink, row, at, now)


@inlined
def open_end(world: World, row: int, slot: int) -> None:
    """Set the end of the period or step that the newest match lies in, if none is open."""
    head, numbers, axis = world[0][0], world[2][0], world[2][0][STEP_AXIS]
    if head[row, END] == NEVER:
        place = head[row, SEEN] - 1 if axis == MATCHING else place_of(world[1], axis, slot)
        origin, step = numbers[ORIGIN], numbers[STEP]
        head[row, END] = origin + ((place - origin) // step + 1) * step


@inlined
def add_to_period(world: World, row: int, match: Match) -> None:
    """Count a match, and keep it if it is among the k best."""
    head, us = world[0][0], world[1][0][match[0]]
    if head[row, COUNT] == 0:
        head[row, OLDEST_US] = us
    head[row, NEWEST_US] = us
    head[row, COUNT] += 1
    take_in(world, row, match, True)
    head[row, SIZE] = min(head[row, SIZE], world[2][0][K])


@inlined
def offer_in_period(world: World, sink: Sink, row: int, at: int, match: Match) -> None:
    """End what the match is past, add it, and end what it completes."""
    book, events, plan = world
    head, slot = book[0], match[0]
    now_us, before = events[0][slot], head[row, END]
    end_what_passed(world, sink, row, at, (now_us, match[3] - 1))
    head[row, SEEN] += 1
    if plan[0][WINDOW] == JUMPING:
        last = ring_push(book, events, row, slot, plan[0][AXIS])
        take_in(world, row, match, last)
    else:
        add_to_period(world, row, match)
    open_end(world, row, slot)
    end_what_passed(world, sink, row, at, (now_us, match[3]))
    note_end(world, sink, row, before)


@kernel
def offer_many_in_periods(world: World, sink: Sink, offers: Offers) -> None:
    """Offer matches in order; stop where a pool or the sink has no room left."""
    book, jumping = world[0], world[2][0][WINDOW] == JUMPING
    rows, slots, scores, handles, sequences = offers
    progress, room = sink[3], len(sink[0])
    for at in range(progress[NEXT], len(rows)):
        row = rows[at]
        progress[NEXT] = at
        expect(book, rows, at)
        if not list_ready(book, row) or progress[OUT] + book[0][row, SIZE] + 1 > room:
            return
        if jumping and not ring_ready(book, row):
            return
        match = (slots[at], scores[at], handles[at], sequences[at])
        offer_in_period(world, sink, row, at, match)
    progress[NEXT] = len(rows)


@kernel
def advance_many(world: World, sink: Sink, rows: Int32s, us: int, sequence: int) -> None:
    """Say that the stream has come to (us, sequence); stop where the sink has no room left."""
    head, progress = world[0][0], sink[3]
    for at in range(progress[NEXT], len(rows)):
        row = rows[at]
        progress[NEXT] = at
        if progress[OUT] + head[row, SIZE] > len(sink[0]):
            return
        before = head[row, END]
        end_what_passed(world, sink, row, at, (us, sequence))
        note_end(world, sink, row, before)
    progress[NEXT] = len(rows)
