"""What windows that diversify hold: matches that go, spans of them, and what is delivered."""

from tidings.compiled.array_types import Int32s, Int64s
from tidings.compiled.ints import int64
from tidings.compiled.jit import nested_inlined, nested_inner
from tidings.feed.columnar.kernels.decay import fresh_rank
from tidings.feed.columnar.kernels.diverse_choose import Span
from tidings.feed.columnar.kernels.diverse_greedy import forget_step
from tidings.feed.columnar.kernels.diverse_layout import (
    BASE,
    CAP,
    FAR,
    GRADE,
    HELD,
    KEPT,
    LAST,
    RULE,
    SEEN,
    SENT,
    VOTES,
    Events,
    Seats,
    World,
    seat_ready,
    stands_at,
)
from tidings.feed.columnar.kernels.diverse_lsh import vote_out
from tidings.feed.columnar.kernels.layout import (
    AT,
    AXIS,
    DONE,
    EVENT,
    EVER,
    HANDLE,
    HISTORY,
    LENGTH,
    MATCHING,
    NUMBER,
    OUT,
    POSITION,
    ROW,
    START,
    STOP,
    WAIT,
    WHEN,
    WIDTH,
    WINDOW,
    K,
    Match,
    Offers,
    Sink,
)
from tidings.feed.columnar.kernels.ring_buffer import axis_end

Extent = tuple[int, int, int, int]
"""What a choice is made from: its start, stop and width; and when it was made."""


@nested_inlined
def everything(numbers: Int64s) -> Span:
    """Give the span of all matches."""
    return (int64(numbers[AXIS]), int64(-FAR), int64(FAR))


@nested_inner
def drop_place(world: World, row: int, place: int) -> None:
    """Drop a match."""
    head, born = world[0][0], world[0][4]
    if head[row, KEPT] > 0:
        if world[4][2][RULE] == VOTES:
            vote_out(world, row, place)
        else:
            forget_step(world, row, place)
    born[head[row, BASE] + place] = 0
    head[row, HELD] -= 1


@nested_inner
def drop_below(world: World, row: int, low: int) -> None:
    """Drop the matches that stand below a place on the axis of the window.

    Where matches are counted they stand in a ring, the oldest first; a history has gaps.
    """
    head, slots, born, room = world[0][0], world[0][1], world[0][4], world[0][5]
    if head[row, HELD] == 0:
        return
    axis, base, cap = world[4][0][AXIS], head[row, BASE], room[head[row, GRADE], CAP]
    if axis == MATCHING and world[4][0][WINDOW] != HISTORY:
        while head[row, HELD] > 0 and head[row, SEEN] - head[row, HELD] < low:
            oldest = head[row, LAST] - head[row, HELD] + 1
            drop_place(world, row, int64(oldest if oldest >= 0 else oldest + cap))
        return
    for place in range(cap):
        mark = born[base + place]
        if mark > 0 and stands_at(world[2], axis, slots[base + place], mark) < low:
            drop_place(world, row, place)


@nested_inner
def begins(head: Int64s, events: Events, numbers: Int64s, row: int, match: Match) -> int:
    """Give where the window begins once a match has come."""
    axis, us = int64(numbers[AXIS]), int64(events[0][match[0]])
    if axis == EVER:
        return -FAR
    one_more = 1 if axis == MATCHING else 0
    after = axis_end(axis, int64(head[row, SEEN]), us, match[3])
    return after + one_more - int64(numbers[LENGTH])


@nested_inner
def held_within(seats: Seats, events: Events, row: int, span: Span) -> tuple[int, int, int]:
    """Give the times of the oldest and newest match of a span, and how many there are."""
    head, slots, born, room = seats[0], seats[1], seats[4], seats[5]
    axis, low, high = span
    base, oldest, newest, held = head[row, BASE], 0, 0, 0
    if head[row, GRADE] < 0:
        return (0, 0, 0)
    for place in range(base, base + room[head[row, GRADE], CAP]):
        if born[place] == 0:
            continue
        if low <= stands_at(events, axis, slots[place], born[place]) < high:
            us = int64(events[0][slots[place]])
            oldest = us if held == 0 else min(oldest, us)
            newest = us if held == 0 else max(newest, us)
            held += 1
    return (oldest, newest, held)


@nested_inner
def emit(world: World, sink: Sink, row: int, at: int, chosen: Int32s, extent: Extent) -> None:
    """Deliver what is chosen and not delivered yet; then it is."""
    head, slots, handles, scores, born, _, _ = world[0]
    us, decay = world[2][0], world[4][1]
    out, ranks, progress = sink[0], sink[1], sink[3]
    for nth in range(len(chosen)):
        place, to = head[row, BASE] + chosen[nth], progress[OUT]
        if born[place] & DONE:
            continue
        head[row, SENT] += 1
        born[place] |= DONE
        out[to, AT], out[to, ROW], out[to, EVENT] = at, row, slots[place]
        out[to, HANDLE], out[to, POSITION], out[to, NUMBER] = (
            handles[place],
            nth + 1,
            head[row, SENT],
        )
        out[to, START], out[to, STOP], out[to, WIDTH], out[to, WHEN] = extent
        ranks[to] = fresh_rank(decay, scores[place], us[slots[place]], extent[3])
        progress[OUT] = to + 1


@nested_inlined
def pass_all(seats: Seats, row: int) -> None:
    """Mark all matches of a window as done."""
    head, born, room = seats[0], seats[4], seats[5]
    base = head[row, BASE]
    for place in range(base, base + room[head[row, GRADE], CAP]):
        if born[place] > 0:
            born[place] |= DONE


@nested_inner
def waits(head: Int64s, numbers: Int64s, row: int) -> bool:
    """Tell whether a window waits until it holds k."""
    return numbers[WAIT] > 0 and head[row, HELD] < numbers[K]


@nested_inner
def fewest(numbers: Int64s) -> int:
    """Give how many candidates a choice needs."""
    return int64(numbers[K]) if numbers[WAIT] else 1


@nested_inlined
def ready(world: World, sink: Sink, row: int) -> bool:
    """Tell whether the pools, the sink and the bench have room for a match of a row."""
    head, room = world[0][0], world[0][5]
    if not seat_ready(world[0], row) or sink[3][OUT] + head[row, HELD] + 1 > len(sink[0]):
        return False
    return room[head[row, GRADE], CAP] <= len(world[5][0])


@nested_inlined
def match_at(offers: Offers, at: int) -> Match:
    """Give one of the offers."""
    return (int64(offers[1][at]), offers[2][at], int64(offers[3][at]), int64(offers[4][at]))
