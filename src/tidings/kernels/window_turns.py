"""When windows that diversify choose, and from what: the rules of `tidings.window`, in batches."""

from tidings.kernels.fresh import fresh_rank
from tidings.kernels.numbers import int64
from tidings.kernels.policy import kernel, nested, nested_inlined, nested_inner
from tidings.kernels.window_choice import Span, best_first, choose_span, lay_span, newest_first
from tidings.kernels.window_grow import choose_kept, forget_step
from tidings.kernels.window_layout import (
    AT,
    AXIS,
    BEST,
    CONTINUOUS,
    DONE,
    ENDS,
    EVENT,
    EVER,
    HANDLE,
    HISTORY,
    JUMPING,
    LENGTH,
    MATCHING,
    NEVER,
    NEXT,
    NUMBER,
    ORIGIN,
    OUT,
    POSITION,
    PUBLISHED,
    ROW,
    START,
    STEP,
    STEP_AXIS,
    STOP,
    TIME,
    WAIT,
    WHEN,
    WIDTH,
    WINDOW,
    K,
    Match,
    Offers,
    Sink,
)
from tidings.kernels.window_ring import axis_end, has_passed
from tidings.kernels.window_seats import (
    BASE,
    CAP,
    END,
    FAR,
    GRADE,
    HELD,
    KEEPS,
    KEPT,
    LAST,
    RULE,
    SEEN,
    SENT,
    VOTES,
    Events,
    Floats,
    Ids,
    Ints,
    Seats,
    World,
    seat_put,
    seat_ready,
    stands_at,
)
from tidings.kernels.window_swaps import swapped
from tidings.kernels.window_votes import choose_voted, vote_anew, vote_in, vote_out

Book = tuple[Seats, Ints, Floats]
"""The windows, the times of events, and the decay."""
Extent = tuple[int, int, int, int]
"""What a choice is made from: its start, stop and width; and when it was made."""


@nested_inlined
def everything(numbers: Ints) -> Span:
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
def begins(head: Ints, events: Events, numbers: Ints, row: int, match: Match) -> int:
    """Give where the window begins once a match has come."""
    axis, us = int64(numbers[AXIS]), int64(events[0][match[0]])
    if axis == EVER:
        return -FAR
    one_more = 1 if axis == MATCHING else 0
    after = axis_end(axis, int64(head[row, SEEN]), us, match[3])
    return after + one_more - int64(numbers[LENGTH])


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
def emit(book: Book, sink: Sink, row: int, at: int, chosen: Ids, extent: Extent) -> None:
    """Deliver what is chosen and not delivered yet; then it is."""
    (head, slots, handles, scores, born, _, _), us, decay = book
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
def waits(head: Ints, numbers: Ints, row: int) -> bool:
    """Tell whether a window waits until it holds k."""
    return numbers[WAIT] > 0 and head[row, HELD] < numbers[K]


@nested_inner
def fewest(numbers: Ints) -> int:
    """Give how many candidates a choice needs."""
    return int64(numbers[K]) if numbers[WAIT] else 1


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
        size, chosen = int64(head[row, KEPT]), world[1][0][row]
    due = 0
    for nth in range(size):
        due += 1 - (born[head[row, BASE] + chosen[nth]] & DONE)
    if due > 0:
        emit(
            (world[0], world[2][0], world[4][1]),
            sink,
            row,
            at,
            chosen[:size],
            whole(world, row, now_us),
        )


@nested_inner
def passes(numbers: Ints) -> bool:
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


@nested_inner
def due(head: Ints, numbers: Ints, row: int, now: tuple[int, int]) -> bool:
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
def close(world: World, row: int, span: Span) -> None:
    """Let go what a period held, or what a step leaves behind; set the next end."""
    head, born, room, numbers = world[0][0], world[0][4], world[0][5], world[4][0]
    if numbers[WINDOW] == JUMPING:
        drop_below(world, row, span[1])
        head[row, END] = head[row, END] + numbers[STEP] if head[row, HELD] > 0 else NEVER
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
        if extent[2] > 0:
            size = choose_span(world, row, span, extent[3], fewest(world[4][0]))
            emit((world[0], world[2][0], world[4][1]), sink, row, at, world[5][4][:size], extent)
        close(world, row, span)


@nested_inner
def stands_on_step(events: Events, axis: int, slot: int, seen: int) -> int:
    """Give where the newest match stands on the axis of the steps."""
    if axis == TIME:
        return int64(events[0][slot])
    return int64(events[1][slot] if axis == PUBLISHED else seen) - 1


@nested_inlined
def open_end(head: Ints, events: Events, numbers: Ints, row: int, slot: int) -> None:
    """Set the end of the period or step that the newest match lies in, if none is open."""
    if head[row, END] == NEVER:
        origin, step = int64(numbers[ORIGIN]), int64(numbers[STEP])
        place = stands_on_step(events, numbers[STEP_AXIS], slot, head[row, SEEN])
        head[row, END] = origin + ((place - origin) // step + 1) * step


@nested_inlined
def note_end(head: Ints, sink: Sink, row: int, before: int) -> None:
    """Write down an end that was set, so that it can be found when it has passed."""
    end, ends, progress = head[row, END], sink[2], sink[3]
    if end != before and end != NEVER:  # noqa: PLR1714 - compiled
        ends[progress[ENDS], 0] = row
        ends[progress[ENDS], 1] = end
        progress[ENDS] += 1


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
            emit((world[0], world[2][0], world[4][1]), sink, row, at, world[5][4][:size], extent)
            if passing:
                pass_all(world[0], row)
    progress[NEXT] = len(offers[0])


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
            emit((world[0], world[2][0], world[4][1]), sink, row, at, world[5][4][:size], extent)
            pass_all(world[0], row)
    progress[NEXT] = len(offers[0])


@kernel
def advance_many_diverse(world: World, sink: Sink, rows: Ids, us: int, sequence: int) -> None:
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


@kernel
def peek(world: World, row: int, span: Span, now_us: int, least: int, found: Ints) -> int:
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
