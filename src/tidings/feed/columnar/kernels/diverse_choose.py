"""Choices from windows that diversify, from all that is laid out: every diversifier by its rule."""

from typing import Any

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.compiled.ints import int64
from tidings.compiled.jit import nested, nested_inner
from tidings.compiled.rounding import rounded
from tidings.diversify.kernels.cover import Neighbourhoods, Relevance, cover, fitting_cover
from tidings.diversify.kernels.greedy import MEAN
from tidings.diversify.kernels.lsh import count_votes
from tidings.diversify.kernels.optimal import BestSet, SetProblem, best_set
from tidings.diversify.kernels.token_rows import number_hashes
from tidings.diversify.protocol import TieOrder
from tidings.feed.columnar.kernels.decay import order_key
from tidings.feed.columnar.kernels.diverse_greedy import apart, grown, lay_place
from tidings.feed.columnar.kernels.diverse_layout import (
    ALPHA,
    BASE,
    CAP,
    GRADE,
    OPTIMAL,
    RELEVANT,
    RULE,
    SIGMA,
    VOTES,
    Traits,
    World,
    stands_at,
)
from tidings.feed.columnar.kernels.layout import DONE, LEAVE, K

Span = tuple[int, int, int]
"""An axis, and from where to where on it."""
Crowd = tuple[Int64s, Int64s, Float64s, Float64s, Int64s]
"""Of each candidate: place, event slot, rank, key, row of hashes."""
Part = tuple[Float64s, Float64s]
"""The diversifier, and room for partial sums."""


@nested_inner
def lay_span(world: World, row: int, span: Span, now_us: int) -> int:
    """Lay out the candidates of a span; give how many there are.

    With `delivered = "leave"`, what is delivered is no candidate.
    """
    head, slots, born, room = world[0][0], world[0][1], world[0][4], world[0][5]
    counted, leave = world[5][3], world[4][0][LEAVE]
    axis, low, high = span
    base, size = head[row, BASE], 0
    for place in range(room[head[row, GRADE], CAP]):
        counted[place] = -1
        mark = born[base + place]
        if mark == 0 or (leave and mark & DONE):
            continue
        on = stands_at(world[2], axis, slots[base + place], mark)
        if low <= on < high:
            lay_place(world, row, place, now_us)
            size += 1
    return size


@nested
def newest_first(world: World, row: int, size: int) -> Crowd:
    """Give the candidates that are laid out: newer first, then by smaller id."""
    slots, scores, us, names = world[0][1], world[0][3], world[2][0], world[2][2]
    base, cap = world[0][0][row, BASE], world[0][5][world[0][0][row, GRADE], CAP]
    places, at, keys = (
        np.flatnonzero(world[5][3][:cap] >= 0),
        np.empty(size, np.int64),
        np.empty(size),
    )
    by_name = np.argsort(names[slots[base + places]])
    places = places[by_name]
    places = places[np.argsort(-us[slots[base + places]], kind="mergesort")]
    for nth in range(size):
        at[nth] = slots[base + places[nth]]
        keys[nth] = order_key(world[4][1], scores[base + places[nth]], us[at[nth]])
    return (places, at, world[5][0][places], keys, world[5][2][places])


@nested
def best_first(keys: Float64s) -> Int64s:
    """Give the order of candidates by rank; ties stay as they are."""
    return np.argsort(-keys, kind="mergesort")


@nested
def measured(traits: Traits, members: Int64s, parts: Float64s) -> Float64s:
    """Give the distances between candidates."""
    size = len(members)
    matrix = np.zeros((size, size))
    for one in range(size):
        for other in range(one):
            away = apart(traits, members[one], members[other], parts)
            matrix[one, other] = matrix[other, one] = away
    return matrix


@nested
def near_within(matrix: Float64s, alpha: float, near: Neighbourhoods) -> None:
    """List for each candidate the others within alpha."""
    starts, counts, ids, away = near
    for one in range(len(matrix)):
        for other in range(len(matrix)):
            distance = matrix[one, other]
            if other != one and rounded(distance) <= alpha:
                at = starts[one] + counts[one]
                ids[at], away[at] = other, distance
                counts[one] += 1


@nested
def levels_of(matrix: Float64s, levels: Int64s) -> int:
    """Number the different distances, the smallest first; give how many there are."""
    flat = matrix.ravel()
    count = number_hashes(flat.view(np.uint64), levels)
    values, places = np.empty(count), np.empty(count, np.int64)
    for at in range(len(flat)):
        values[levels[at]] = flat[at]
    places[np.argsort(values)] = np.arange(count)
    for at in range(len(flat)):
        levels[at] = places[levels[at]]
    return count


@nested
def near_all(matrix: Float64s, near: Neighbourhoods) -> None:
    """List for each candidate all others, the nearest first; O(n²) where few distances differ."""
    starts, counts, ids, away = near
    size, levels = len(matrix), np.empty(matrix.size, np.int64)
    many = levels_of(matrix, levels)
    heads = np.empty(many + 1, np.int64)
    for one in range(size):
        own = levels[one * size : (one + 1) * size]
        order = np.argsort(own, kind="mergesort") if many > size else by_level(own, heads)
        for other in order:
            if other != one:
                at = starts[one] + counts[one]
                ids[at], away[at] = other, matrix[one, other]
                counts[one] += 1


@nested
def by_level(levels: Int64s, heads: Int64s) -> Int64s:
    """Give the order of small numbers, by counting them."""
    heads[:] = 0
    for level in levels:
        heads[level + 1] += 1
    for level in range(1, len(heads)):
        heads[level] += heads[level - 1]
    order = np.empty(len(levels), np.int64)
    for at in range(len(levels)):
        order[heads[levels[at]]] = at
        heads[levels[at]] += 1
    return order


@nested
def choose_cover(
    matrix: Float64s, ranks: Float64s, order: Int64s, k: int, part: Float64s
) -> Int64s:
    """Cover all candidates; give the k most relevant of the cover, in order of choice."""
    size = len(ranks)
    best, counts, found = np.empty(size, np.int64), np.zeros(size, np.int64), np.arange(size)
    best[order] = np.arange(size)
    near = Neighbourhoods(
        np.arange(size) * size, counts, np.empty(size * size, np.int64), np.empty(size * size)
    )
    worth = Relevance(ranks, best, part[RULE] == RELEVANT)
    if part[ALPHA] < 0:
        near_all(matrix, near)
        count = fitting_cover(near, worth, np.arange(size), k, found)
    else:
        near_within(matrix, part[ALPHA], near)
        count = cover(near, worth, np.arange(size), found)
    limit = np.sort(best[found[:count]])[min(k, count) - 1]
    return found[:count][best[found[:count]] <= limit]


@nested
def choose_by_votes(bands: Any, order: Int64s, k: int) -> Int64s:
    """Give the k candidates of most votes, if they have any; of ties the most relevant."""
    votes = np.empty(len(order), np.int64)
    count_votes(bands, order, votes)
    found = order[np.argsort(-votes[order], kind="mergesort")][:k]
    return found[votes[found] > 0]


@nested
def most_of(square: Float64s, ranks: Float64s, sigma: float, k: int) -> Float64s:
    """Bound what each can bring: its rank and half of its m largest distances, for m < k."""
    most, pairs = np.empty((k, len(ranks))), max(k * (k - 1) // 2, 1)
    for each in range(len(ranks)):
        far, total = -np.sort(-square[each]), 0.0
        for many in range(k):
            most[many, each] = sigma * ranks[each] / k + (1 - sigma) * total / (2 * pairs)
            total += far[many]
    return most


@nested
def choose_best_set(
    square: Float64s, ranks: Float64s, ties: TieOrder, order: Int64s, sigma: float
) -> Int64s:
    """Give as many as `order` holds of largest divrank, starting from those, newest first."""
    best = BestSet(np.sort(order), np.empty(1))
    best_set(
        SetProblem(square, ranks, sigma), ties, most_of(square, ranks, sigma, len(order)), best
    )
    return best.members


@nested
def choose_among(
    traits: Traits, names: Int64s, us: Int64s, crowd: Crowd, k: int, plan: Part
) -> Int64s:
    """Choose at most k of some candidates by covers, votes or sets; fewer than k: best first."""
    _, slots, ranks, keys, members = crowd
    part, parts = plan
    rule, order = part[RULE], best_first(keys)
    if len(slots) < k or rule <= MEAN:
        return order[:k]
    if rule == VOTES:
        return choose_by_votes(traits[2][slots], order, k)
    matrix = measured(traits, members, parts)
    if rule != OPTIMAL:
        return choose_cover(matrix, ranks, order, k, part)
    times = us[slots]
    ties = TieOrder(np.arange(len(slots)), times - times.min(), names[slots])
    found = choose_best_set(matrix, ranks, ties, order[:k], part[SIGMA])
    return found[best_first(keys[found])]


@nested
def choose_span(world: World, row: int, span: Span, now_us: int, least: int) -> int:
    """Choose at most k candidates of a span, and write their places; give how many.

    None if there are fewer candidates than `least`, one at least. Fewer than k: all; grown sets in
    order of choice, others best rank first.
    """
    k, part, chosen = int64(world[4][0][K]), world[4][2], world[5][4]
    size = lay_span(world, row, span, now_us)
    if size < least:
        return 0
    if part[RULE] <= MEAN and min(k, size) > 1:
        cap = int64(world[0][5][world[0][0][row, GRADE], CAP])
        grown(world, row, cap, min(k, size), chosen, world[5][5])
        return min(k, size)
    crowd = newest_first(world, row, size)
    us, names = world[2][0], world[2][2]
    found = choose_among(world[3], names, us, crowd, k, (part, world[5][6]))
    for at in range(len(found)):
        chosen[at] = crowd[0][found[at]]
    return len(found)
