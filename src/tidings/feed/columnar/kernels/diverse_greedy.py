"""Sets that grow greedily in a window that moves on: divrank, maxmin, maxsum and maxavg.

The pair, and each one added, win against all others at their step. So if none of the first p is
gone, and nothing new wins against one of them, they are the first p again; what comes behind is
chosen anew. This holds while ranks do not change, that is, without decay.
"""

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s
from tidings.compiled.ints import int64
from tidings.compiled.jit import nested_inlined, nested_inner
from tidings.compiled.rounding import rounded
from tidings.diversify.kernels.distances import merged_distance, weighted_distance
from tidings.diversify.kernels.greedy import (
    LEAST,
    NEAREST,
    SLACK,
    candidate_value,
    combine_links,
    pair_before,
    pair_weight,
)
from tidings.diversify.protocol import TieOrder
from tidings.feed.columnar.kernels.decay import fresh_rank
from tidings.feed.columnar.kernels.diverse_layout import (
    BASE,
    HELD,
    KEPT,
    RULE,
    SIGMA,
    Traits,
    World,
    kept_from,
)
from tidings.feed.columnar.kernels.layout import K

Pair = tuple[float, int, int]
"""What the best pair so far is worth, and its places; -1 where there is none."""


@nested_inlined
def apart(traits: Traits, one: int, other: int, parts: Float64s) -> float:
    """Give the distance of two events, by their rows of hashes."""
    rows = traits[0]
    if len(rows.weights):
        return weighted_distance(rows, one, other, parts)
    return merged_distance(rows, one, other)


@nested_inlined
def slot_at(world: World, row: int, place: int) -> int:
    """Give the event slot of a place."""
    return world[0][1][world[0][0][row, BASE] + place]


@nested_inlined
def pair_ahead(world: World, row: int, one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Tell whether a pair goes before one of the same value: later, newer member, smaller ids."""
    times, names = world[2][0], world[2][2]
    pair = (slot_at(world, row, one[0]), slot_at(world, row, one[1]))
    before = (slot_at(world, row, other[0]), slot_at(world, row, other[1]))
    return pair_before(TieOrder(names, times, names), pair, before)


@nested_inner
def pairs_with(world: World, row: int, cap: int, span: tuple[int, int, int], best: Pair) -> Pair:
    """Give the better of the best pair and those of one place with all candidates of a span.

    `span` is the place, and from where on others are looked at, but for one, whose pairs were.
    """
    (ranks, _, members, counted, _, _, parts, _, _), sigma = world[5], world[4][2][SIGMA]
    place, first, but = span
    times = world[2][0]
    most, one, two = best
    own, rank, us = members[place], ranks[place], times[slot_at(world, row, place)]
    for other in range(first, cap):
        if counted[other] < 0 or other in (place, but):
            continue
        limit = pair_weight(sigma, rank, ranks[other], 1.0)
        if limit + SLACK < most:
            continue
        if one >= 0 and limit <= most:  # a tie at best, and older
            later = times[slot_at(world, row, one)] + times[slot_at(world, row, two)]
            if us + times[slot_at(world, row, other)] < later:
                continue
        away = apart(world[3], own, members[other], parts)
        weight = rounded(pair_weight(sigma, rank, ranks[other], away))
        if weight > most or (
            weight == most and (one < 0 or pair_ahead(world, row, (place, other), (one, two)))
        ):
            most, one, two = weight, place, other
    return (most, one, two)


@nested_inner
def best_pair(world: World, row: int, cap: int) -> Pair:
    """Give the pair of largest weight: those of the highest rank first, which rule most others out.

    O(w²) at worst, where ranks and distances do not differ.
    """
    ranks, counted, sigma = world[5][0], world[5][3], world[4][2][SIGMA]
    top = int64(-1)
    for place in range(cap):
        if counted[place] >= 0 and (top < 0 or ranks[place] > ranks[top]):
            top = place
    none = int64(-1)
    best = pairs_with(world, row, cap, (top, int64(0), none), (-1.0, none, none))
    for place in range(cap):
        if counted[place] < 0 or place == top:
            continue
        if pair_weight(sigma, ranks[place], ranks[top], 1.0) + SLACK >= best[0]:
            best = pairs_with(world, row, cap, (place, place + 1, top), best)
    return best


@nested_inlined
def set_pair(world: World, row: int, pair: Pair, chosen: Int32s, values: Float64s) -> None:
    """Write a pair down as the first two that are chosen, the older first."""
    times, names = world[2][0], world[2][2]
    one, two = slot_at(world, row, pair[1]), slot_at(world, row, pair[2])
    older = times[one] < times[two] or (times[one] == times[two] and names[one] < names[two])
    chosen[0] = pair[1] if older else pair[2]
    chosen[1] = pair[2] if older else pair[1]
    values[1] = pair[0]


@nested_inlined
def add_link(world: World, place: int, added: int) -> None:
    """Add the link to one that is chosen to those of a candidate (PREF Prop. 1)."""
    ranks, links, members, counted, _, _, parts, _, _ = world[5]
    rule, sigma = world[4][2][RULE], world[4][2][SIGMA]
    link = apart(world[3], members[place], members[added], parts)
    if rule != NEAREST:
        link = pair_weight(sigma, ranks[place], ranks[added], link)
    links[place] = combine_links(int64(rule), links[place], link)
    counted[place] += 1


@nested_inlined
def reach(world: World, place: int) -> float:
    """Give what a candidate is worth at most, whatever its other links are."""
    ranks, links, rule, sigma = world[5][0], world[5][1], world[4][2][RULE], world[4][2][SIGMA]
    if rule == NEAREST:
        return sigma * ranks[place] + (1 - sigma) * min(1.0, links[place])
    return links[place] if rule == LEAST else np.inf


@nested_inlined
def wins(world: World, row: int, one: tuple[float, int], other: tuple[float, int]) -> bool:
    """Tell whether a candidate of this value goes before another; of ties the newer does."""
    if one[0] != other[0]:
        return one[0] > other[0]
    mine, theirs = slot_at(world, row, one[1]), slot_at(world, row, other[1])
    us, names = world[2][0], world[2][2]
    return us[mine] > us[theirs] or (us[mine] == us[theirs] and names[mine] < names[theirs])


@nested_inner
def next_one(world: World, row: int, cap: int, step: int, chosen: Int32s) -> tuple[float, int]:
    """Give the candidate that is worth most to those chosen so far, and its worth.

    Links are added only while a candidate may win by them.
    """
    ranks, links, counted = world[5][0], world[5][1], world[5][3]
    rule, sigma = int64(world[4][2][RULE]), world[4][2][SIGMA]
    best, found = -1.0, -1
    for place in range(cap):
        if counted[place] < 0:
            continue
        while counted[place] < step and reach(world, place) + SLACK >= best:
            add_link(world, place, chosen[counted[place]])
        if counted[place] < step or reach(world, place) + SLACK < best:
            continue
        value = candidate_value(rule, sigma, ranks[place], links[place], step)
        if found < 0 or wins(world, row, (value, place), (best, found)):
            best, found = value, place
    return (best, found)


@nested_inlined
def no_links(world: World, place: int) -> None:
    """Let a candidate begin without links."""
    world[5][1][place] = np.inf if world[4][2][RULE] <= LEAST else 0.0
    world[5][3][place] = 0


@nested_inner
def grow_on(
    world: World, row: int, cap: int, span: tuple[int, int], chosen: Int32s, values: Float64s
) -> None:
    """Choose from one step to another, behind those that are chosen; all others are candidates."""
    counted = world[5][3]
    for step in range(span[0]):
        counted[chosen[step]] = -1
    for place in range(cap):
        if counted[place] >= 0:
            no_links(world, place)
    for step in range(span[0], span[1]):
        values[step], chosen[step] = next_one(world, row, cap, step, chosen)
        counted[chosen[step]] = -1


@nested_inner
def grown(world: World, row: int, cap: int, size: int, chosen: Int32s, values: Float64s) -> None:
    """Choose `size` of all candidates, two at least; the highest rank stands before the worths."""
    values[0] = -np.inf
    for place in range(cap):
        if world[5][3][place] >= 0:
            values[0] = max(values[0], world[5][0][place])
    set_pair(world, row, best_pair(world, row, cap), chosen, values)
    grow_on(world, row, cap, (int64(2), size), chosen, values)


@nested_inner
def wins_at(world: World, row: int, new: int, stand: int, chosen: Int32s, values: Float64s) -> int:
    """Give the step at which a new match wins over one that stands, and put it there; or -1."""
    ranks, links = world[5][0], world[5][1]
    rule, sigma = int64(world[4][2][RULE]), world[4][2][SIGMA]
    no_links(world, new)
    for step in range(stand):
        if step >= 2:
            value = candidate_value(rule, sigma, ranks[new], links[new], step)
            if wins(world, row, (value, new), (values[step], chosen[step])):
                chosen[step], values[step] = new, value
                return step
        add_link(world, new, chosen[step])
    return -1


@nested_inner
def stand_against(world: World, row: int, cap: int, new: int) -> int:
    """Give how many of those that stand still do, the new match among them if it wins."""
    head, first = world[0][0], kept_from(world, row)
    chosen, values = world[1][0][first:], world[1][1][first:]
    ranks, sigma, stand = world[5][0], world[4][2][SIGMA], int64(head[row, KEPT])
    if stand == 0 or new < 0:
        return stand
    lay_place(world, row, new, 0)
    highest = values[0]
    values[0] = max(highest, ranks[new])
    if pair_weight(sigma, ranks[new], highest, 1.0) + SLACK >= values[1]:
        lay_all(world, row, cap)
        old = (values[1], int64(chosen[0]), int64(chosen[1]))
        pair = pairs_with(world, row, cap, (new, int64(0), int64(-1)), old)
        if new in (pair[1], pair[2]):
            set_pair(world, row, pair, chosen, values)
            return 2
    for step in range(stand):
        lay_place(world, row, chosen[step], 0)
    step = wins_at(world, row, new, stand, chosen, values)
    return step + 1 if step >= 0 else stand


@nested_inner
def choose_kept(world: World, row: int, cap: int, new: int) -> bool:
    """Choose from a window that holds two at least, from where the last choice does not stand.

    Without decay. Tells whether the choice is another one.
    """
    head, first = world[0][0], kept_from(world, row)
    chosen, values = world[1][0][first:], world[1][1][first:]
    stood = int64(head[row, KEPT])
    stand = stand_against(world, row, cap, new)
    size = min(int64(world[4][0][K]), int64(head[row, HELD]))
    if stand == size and (new < 0 or (stand == stood and not among(chosen, size, new))):
        return False
    lay_all(world, row, cap)
    if stand == 0:
        grown(world, row, cap, size, chosen, values)
    else:
        grow_on(world, row, cap, (stand, size), chosen, values)
    head[row, KEPT] = size
    return True


@nested_inlined
def among(chosen: Int32s, size: int, place: int) -> bool:
    """Tell whether a place is among the chosen."""
    found = False
    for step in range(size):
        found |= chosen[step] == place
    return found


@nested_inlined
def lay_place(world: World, row: int, place: int, now_us: int) -> None:
    """Lay out a candidate: its fresh rank and its row of hashes."""
    slots, scores, members = world[0][1], world[0][3], world[3][1]
    ranks, rows, counted = world[5][0], world[5][2], world[5][3]
    at = world[0][0][row, BASE] + place
    slot = slots[at]
    ranks[place] = fresh_rank(world[4][1], scores[at], world[2][0][slot], now_us)
    rows[place] = members[slot]
    counted[place] = 0


@nested_inner
def lay_all(world: World, row: int, cap: int) -> None:
    """Lay out all matches of a window, where nothing fades."""
    head, born, counted = world[0][0], world[0][4], world[5][3]
    for place in range(cap):
        counted[place] = -1
        if born[head[row, BASE] + place] > 0:
            lay_place(world, row, place, 0)


@nested_inlined
def forget_step(world: World, row: int, place: int) -> None:
    """Note that a place is given up: those chosen from it on do not stand any more."""
    head, kept, first = world[0][0], world[1][0], kept_from(world, row)
    for step in range(head[row, KEPT]):
        if kept[first + step] == place:
            head[row, KEPT] = step if step >= 2 else 0
