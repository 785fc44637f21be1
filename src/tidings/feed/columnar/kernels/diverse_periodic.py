"""Periods and steps of windows that diversify: chosen from when they end."""

from tidings.compiled.array_types import Int32s, Int64s
from tidings.compiled.ints import int64
from tidings.compiled.jit import kernel, nested, nested_inlined, nested_inner
from tidings.feed.columnar.kernels.decay import KIND, NONE
from tidings.feed.columnar.kernels.diverse_buffer import (
    Extent,
    drop_below,
    emit,
    everything,
    fewest,
    held_within,
    match_at,
    ready,
    waits,
)
from tidings.feed.columnar.kernels.diverse_choose import Span, choose_span
from tidings.feed.columnar.kernels.diverse_layout import (
    BASE,
    CAP,
    COUNTED,
    END,
    FAR,
    GRADE,
    HELD,
    RULE,
    SEEN,
    VOTES,
    Events,
    World,
    seat_put,
    stands_at,
)
from tidings.feed.columnar.kernels.layout import (
    AXIS,
    DONE,
    ENDS,
    JUMPING,
    LEAVE,
    LENGTH,
    MATCHING,
    NEVER,
    NEXT,
    ORIGIN,
    OUT,
    PUBLISHED,
    STEP,
    STEP_AXIS,
    TIME,
    WINDOW,
    Offers,
    Sink,
)
from tidings.feed.columnar.kernels.ring_buffer import axis_end, has_passed, next_step


@nested_inner
def due(head: Int64s, numbers: Int64s, row: int, now: tuple[int, int]) -> bool:
    """Tell whether now is past the end that a window waits for."""
    end, axis = int64(head[row, END]), int64(numbers[STEP_AXIS])
    return end != NEVER and has_passed(axis, end, int64(head[row, SEEN]), now[0], now[1])


@nested_inner
def ends(world: World, row: int, now: tuple[int, int]) -> tuple[Span, Extent]:
    """Give what a period or a step that ends is chosen from."""
    head, numbers = world[0][0], world[4][0]
    end, axis, step_axis = int64(head[row, END]), int64(numbers[AXIS]), numbers[STEP_AXIS]
    if numbers[WINDOW] != JUMPING:
        oldest, newest, held = held_within(world[0], world[2], row, everything(numbers))
        if step_axis == TIME:
            return (everything(numbers), (end - int64(numbers[STEP]), end, held, end))
        return (everything(numbers), (oldest, newest, held, newest))
    stop = end if axis == step_axis else axis_end(axis, int64(head[row, SEEN]), now[0], now[1])
    span = (axis, stop - int64(numbers[LENGTH]), stop)
    oldest, newest, held = held_within(world[0], world[2], row, span)
    when = end if step_axis == TIME else newest
    return (span, (oldest, when, held, when))


@nested_inner
def settled(world: World, row: int, sent: int) -> bool:
    """Tell whether a window that was chosen from has nothing more to deliver of the same matches.

    What leaves when it is delivered makes room for others. Otherwise the same matches give the same
    choice while their ranks stay, or if only their order counts; and nothing new once all are
    delivered, or are too few.
    """
    head, born, room, numbers = world[0][0], world[0][4], world[0][5], world[4][0]
    if numbers[LEAVE] > 0:
        return sent == 0
    rule = world[4][2][RULE]
    if world[4][1][KIND] == NONE or rule in (COUNTED, VOTES):
        return True
    if waits(head, numbers, row):
        return True
    base = head[row, BASE]
    for place in range(base, base + room[head[row, GRADE], CAP]):
        if born[place] > 0 and not born[place] & DONE:
            return False
    return True


@nested_inner
def oldest_place(world: World, row: int) -> int:
    """Return where the oldest match of a window stands on its axis."""
    head, slots, born, room = world[0][0], world[0][1], world[0][4], world[0][5]
    base, oldest = head[row, BASE], int64(FAR)
    for place in range(base, base + room[head[row, GRADE], CAP]):
        if born[place] > 0:
            on = stands_at(world[2], int64(world[4][0][AXIS]), slots[place], born[place])
            oldest = min(oldest, on)
    return oldest


@nested_inner
def step_on(world: World, row: int, now: tuple[int, int], sent: int) -> None:
    """Set the next step of a window that was chosen from: the next that can deliver something."""
    head, numbers = world[0][0], world[4][0]
    end, step, axis = int64(head[row, END]), int64(numbers[STEP]), int64(numbers[AXIS])
    if head[row, HELD] == 0:
        head[row, END] = NEVER
        return
    head[row, END] = end + step
    if axis != numbers[STEP_AXIS] or axis == MATCHING or not settled(world, row, sent):
        return
    span = (end, step, int64(numbers[LENGTH]))
    passed = int64(now[0] if axis == TIME else now[1])
    head[row, END] = next_step(span, oldest_place(world, row), passed)


@nested_inner
def close(world: World, row: int, span: Span, now: tuple[int, int], sent: int) -> None:
    """Let go what a period held, or what a step leaves behind; set the next end."""
    head, born, room, numbers = world[0][0], world[0][4], world[0][5], world[4][0]
    if numbers[WINDOW] == JUMPING:
        drop_below(world, row, span[1])
        step_on(world, row, now, sent)
        return
    base = head[row, BASE]
    head[row, END] = NEVER
    if not waits(head, numbers, row):
        for place in range(base, base + room[head[row, GRADE], CAP]):
            born[place] = 0
        head[row, HELD] = 0


@nested
def end_what_passed(world: World, sink: Sink, row: int, at: int, now: tuple[int, int]) -> None:
    """Close the period, or take the steps, that now is past."""
    while due(world[0][0], world[4][0], row, now):
        span, extent = ends(world, row, now)
        before = sink[3][OUT]
        if extent[2] > 0:
            size = choose_span(world, row, span, extent[3], fewest(world[4][0]))
            emit(world, sink, row, at, world[5][4][:size], extent)
        close(world, row, span, now, int64(sink[3][OUT] - before))


@nested_inner
def stands_on_step(events: Events, axis: int, slot: int, seen: int) -> int:
    """Give where the newest match stands on the axis of the steps."""
    if axis == TIME:
        return int64(events[0][slot])
    return int64(events[1][slot] if axis == PUBLISHED else seen) - 1


@nested_inlined
def open_end(head: Int64s, events: Events, numbers: Int64s, row: int, slot: int) -> None:
    """Set the end of the period or step that the newest match lies in, if none is open."""
    if head[row, END] == NEVER:
        origin, step = int64(numbers[ORIGIN]), int64(numbers[STEP])
        place = stands_on_step(events, numbers[STEP_AXIS], slot, head[row, SEEN])
        head[row, END] = origin + ((place - origin) // step + 1) * step


@nested_inlined
def note_end(head: Int64s, sink: Sink, row: int, before: int) -> None:
    """Write down an end that was set, so that it can be found when it has passed."""
    end, ends, progress = head[row, END], sink[2], sink[3]
    if end != before and end != NEVER:  # noqa: PLR1714 - compiled
        ends[progress[ENDS], 0] = row
        ends[progress[ENDS], 1] = end
        progress[ENDS] += 1


@kernel
def group_many_diverse(world: World, sink: Sink, offers: Offers) -> None:
    """Offer matches to periodic and jumping windows, likewise."""
    progress = sink[3]
    for at in range(progress[NEXT], len(offers[0])):
        row = int64(offers[0][at])
        progress[NEXT] = at
        if not ready(world, sink, row):
            return
        match, head = match_at(offers, at), world[0][0]
        now_us, before = int64(world[2][0][match[0]]), head[row, END]
        end_what_passed(world, sink, row, at, (now_us, match[3] - 1))
        seat_put(world[0], row, match)
        open_end(head, world[2], world[4][0], row, match[0])
        end_what_passed(world, sink, row, at, (now_us, match[3]))
        note_end(head, sink, row, before)
    progress[NEXT] = len(offers[0])


@kernel
def advance_many_diverse(world: World, sink: Sink, rows: Int32s, us: int, sequence: int) -> None:
    """Say that the stream has come to (us, sequence); stop where the sink has no room left."""
    head, progress = world[0][0], sink[3]
    for at in range(progress[NEXT], len(rows)):
        row = int64(rows[at])
        progress[NEXT] = at
        if progress[OUT] + head[row, HELD] > len(sink[0]):
            return
        before = head[row, END]
        end_what_passed(world, sink, row, at, (us, sequence))
        note_end(world[0][0], sink, row, before)
    progress[NEXT] = len(rows)
