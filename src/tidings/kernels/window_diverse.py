"""Windows that diversify, in arrays: matches that come and go, and the distances between them.

A window is a seat of a shelf, a row of places; a place with a born of 0 is free. Distances are kept
as codes, places in a table of the different distances there are, which is short.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tidings.kernels.distances import Rows, merged, weighed
from tidings.kernels.exact_sum import PARTS, sum_add, sum_total
from tidings.kernels.fresh import fresh_rank, order_key
from tidings.kernels.numbers import int64
from tidings.kernels.policy import inlined, inner, kernel
from tidings.kernels.rounding import rounded
from tidings.kernels.window_layout import DONE, MATCHING, TIME
from tidings.kernels.window_upkeep import copy_set

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]

Shelf = tuple[Ids, Ids, Floats, Ints, Any]
"""Of each seat and place: event slot, handle, score, born; of two places the code of how far apart
they are. Born is twice the number of the match, plus 1 where it is delivered."""
Codes = tuple[Ints, Floats, Ints]
"""An open table of codes, the distance of each code, and how many there are."""
Traits = tuple[Rows, Ints]
"""The crowd of all events, and the place of each event slot in it."""
Found = tuple[Ints, Floats, Floats, Ints, Ints, Ints]
"""Of each candidate: place, rank, key, time, name; then what the window holds in all."""

OLDEST, NEWEST, COUNT = range(3)
_SPREAD: Final = 4503599627370497.0


@inlined
def place_on(events: tuple[Ints, Ints], axis: int, slot: int, born: int) -> int:
    """Give where a match stands on the axis of the window."""
    if axis == TIME:
        return int64(events[0][slot])
    return (born >> 1) - 1 if axis == MATCHING else int64(events[1][slot]) - 1


@kernel
def drop_below(shelf: Shelf, seat: int, events: tuple[Ints, Ints], axis: int, low: int) -> int:
    """Drop what stands below `low`; give how many matches are left."""
    slots, born = shelf[0][seat], shelf[3][seat]
    left = 0
    for place in range(len(born)):
        if born[place] > 0:
            if place_on(events, axis, slots[place], born[place]) < low:
                born[place] = 0
            else:
                left += 1
    return left


@kernel
def put(shelf: Shelf, seat: int, last: int, match: tuple[int, float, int, int]) -> int:
    """Write a match at the next free place behind `last`, of which there is one; give it."""
    slots, handles, scores, born = shelf[0], shelf[1], shelf[2], shelf[3]
    size = born.shape[1]
    place = (last + 1) % size
    while born[seat, place] > 0:
        place = (place + 1) % size
    slots[seat, place], scores[seat, place], handles[seat, place], born[seat, place] = match
    return place


@inner
def code_of(codes: Codes, distance: float) -> int:
    """Give the code of a distance; a new one where it has none."""
    table, values, count = codes
    place = int64(distance * _SPREAD) % len(table)
    while table[place] >= 0 and values[table[place]] != distance:
        place = (place + 1) % len(table)
    if table[place] < 0:
        table[place] = count[0]
        values[count[0]] = distance
        count[0] += 1
    return int64(table[place])


@kernel
def code_all(codes: Codes, distances: Floats) -> None:
    """Give distances codes in their order."""
    for each in distances:
        code_of(codes, each)


@kernel
def measure(shelf: Shelf, seat: int, place: int, traits: Traits, codes: Codes) -> None:
    """Take the distances of one match to all others of its window, once."""
    slots, born, apart = shelf[0][seat], shelf[3][seat], shelf[4]
    rows, members = traits
    parts, own = np.empty((2, PARTS)), members[slots[place]]
    for other in range(len(born)):
        if born[other] > 0 and other != place:
            theirs = members[slots[other]]
            away = weighed(rows, own, theirs, parts) if len(rows[4]) else merged(rows, own, theirs)
            code = code_of(codes, away)
            apart[seat, place, other] = code
            apart[seat, other, place] = code
    apart[seat, place, place] = code_of(codes, 0.0)


@kernel
def spell(shelf: Shelf, seat: int, codes: Codes, places: Ints, matrix: Floats) -> None:
    """Write the distances between some places of a window."""
    apart, values = shelf[4][seat], codes[1]
    for one in range(len(places)):
        for other in range(len(places)):
            matrix[one, other] = values[apart[places[one], places[other]]]


@inner
def sort_in(found: Found, at: int) -> None:
    """Move the last of the candidates to where it belongs: newer first, then smaller name."""
    places, times, names = found[0], found[3], found[4]
    place, time, name = places[at], times[at], names[at]
    while at > 0 and (times[at - 1] < time or (times[at - 1] == time and names[at - 1] > name)):
        places[at], times[at], names[at] = places[at - 1], times[at - 1], names[at - 1]
        at -= 1
    places[at], times[at], names[at] = place, time, name


@kernel
def gather(
    shelf: Shelf,
    seat: int,
    last: int,
    events: tuple[Ints, Ints, Ints],
    span: tuple[int, int, int, bool],
    found: Found,
) -> int:
    """List what a window holds, newest first; give how many candidates there are.

    `events` are times, numbers and names; `span` is the axis, from where to where on it, and
    whether what is delivered is no candidate. `last` is where the newest stands, most likely.
    """
    slots, born = shelf[0][seat], shelf[3][seat]
    axis, low, high, leave = span
    places, times, names, held = found[0], found[3], found[4], found[5]
    size, held[COUNT] = 0, 0
    for back in range(len(born)):
        place = (last - back) % len(born)
        if born[place] == 0:
            continue
        on = place_on((events[0], events[1]), axis, slots[place], born[place])
        if on < low or on >= high:
            continue
        us = events[0][slots[place]]
        held[OLDEST] = us if held[COUNT] == 0 else min(held[OLDEST], us)
        held[NEWEST] = us if held[COUNT] == 0 else max(held[NEWEST], us)
        held[COUNT] += 1
        if not (leave and born[place] & DONE):
            places[size], times[size], names[size] = place, us, events[2][slots[place]]
            sort_in(found, size)
            size += 1
    return size


@kernel
def rank_found(
    shelf: Shelf, seat: int, decay: Floats, now_us: int, size: int, found: Found
) -> None:
    """Write the fresh ranks and the keys of the candidates."""
    places, ranks, keys, times = found[0], found[1], found[2], found[3]
    scores = shelf[2][seat]
    for at in range(size):
        score = scores[places[at]]
        ranks[at] = fresh_rank(decay, score, times[at], now_us)
        keys[at] = order_key(decay, score, times[at])


@kernel
def swap_values(matrix: Floats, ranks: Floats, sigma: float, values: Floats) -> None:
    """Write the divrank (PREF Def. 10) of all but each, summed without error."""
    size = len(ranks)
    pairs, parts = (size - 1) * (size - 2) // 2, np.empty((2, PARTS))
    for out in range(size):
        high, far = 0, 0
        for one in range(size):
            if one != out:
                high = sum_add(parts[0], high, ranks[one])
                for other in range(one + 1, size):
                    if other != out:
                        far = sum_add(parts[1], far, matrix[one, other])
        apart = sum_total(parts[1], far) / pairs if pairs > 0 else 0.0
        mean = sum_total(parts[0], high) / (size - 1)
        values[out] = rounded(sigma * mean + (1 - sigma) * apart)


@kernel
def mark_seats(shelf: Shelf, alive: Ids) -> None:
    """Mark the event slots that windows still refer to."""
    slots, born = shelf[0], shelf[3]
    for seat in range(len(born)):
        for place in range(born.shape[1]):
            if born[seat, place] > 0:
                alive[slots[seat, place]] = 1


@kernel
def copy_seat_sets(shelf: Shelf, old: Ids, new: Ids, used: int) -> int:
    """Copy the sets of matched subscriptions that windows refer to; give how much is used."""
    handles, born = shelf[1], shelf[3]
    for seat in range(len(born)):
        for place in range(born.shape[1]):
            handle = handles[seat, place]
            if born[seat, place] > 0 and handle < -1:
                handles[seat, place] = ~used
                used = copy_set(old, new, handle, used)
    return used
