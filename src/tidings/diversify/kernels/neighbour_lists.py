"""Lists of neighbours that change: a slot arrives with its neighbours, or leaves their lists.

One padded row per slot, so that a list grows in place; rows are widened outside the kernels:

    counts   ids                distances
      3      4  7  9  .  .      .1 .3 .5  .  .       slot 0
      1      0  .  .  .  .      .1  .  .  .  .       slot 4

The relation is symmetric: if j is in the list of i, then i is in the list of j.
"""

from typing import NamedTuple

from tidings.compiled.array_types import Bools, Float64s, Int64s
from tidings.compiled.jit import kernel
from tidings.compiled.rounding import rounded


class PaddedLists(NamedTuple):
    """For each slot a row of neighbours, a row of their distances, and how many there are."""

    ids: Int64s
    distances: Float64s
    counts: Int64s


@kernel
def mark_near(distances: Float64s, alpha: float, near: Bools) -> None:
    """Mark the distances within alpha, both rounded to 12 decimals."""
    for position in range(len(distances)):
        near[position] = rounded(distances[position]) <= alpha


@kernel
def join_lists(lists: PaddedLists, slot: int, others: Int64s, distances: Float64s) -> None:
    """Write the list of a new slot, and append the slot to the lists of its neighbours."""
    ids, apart, counts = lists
    counts[slot] = len(others)
    for position in range(len(others)):
        other, distance = others[position], distances[position]
        ids[slot, position], apart[slot, position] = other, distance
        ids[other, counts[other]], apart[other, counts[other]] = slot, distance
        counts[other] += 1


@kernel
def leave_lists(lists: PaddedLists, slot: int) -> None:
    """Remove a slot from the lists of its neighbours; the last entry of each takes its position.

    The search runs from the end, where a slot stands that arrived late; the lists stay unsorted.
    """
    ids, apart, counts = lists
    for position in range(counts[slot]):
        other = ids[slot, position]
        last = counts[other] - 1
        place = last
        while ids[other, place] != slot:
            place -= 1
        ids[other, place], apart[other, place] = ids[other, last], apart[other, last]
        counts[other] = last
    counts[slot] = 0
