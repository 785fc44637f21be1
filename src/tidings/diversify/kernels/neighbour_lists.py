"""Lists of neighbours that change: one comes with its neighbours, or goes from their lists."""

from tidings.compiled.array_types import Bools, Float64s, Int64s
from tidings.compiled.jit import kernel
from tidings.compiled.rounding import rounded

Lists = tuple[Int64s, Float64s, Int64s]
"""Of each slot a row of neighbours and one of how far they are, and how many there are."""


@kernel
def mark_near(apart: Float64s, alpha: float, near: Bools) -> None:
    """Mark what is within alpha, both rounded to 12 decimals."""
    for each in range(len(apart)):
        near[each] = rounded(apart[each]) <= alpha


@kernel
def join_lists(lists: Lists, slot: int, others: Int64s, apart: Float64s) -> None:
    """Give a new slot its neighbours, and them the new slot."""
    ids, away, counts = lists
    counts[slot] = len(others)
    for each in range(len(others)):
        other = others[each]
        ids[slot, each], away[slot, each] = other, apart[each]
        ids[other, counts[other]], away[other, counts[other]] = slot, apart[each]
        counts[other] += 1


@kernel
def leave_lists(lists: Lists, slot: int) -> None:
    """Take a slot out of the lists of its neighbours; the last of each takes its place."""
    ids, away, counts = lists
    for each in range(counts[slot]):
        other = ids[slot, each]
        last = counts[other] - 1
        place = last
        while ids[other, place] != slot:
            place -= 1
        ids[other, place], away[other, place] = ids[other, last], away[other, last]
        counts[other] = last
    counts[slot] = 0
