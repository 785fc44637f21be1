"""Greedy sets in a window that moves on: divrank, maxmin, maxsum and maxavg.

    1. the pair of largest weight  sigma * (rank + rank') / 2 + (1 - sigma) * distance
    2. one by one, the candidate of largest value to those chosen so far

The pair, and each candidate that is added, win against all others at their step. So if none of the
first p is gone, and no new match wins against one of them, they are the first p again, and only the
rest is chosen afresh. This holds while ranks do not change, that is, without decay.
"""

from typing import NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s
from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined, inner
from tidings.compiled.rounding import rounded
from tidings.diversify.kernels.distances import row_distance, weighted_distance
from tidings.diversify.kernels.greedy import (
    SLACK,
    candidate_value,
    combine_links,
    pair_before,
    pair_weight,
)
from tidings.diversify.protocol import TieOrder
from tidings.feed.columnar.kernels.diverse_buffer import (
    choice_start,
    is_newer,
    places,
    slot_at,
)
from tidings.feed.columnar.kernels.layout import (
    CHOSEN,
    HELD,
    LAST,
    LEAST,
    NEAREST,
    SLAB,
    DiverseWindows,
    FeatureColumns,
)
from tidings.feed.columnar.kernels.timing import fresh_rank


class BestPair(NamedTuple):
    """The best pair so far: its weight and its places, -1 if there is none."""

    weight: float
    one: int
    two: int


class PairPartners(NamedTuple):
    """The places that one is paired with: a range, counted back from the newest, without one."""

    first: int
    stop: int
    skipped: int  # its pairs were looked at before; -1 if there is none


class ScoredPlace(NamedTuple):
    """A candidate for the next step: its value and its place."""

    value: float
    place: int


@inlined
def distance(features: FeatureColumns, one: int, other: int, partials: Float64s) -> float:
    """Return the distance of two events, by their rows of hashes."""
    rows = features.rows
    if len(rows.weights):
        return weighted_distance(rows, one, other, partials)
    return row_distance(rows, one, other)


@inlined
def prepare_place(windows: DiverseWindows, row: int, place: int, now_us: int) -> None:
    """Make a place a candidate: write its fresh rank and its row of hashes to the scratch."""
    buffer, scratch = windows.buffer, windows.scratch
    cell = buffer.head[row, SLAB] + place
    slot = buffer.slot[cell]
    us = scratch.us[place] = windows.events.us[slot]
    scratch.rank[place] = fresh_rank(windows.decay, buffer.score[cell], us, now_us)
    scratch.features[place] = windows.features.row[slot]
    scratch.linked[place] = 0


@inner
def prepare_all(windows: DiverseWindows, row: int, capacity: int) -> None:
    """Make all matches of a window candidates, where nothing decays."""
    start, mark, linked = (
        windows.buffer.head[row, SLAB],
        windows.buffer.mark,
        windows.scratch.linked,
    )
    for place in range(capacity):
        linked[place] = -1
        if mark[start + place] > 0:
            prepare_place(windows, row, place, 0)


@inlined
def is_pair_ahead(
    windows: DiverseWindows, row: int, one: tuple[int, int], other: tuple[int, int]
) -> bool:
    """Return whether a pair precedes one of equal weight: later, newer member, smaller ids."""
    us, id_order = windows.events.us, windows.events.id_order
    pair = (slot_at(windows, row, one[0]), slot_at(windows, row, one[1]))
    rival = (slot_at(windows, row, other[0]), slot_at(windows, row, other[1]))
    return pair_before(TieOrder(id_order, us, id_order), pair, rival)


@inlined
def place_before(newest: int, back: int, capacity: int) -> int:
    """Return the place that lies `back` places before the newest, around the slab."""
    return newest - back if back <= newest else newest - back + capacity


@inner
def improve_pair(
    windows: DiverseWindows, row: int, place: int, partners: PairPartners, best: BestPair
) -> BestPair:
    """Return the better of `best` and the pairs of one place with the candidates of a range.

    The newest come first, since they win ties.
    """
    scratch, us, sigma = windows.scratch, windows.scratch.us, windows.diversity.sigma
    newest, capacity = int64(windows.buffer.head[row, LAST]), places(windows.buffer, row)
    weight, one, two = best.weight, best.one, best.two
    own, rank = scratch.features[place], scratch.rank[place]
    for back in range(partners.first, partners.stop):
        other = place_before(newest, back, capacity)
        if scratch.linked[other] < 0 or other in (place, partners.skipped):
            continue
        # Distances are at most 1: most pairs are ruled out without computing theirs.
        limit = pair_weight(sigma, rank, scratch.rank[other], 1.0)
        if limit + SLACK < weight:
            continue
        if one >= 0 and limit <= weight and us[place] + us[other] < us[one] + us[two]:
            continue  # a tie at best, which an older pair loses
        apart = distance(windows.features, own, scratch.features[other], scratch.partials)
        new = rounded(pair_weight(sigma, rank, scratch.rank[other], apart))
        if new > weight or (
            new == weight and (one < 0 or is_pair_ahead(windows, row, (place, other), (one, two)))
        ):
            weight, one, two = new, place, other
    return BestPair(weight, one, two)


@inner
def best_pair(windows: DiverseWindows, row: int, capacity: int) -> BestPair:
    """Return the pair of largest weight.

    The pairs of the highest rank come first, since they rule most others out; O(w²) at worst, where
    neither ranks nor distances differ.
    """
    rank, linked, sigma = windows.scratch.rank, windows.scratch.linked, windows.diversity.sigma
    none, newest = int64(-1), int64(windows.buffer.head[row, LAST])
    top = none
    for place in range(capacity):
        if linked[place] >= 0 and (top < 0 or rank[place] > rank[top]):
            top = place
    best = BestPair(-1.0, none, none)
    best = improve_pair(windows, row, top, PairPartners(int64(0), capacity, none), best)
    for back in range(capacity):
        place = place_before(newest, back, capacity)
        if linked[place] < 0 or place == top:
            continue
        # No pair of this place weighs more than one with the highest rank at distance 1.
        if pair_weight(sigma, rank[place], rank[top], 1.0) + SLACK >= best.weight:
            partners = PairPartners(int64(back + 1), capacity, int64(top))
            best = improve_pair(windows, row, place, partners, best)
    return best


@inlined
def set_pair(
    windows: DiverseWindows, row: int, pair: BestPair, chosen: Int32s, values: Float64s
) -> None:
    """Write a pair as the first two that are chosen, the older first."""
    us, id_order = windows.events.us, windows.events.id_order
    one, two = slot_at(windows, row, pair.one), slot_at(windows, row, pair.two)
    older = us[one] < us[two] or (us[one] == us[two] and id_order[one] < id_order[two])
    chosen[0] = pair.one if older else pair.two
    chosen[1] = pair.two if older else pair.one
    values[1] = pair.weight


@inlined
def add_link(windows: DiverseWindows, place: int, added: int) -> None:
    """Combine the links of a candidate with the one to an added place (PREF Prop. 1)."""
    scratch, rule = windows.scratch, windows.diversity.rule
    one, other = scratch.features[place], scratch.features[added]
    link = distance(windows.features, one, other, scratch.partials)
    if rule != NEAREST:
        link = pair_weight(windows.diversity.sigma, scratch.rank[place], scratch.rank[added], link)
    scratch.link[place] = combine_links(rule, scratch.link[place], link)
    scratch.linked[place] += 1


@inlined
def upper_bound(windows: DiverseWindows, place: int) -> float:
    """Return a bound on the value of a candidate, whatever its missing links are."""
    rule, sigma, link = windows.diversity.rule, windows.diversity.sigma, windows.scratch.link
    if rule == NEAREST:
        return sigma * windows.scratch.rank[place] + (1 - sigma) * min(1.0, link[place])
    return link[place] if rule == LEAST else np.inf  # sums grow with every missing link


@inlined
def can_win(windows: DiverseWindows, place: int, best: ScoredPlace) -> bool:
    """Return whether a candidate can precede the best one, whatever its missing links are."""
    bound, us = upper_bound(windows, place), windows.scratch.us
    if bound > best.value:
        return True
    # A tie at best, which an older one loses; SLACK exceeds the rounding of values.
    return bound + SLACK >= best.value and us[place] >= us[best.place]


@inlined
def wins(windows: DiverseWindows, row: int, one: ScoredPlace, other: ScoredPlace) -> bool:
    """Return whether a candidate precedes another: larger value, then newer."""
    if one.value != other.value:
        return one.value > other.value
    slot, rival = slot_at(windows, row, one.place), slot_at(windows, row, other.place)
    return is_newer(windows.events, slot, rival)


@inner
def best_candidate(
    windows: DiverseWindows, row: int, capacity: int, step: int, chosen: Int32s
) -> ScoredPlace:
    """Return the candidate of largest value to the first `step` chosen places.

    Links are added only while the candidate can still win. The newest candidates come first, since
    they win ties: most others are then ruled out by few links.
    """
    scratch, rule, sigma = windows.scratch, windows.diversity.rule, windows.diversity.sigma
    best, newest = ScoredPlace(-1.0, int64(-1)), int64(windows.buffer.head[row, LAST])
    for back in range(capacity):
        place = place_before(newest, back, capacity)
        if scratch.linked[place] < 0:
            continue
        while scratch.linked[place] < step and can_win(windows, place, best):
            add_link(windows, place, chosen[scratch.linked[place]])
        if scratch.linked[place] < step or not can_win(windows, place, best):
            continue
        value = candidate_value(rule, sigma, scratch.rank[place], scratch.link[place], step)
        candidate = ScoredPlace(value, int64(place))
        if best.place < 0 or wins(windows, row, candidate, best):
            best = candidate
    return best


@inlined
def reset_links(windows: DiverseWindows, place: int) -> None:
    """Make a candidate start without links."""
    windows.scratch.link[place] = np.inf if windows.diversity.rule <= LEAST else 0.0
    windows.scratch.linked[place] = 0


@inner
def extend_choice(
    windows: DiverseWindows,
    row: int,
    capacity: int,
    steps: tuple[int, int],
    chosen: Int32s,
    values: Float64s,
) -> None:
    """Choose for a range of steps; the places chosen before them stop being candidates."""
    linked = windows.scratch.linked
    for step in range(steps[0]):
        linked[chosen[step]] = -1
    for place in range(capacity):
        if linked[place] >= 0:
            reset_links(windows, place)
    for step in range(steps[0], steps[1]):
        best = best_candidate(windows, row, capacity, step, chosen)
        values[step], chosen[step] = best.value, best.place
        linked[best.place] = -1


@inner
def choose_greedy(
    windows: DiverseWindows, row: int, capacity: int, size: int, chosen: Int32s, values: Float64s
) -> None:
    """Choose `size` of all candidates, at least two.

    `values[0]` becomes the highest rank of the window, because the first step has no value.
    """
    values[0] = -np.inf
    for place in range(capacity):
        if windows.scratch.linked[place] >= 0:
            values[0] = max(values[0], windows.scratch.rank[place])
    set_pair(windows, row, best_pair(windows, row, capacity), chosen, values)
    extend_choice(windows, row, capacity, (int64(2), size), chosen, values)


@inlined
def insert_winner(
    windows: DiverseWindows, row: int, new: int, valid: int, chosen: Int32s, values: Float64s
) -> int:
    """Put a new match at the first step at which it wins; return that step, or -1."""
    scratch, rule, sigma = windows.scratch, windows.diversity.rule, windows.diversity.sigma
    reset_links(windows, new)
    for step in range(valid):
        # At each step the match has links to just the places that were chosen before.
        if step >= 2:
            value = candidate_value(rule, sigma, scratch.rank[new], scratch.link[new], step)
            candidate = ScoredPlace(value, int64(new))
            if wins(windows, row, candidate, ScoredPlace(values[step], int64(chosen[step]))):
                chosen[step], values[step] = new, value
                return step
        add_link(windows, new, chosen[step])
    return -1


@inlined
def valid_steps(windows: DiverseWindows, row: int, capacity: int, new: int) -> int:
    """Return how many steps of the kept choice are valid, including the new match if it wins."""
    scratch, sigma, start = windows.scratch, windows.diversity.sigma, choice_start(windows, row)
    chosen, values = windows.last.place[start:], windows.last.value[start:]
    valid = int64(windows.buffer.head[row, CHOSEN])
    if valid == 0 or new < 0:
        return valid
    prepare_place(windows, row, new, 0)
    # Never lowered: a highest rank that has left only makes the test below less sharp.
    highest = values[0]
    values[0] = max(highest, scratch.rank[new])
    # Only with a rank this high can the match be part of a better pair.
    if pair_weight(sigma, scratch.rank[new], highest, 1.0) + SLACK >= values[1]:
        prepare_all(windows, row, capacity)
        old = BestPair(values[1], int64(chosen[0]), int64(chosen[1]))
        partners = PairPartners(int64(0), capacity, int64(-1))
        pair = improve_pair(windows, row, new, partners, old)
        if new in (pair.one, pair.two):
            set_pair(windows, row, pair, chosen, values)
            return 2
    for step in range(valid):
        prepare_place(windows, row, chosen[step], 0)
    step = insert_winner(windows, row, new, valid, chosen, values)
    return step + 1 if step >= 0 else valid


@inner
def update_choice(windows: DiverseWindows, row: int, capacity: int, new: int) -> bool:
    """Bring the kept choice of a window of at least two matches up to date.

    `new` is the place of the newest match, or -1. Return whether the choice may have changed.
    """
    head, start = windows.buffer.head, choice_start(windows, row)
    chosen, values = windows.last.place[start:], windows.last.value[start:]
    before = int64(head[row, CHOSEN])
    valid = valid_steps(windows, row, capacity, new)
    size = min(windows.policy.k, int64(head[row, HELD]))
    if valid == size and (new < 0 or (valid == before and not is_among(chosen, size, new))):
        return False
    prepare_all(windows, row, capacity)
    if valid == 0:
        choose_greedy(windows, row, capacity, size, chosen, values)
    else:
        extend_choice(windows, row, capacity, (valid, size), chosen, values)
    head[row, CHOSEN] = size
    return True


@inlined
def is_among(chosen: Int32s, size: int, place: int) -> bool:
    """Return whether a place is among the first `size` chosen."""
    among = False
    for step in range(size):
        among |= chosen[step] == place
    return among


@inlined
def invalidate_from(windows: DiverseWindows, row: int, place: int) -> None:
    """Invalidate the kept choice from a dropped place on; below a pair nothing is kept."""
    head, start = windows.buffer.head, choice_start(windows, row)
    for step in range(head[row, CHOSEN]):
        if windows.last.place[start + step] == place:
            head[row, CHOSEN] = step if step >= 2 else 0
