"""Ranks at fan-out: from the subscriptions that match an event to a rank for each subscriber.

What is known of a subscription lies in one record, half a cache line, since an event reaches
thousands of them in no order. Stamps of older epochs count for nothing, so nothing is cleared.
"""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.jit import inner
from tidings.compiled.rounding import rounded

ROW: Final = np.dtype(
    [
        ("worth", np.float64),  # the prefrank, weighed, or the own score
        ("owner", np.int32),  # a subscriber's number, or -1
        ("stamp", np.int32),  # the last epoch in which it matched
        ("first", np.int32),  # of those that it strictly covers
        ("size", np.int32),
    ],
    align=True,
)
PERSON: Final = np.dtype(
    [("stamp", np.int32), ("place", np.int32), ("aggregate", np.int32)], align=True
)
MAX, MEAN, MIN, SUM = range(4)


class Book(NamedTuple):
    """What is known of subscriptions and subscribers, by their numbers."""

    rows: npt.NDArray[Any]
    covered: Int32s  # for each row, the others of its owner that it strictly covers
    people: npt.NDArray[Any]
    epoch: Int32s


class Hits(NamedTuple):
    """Subscriptions by number, of event e from starts[e] to starts[e + 1]; in no order.

    What each is worth is in its record, unless `worths` has it.
    """

    numbers: Int32s
    starts: Int64s
    worths: Float64s


class Ranked(NamedTuple):
    """For each event, from its start to the next: who wants it, how much, and by how many."""

    starts: Int64s
    owners: Int32s
    ranks: Float64s
    errors: Float64s  # of the sums so far
    specific: Int32s  # how many were most specific
    counts: Int32s  # how many matched
    matched: Int32s  # their numbers, owner by owner


@inner
def stamp_rows(book: Book, hits: Hits, event: int) -> int:
    """Begin a new epoch, and stamp what matches in it."""
    epoch = book.epoch[0] + 1
    book.epoch[0] = epoch
    for at in range(hits.starts[event], hits.starts[event + 1]):
        book.rows[hits.numbers[at]]["stamp"] = epoch
    return int(epoch)


@inner
def most_specific(book: Book, row: Any, epoch: int) -> bool:
    """Tell whether a row strictly covers no other that matches (PREF Def. 5)."""
    first = row["first"]
    for at in range(first, first + row["size"]):
        if book.rows[book.covered[at]]["stamp"] == epoch:
            return False
    return True


@inner
def take_in(out: Ranked, place: int, aggregate: int, worth: float) -> None:
    """Let one more most specific subscription count; sums carry their errors (Neumaier)."""
    before = out.ranks[place]
    if out.specific[place] == 0:
        out.ranks[place] = worth
    elif aggregate == MAX:
        out.ranks[place] = max(before, worth)
    elif aggregate == MIN:
        out.ranks[place] = min(before, worth)
    else:
        total = before + worth
        larger, smaller = (before, worth) if before >= worth else (worth, before)
        out.errors[place] += (larger - total) + smaller
        out.ranks[place] = total
    out.specific[place] += 1


@inner
def settle(out: Ranked, place: int, aggregate: int) -> None:
    """Turn what was taken in into a rank."""
    if aggregate == MEAN:
        out.ranks[place] = rounded((out.ranks[place] + out.errors[place]) / out.specific[place])
    elif aggregate == SUM:
        out.ranks[place] = rounded(out.ranks[place] + out.errors[place])


@inner
def place_of(book: Book, owner: int, epoch: int, out: Ranked, size: int) -> int:
    """Give the place of an owner in this epoch; `size`, newly made, if it has none yet."""
    person = book.people[owner]
    if person["stamp"] == epoch:
        return int(person["place"])
    person["stamp"], person["place"] = epoch, size
    out.owners[size] = owner
    out.errors[size] = 0.0
    out.specific[size] = 0
    out.counts[size] = 0
    return size


@inner
def rank_event(book: Book, hits: Hits, event: int, out: Ranked) -> None:
    """Rank one event for each owner of its hits, in order of their first hits.

    The hits are gone through twice: all must be stamped before one is known to be most specific.
    """
    size = start = out.starts[event]
    epoch = stamp_rows(book, hits, event)
    for at in range(hits.starts[event], hits.starts[event + 1]):
        row = book.rows[hits.numbers[at]]
        owner = row["owner"]
        if owner < 0:
            continue
        place = place_of(book, owner, epoch, out, size)
        size = max(size, place + 1)
        out.counts[place] += 1
        if most_specific(book, row, epoch):
            worth = hits.worths[at] if len(hits.worths) > 0 else row["worth"]
            take_in(out, place, book.people[owner]["aggregate"], worth)
    for place in range(start, size):
        settle(out, place, book.people[out.owners[place]]["aggregate"])
    out.starts[event + 1] = size


@inner
def group_hits(book: Book, hits: Hits, event: int, out: Ranked, written: int) -> int:
    """Write the hits of one event owner by owner, behind what is written; give where they end."""
    for place in range(out.starts[event], out.starts[event + 1]):
        book.people[out.owners[place]]["place"] = written
        written += out.counts[place]
    for at in range(hits.starts[event], hits.starts[event + 1]):
        owner = book.rows[hits.numbers[at]]["owner"]
        if owner >= 0:
            place = book.people[owner]["place"]
            out.matched[place] = hits.numbers[at]
            book.people[owner]["place"] = place + 1
    return written


@inner
def rank_events(book: Book, hits: Hits, out: Ranked) -> None:
    """Rank many events, each for the owners of its hits."""
    written = 0
    for event in range(len(hits.starts) - 1):
        rank_event(book, hits, event, out)
        written = group_hits(book, hits, event, out, written)
