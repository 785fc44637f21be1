"""Windows that diversify, in arrays: where their matches lie, and how they come and go.

A row of `head` is one subscriber. Its matches lie in a slab of the pools, a place each; a place
with a born of 0 is free. Slabs come in classes of growing size, listed in `room`. Distances are not
kept: taking one costs some nanoseconds, and a choice that is kept needs few of them.
"""

from typing import Any, Final

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.ints import int64
from tidings.compiled.jit import kernel, nested_inlined, nested_inner
from tidings.diversify.kernels.distances import SortedRows
from tidings.feed.columnar.kernels.compaction import copy_set
from tidings.feed.columnar.kernels.layout import MATCHING, TIME

Seats = tuple[Int64s, Int32s, Int32s, Float64s, Int64s, Int64s, Int64s]
"""head; of each place the event slot, handle, score and born; room; used. Born is twice the number
of the match, plus 1 where it is delivered, or passed over."""
Kept = tuple[Int32s, Float64s, Int32s]
"""The places that were chosen and what they were worth, from `kept_from` of a row on; and of each
place its votes."""
Events = tuple[Int64s, Int64s, Int64s]
"""Of each event slot: published_us, sequence, and a number that sorts as its id does."""
Traits = tuple[SortedRows, Int64s, Any]
"""The hashes of all events, the row of each event slot there, and its bands for LSH."""
Plan = tuple[Int64s, Float64s, Float64s]
"""What the policy says: numbers, the decay, and the diversifier."""
Bench = tuple[Float64s, Float64s, Int64s, Int64s, Int32s, Float64s, Float64s, Float64s, Int64s]
"""Room to work in: of each place the rank, links, row of hashes and how many links there are, or -1
where it is no candidate; what is chosen and its worth; partial sums; a square; winners."""
World = tuple[Seats, Kept, Events, Traits, Plan, Bench]

SEEN, SENT, END, HELD, GRADE, BASE, LAST, KEPT = range(8)
"""`KEPT`: how many of those chosen last still stand; 1 if votes are up to date."""
HEAD_WIDTH: Final = 8
CAP, FREE = range(2)
FAR: Final = 1 << 62
"""Farther than anything on an axis."""

NEAREST, LEAST, SUM, MEAN, COUNTED, RELEVANT, VOTES, OPTIMAL = range(8)
"""How to choose: the rules of `grow`, then covers by counts and by ranks, votes, all sets."""
RULE, SIGMA, ALPHA, KEEPS = range(4)
"""The diversifier: `ALPHA` is negative if it is left open. `KEEPS` is 0 unless a choice starts from
the last one; then it is how many choices each row has room for, or -1 if as many as its slab."""


@nested_inlined
def newer(events: Events, one: int, other: int) -> bool:
    """Tell whether the event of a slot comes before another: newer, then smaller id."""
    us, _, names = events
    return us[one] > us[other] or (us[one] == us[other] and names[one] < names[other])


@nested_inlined
def stands_at(events: Events, axis: int, slot: int, born: int) -> int:
    """Give where a match stands on the axis of the window."""
    if axis == TIME:
        return int64(events[0][slot])
    return (born >> 1) - 1 if axis == MATCHING else int64(events[1][slot]) - 1


@nested_inlined
def kept_from(world: World, row: int) -> int:
    """Return where the choice that a row keeps begins."""
    width = int64(world[4][2][KEEPS])
    return row * width if width > 0 else int64(world[0][0][row, BASE])


@nested_inlined
def seat_ready(seats: Seats, row: int) -> bool:
    """See to it that one more match has a place; say whether the pools had room.

    A window that is as wide as it can ever be has a place, or will have one when it moves on.
    """
    head, room = seats[0], seats[5]
    grade = head[row, GRADE]
    if grade >= 0 and (head[row, HELD] < room[grade, CAP] or grade == len(room) - 1):
        return True
    target = seat_take(seats, grade + 1)
    if target < 0:
        return False
    if grade >= 0:
        seat_move(seats, row, target)
        seat_free(seats, row)
    for place in range(head[row, HELD], room[grade + 1, CAP]):
        seats[4][target + place] = 0
    head[row, BASE], head[row, GRADE] = target, grade + 1
    head[row, LAST] = head[row, HELD] - 1
    head[row, KEPT] = 0
    return True


@nested_inlined
def seat_take(seats: Seats, grade: int) -> int:
    """Give a slab of a class, or -1 if the pools have none."""
    slots, room, used = seats[1], seats[5], seats[6]
    target = room[grade, FREE]
    if target >= 0:
        room[grade, FREE] = slots[target]
    elif used[0] + room[grade, CAP] <= len(slots):
        target = used[0]
        used[0] += room[grade, CAP]
    return target


@nested_inlined
def seat_free(seats: Seats, row: int) -> None:
    """Give the slab back to its class."""
    head, slots, room = seats[0], seats[1], seats[5]
    grade = head[row, GRADE]
    if grade >= 0:
        slots[head[row, BASE]] = room[grade, FREE]
        room[grade, FREE] = head[row, BASE]


@nested_inlined
def seat_move(seats: Seats, row: int, target: int) -> None:
    """Copy a full window to another slab, the oldest first."""
    head, slots, handles, scores, born, room, _ = seats
    base, cap = head[row, BASE], room[head[row, GRADE], CAP]
    for at in range(cap):
        place = (head[row, LAST] + 1 + at) % cap
        slots[target + at] = slots[base + place]
        handles[target + at] = handles[base + place]
        scores[target + at] = scores[base + place]
        born[target + at] = born[base + place]


@nested_inlined
def seat_put(seats: Seats, row: int, match: tuple[int, float, int, int]) -> int:
    """Write a match at the next free place behind the last, of which there is one; give it."""
    head, slots, handles, scores, born, room, _ = seats
    base, cap = head[row, BASE], room[head[row, GRADE], CAP]
    place = head[row, LAST] + 1
    place = place if place < cap else 0
    while born[base + place] > 0:
        place = place + 1 if place + 1 < cap else 0
    head[row, SEEN] += 1
    head[row, HELD] += 1
    head[row, LAST] = place
    slots[base + place] = match[0]
    scores[base + place] = match[1]
    handles[base + place] = match[2]
    born[base + place] = 2 * head[row, SEEN]
    return int64(place)


@kernel
def free_seat(seats: Seats, row: int) -> None:
    """Let all matches of a row go, and its slab."""
    head = seats[0]
    seat_free(seats, row)
    head[row, HELD], head[row, GRADE], head[row, BASE] = 0, -1, 0
    head[row, LAST], head[row, KEPT] = -1, 0


@nested_inner
def shift(seats: Seats, kept: Kept, source: int, target: int) -> None:
    """Copy a place of the pools to another, with what is kept of it."""
    slots, handles, scores, born = seats[1], seats[2], seats[3], seats[4]
    slots[target], handles[target] = slots[source], handles[source]
    scores[target], born[target] = scores[source], born[source]
    places, worths, votes = kept
    if len(places) > 0:
        places[target], worths[target] = places[source], worths[source]
    if len(votes) > 0:
        votes[target] = votes[source]


@kernel
def pack_seats(seats: Seats, kept: Kept, order: Int64s) -> None:
    """Move the slabs together, given the rows in the order of their slabs.

    Of what is kept, those parts that have no place in the slabs are empty.
    """
    head, room, used = seats[0], seats[5], seats[6]
    target = 0
    for row in order:
        grade = head[row, GRADE]
        if grade >= 0:
            for at in range(room[grade, CAP]):
                shift(seats, kept, head[row, BASE] + at, target + at)
            head[row, BASE] = target
            target += room[grade, CAP]
    used[0] = target
    room[:, FREE] = -1


@kernel
def mark_seats(seats: Seats, alive: Int32s) -> None:
    """Mark the event slots that windows still refer to."""
    head, slots, born, room = seats[0], seats[1], seats[4], seats[5]
    for row in range(len(head)):
        if head[row, GRADE] >= 0:
            base = head[row, BASE]
            for place in range(base, base + room[head[row, GRADE], CAP]):
                if born[place] > 0:
                    alive[slots[place]] = 1


@kernel
def copy_seat_sets(seats: Seats, old: Int32s, new: Int32s, used: int) -> int:
    """Copy the sets of matched subscriptions that windows refer to; give how much is used."""
    head, handles, born, room = seats[0], seats[2], seats[4], seats[5]
    for row in range(len(head)):
        if head[row, GRADE] >= 0:
            base = head[row, BASE]
            for place in range(base, base + room[head[row, GRADE], CAP]):
                handle = handles[place]
                if born[place] > 0 and handle < -1:
                    handles[place] = ~used
                    used = copy_set(old, new, handle, used)
    return used
