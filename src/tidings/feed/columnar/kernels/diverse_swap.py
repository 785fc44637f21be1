"""Histories that diversify (PREF Def. 14): which member a match takes the place of."""

from tidings.compiled.array_types import Float64s
from tidings.compiled.exact_sum import sum_add, sum_total
from tidings.compiled.jit import nested_inner
from tidings.compiled.rounding import rounded
from tidings.feed.columnar.kernels.diverse_greedy import apart, slot_at
from tidings.feed.columnar.kernels.diverse_layout import SIGMA, World, newer
from tidings.feed.columnar.kernels.layout import STRICT

RANKS, PAIRS, REST = range(2, 5)
"""Which partial sums are of ranks, of distances, and of what is left of them."""


@nested_inner
def sum_without(parts: Float64s, kind: int, size: int, gone: Float64s) -> float:
    """Give one of the sums without some of its numbers, without error."""
    for each in range(size):
        parts[REST, each] = parts[kind, each]
    for number in gone:
        size = sum_add(parts[REST], size, -number)
    return sum_total(parts[REST], size)


@nested_inner
def measure_all(world: World, size: int) -> tuple[int, int]:
    """Add up ranks and distances, and write the distances down if the square has room for them.

    Gives how many parts the sums have.
    """
    ranks, members, parts, square = world[5][0], world[5][2], world[5][6], world[5][7]
    high, far, written = 0, 0, size <= len(square)
    for one in range(size):
        high = sum_add(parts[RANKS], high, ranks[one])
        if written:
            square[one, one] = 0.0
        for other in range(one):
            away = apart(world[3], members[one], members[other], parts)
            if written:
                square[one, other] = square[other, one] = away
            far = sum_add(parts[PAIRS], far, away)
    return (high, far)


@nested_inner
def measure_from(world: World, one: int, size: int, out: Float64s) -> None:
    """Write the distances of one place to all of the first."""
    members, parts = world[5][2], world[5][6]
    for other in range(size):
        away = apart(world[3], members[one], members[other], parts)
        out[other] = away if other != one else 0.0


@nested_inner
def swap_values(world: World, size: int, values: Float64s) -> None:
    """Write the divrank (PREF Def. 10) of all of the first places but each; O(size²).

    Distances that the square has no room for are taken again, so that memory stays O(size).
    """
    ranks, parts, square, sigma = world[5][0], world[5][6], world[5][7], world[4][2][SIGMA]
    row = world[5][5]
    high, far = measure_all(world, size)
    pairs = (size - 1) * (size - 2) // 2
    for out in range(size):
        mean = sum_without(parts, RANKS, high, ranks[out : out + 1]) / (size - 1)
        away = 0.0
        if pairs > 0 and size <= len(square):
            away = sum_without(parts, PAIRS, far, square[out, :size]) / pairs
        elif pairs > 0:
            measure_from(world, out, size, row)
            away = sum_without(parts, PAIRS, far, row[:size]) / pairs
        values[out] = rounded(sigma * mean + (1 - sigma) * away)


@nested_inner
def swapped(world: World, row: int, size: int, new: int) -> int:
    """Give the place that a match takes in a full history, or its own if there is no such swap.

    All places are laid out. Of equal sets the one without the oldest.
    """
    values, best = world[5][1], -1
    swap_values(world, size, values)
    for place in range(size):
        if place == new:
            continue
        older = best >= 0 and newer(world[2], slot_at(world, row, best), slot_at(world, row, place))
        if best < 0 or values[place] > values[best] or (values[place] == values[best] and older):
            best = place
    equal = values[best] == values[new] and not world[4][0][STRICT]
    return best if values[best] > values[new] or equal else new
