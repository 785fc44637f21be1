"""Relaxed matching where few of many attributes are constrained: predicates listed by attribute.

Subscriptions stand in tiles, those of the greatest total weight first. Within a tile the predicates
of an attribute follow each other, so that 64 are compared at once, and an attribute that an event
lacks costs nothing. What holds is added up, in codes, where the subscription stands in the tile.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from tidings.kernels.best import best_offer, best_sort
from tidings.kernels.bits import lowest_bit, without_lowest
from tidings.kernels.code_vectors import Codes, Sums, reach, stab
from tidings.kernels.codes import Cuts, Floats, Ints, code_of
from tidings.kernels.policy import inner, kernel
from tidings.kernels.rounding import rounded
from tidings.kernels.vectors import LANES

Ids = npt.NDArray[np.int32]
Rows = tuple[Ints, Ids, Floats]
"""Where the predicates of each subscription, in order, start; their attributes; and low, high and
weight of each."""
Tiles = tuple[Ints, Codes, Sums, Sums, Floats, Floats, Ids, Ids]
"""Where the predicates of each tile and attribute start; the codes of their lows, then of their
highs; where each stands in the tile, and its weight; of each tile its scale (codes for 1.0), and
the greatest score within; the ids in order; the smallest id from each tile on."""
Events = tuple[Codes, Floats, bool]
Answers = tuple[Floats, Ints, Ints]

TILE: Final = 8192
MOST: Final = 65535
SLACK: Final = 1e-9
ROUNDING: Final = 1e-12
TINY: Final = 1e-300

PREDICATES, WEIGHED = range(2)


@kernel
def sparse_totals(rows: Rows, greatest: bool, out: Floats) -> None:
    """Give the greatest score of each subscription."""
    starts, _, bounds = rows
    for row in range(len(out)):
        total = 0.0
        for at in range(starts[row], starts[row + 1]):
            total = max(total, bounds[at, 2]) if greatest else total + bounds[at, 2]
        out[row] = rounded(total)


@inner
def tile_scale(rows: Rows, first: int, last: int, greatest: bool) -> float:
    """Choose a scale on which the weights of a subscription, rounded up, fit two bytes."""
    starts, _, bounds = rows
    most, count = 0.0, 0
    for row in range(first, last):
        total = 0.0
        for at in range(starts[row], starts[row + 1]):
            total = max(total, bounds[at, 2]) if greatest else total + bounds[at, 2]
        most, count = max(most, total), max(count, starts[row + 1] - starts[row])
    return max(0, MOST - 1 - 2 * count) / most if TINY < most < np.inf else 0.0


@kernel
def lay_sparse(rows: Rows, cuts: Cuts, tiles: Tiles, totals: Floats, greatest: bool) -> None:
    """Fill the tiles from rows in order of their totals; a counting sort by attribute in each."""
    starts, attributes, bounds = rows
    places, codes, stands, weights, scales, greatests, ids, least_ids = tiles
    count, width = len(cuts[1]), len(stands)
    least = 0
    for tile in range(len(scales) - 1, -1, -1):
        first, last = tile * TILE, min(len(ids), (tile + 1) * TILE)
        scales[tile] = tile_scale(rows, first, last, greatest)
        greatests[tile] = totals[first]
        least = ids[first] if last == len(ids) else least
        for row in range(first, last):
            least = min(least, ids[row])
        least_ids[tile] = least
        place = places[tile * (count + 1) : (tile + 1) * (count + 1)]
        place[0] = starts[first]
        for at in range(starts[first], starts[last]):
            place[attributes[at] + 1] += 1
        for each in range(count):
            place[each + 1] += place[each]
        for row in range(last - 1, first - 1, -1):
            for at in range(starts[row + 1] - 1, starts[row] - 1, -1):
                each = attributes[at]
                place[each + 1] -= 1
                target = place[each + 1]
                codes[target] = code_of(cuts, each, bounds[at, 0])
                codes[width + target] = code_of(cuts, each, bounds[at, 1])
                stands[target] = row - first
                weights[target] = int(np.ceil(bounds[at, 2] * scales[tile])) + 1
        for each in range(count):
            place[each] = place[each + 1]
        place[count] = starts[last]


@inner
def held_predicates(rows: Rows, row: int, events: Floats, event: int, greatest: bool) -> float:
    """Give the score of a subscription for an event, or -1 where no predicate holds."""
    starts, attributes, bounds = rows
    total, held = 0.0, False
    for at in range(starts[row], starts[row + 1]):
        if bounds[at, 0] <= events[event, attributes[at]] <= bounds[at, 1]:
            held = True
            total = max(total, bounds[at, 2]) if greatest else total + bounds[at, 2]
    return rounded(total) if held else -1.0


@inner
def add_up(tiles: Tiles, tile: int, events: Events, event: int, sums: Sums) -> int:
    """Add up the codes of what holds in a tile; give how many predicates were compared."""
    places, codes, stands, weights, _, _, _, _ = tiles
    event_codes, rows, greatest = events
    count, width, compared = rows.shape[1], len(stands), 0
    for each in range(count):
        start = places[tile * (count + 1) + each]
        end = places[tile * (count + 1) + each + 1]
        if start == end or np.isnan(rows[event, each]):
            continue
        compared += end - start
        for at in range(start, end, LANES):
            mask = stab(codes, at, width + at, event_codes[event, each])
            if end - at < LANES:
                mask &= (1 << (end - at)) - 1
            while mask != 0:
                lane = at + lowest_bit(mask)
                mask = without_lowest(mask)
                stand, weight = stands[lane], weights[lane]
                sums[stand] = max(sums[stand], weight) if greatest else sums[stand] + weight
    return compared


@inner
def sparse_least(scale: float, full: bool, worst: float) -> int:
    """Give what the codes must come to, so that the k-th best may be reached."""
    if not full:
        return 1
    codes = np.ceil((worst - ROUNDING) * (1 - SLACK) * scale - SLACK)
    return int(min(max(1.0, codes), float(MOST)))


@inner
def sparse_tile(
    held: tuple[Tiles, Rows],
    tile: int,
    asked: tuple[Events, int],
    sums: Sums,
    answers: Answers,
    counters: Ints,
) -> None:
    """Weigh exactly what may come among the best; leave the sums at 0."""
    tiles, rows = held
    events, event = asked
    scores, ids, counts = answers
    best, size = (scores, ids, event), counts[event]
    counters[PREDICATES] += add_up(tiles, tile, events, event, sums)
    first, last = tile * TILE, min(len(tiles[6]), (tile + 1) * TILE)
    for block in range(0, last - first, LANES):
        full = size == scores.shape[1]
        mask = reach(sums, block, sparse_least(tiles[4][tile], full, scores[event, 0]))
        while mask != 0:
            lane = block + lowest_bit(mask)
            mask = without_lowest(mask)
            full = size == scores.shape[1]
            if full and sums[lane] < sparse_least(tiles[4][tile], full, scores[event, 0]):
                continue
            counters[WEIGHED] += 1
            score = held_predicates(rows, first + lane, events[1], event, events[2])
            if score >= 0:
                size = best_offer(best, size, score, tiles[6][first + lane])
        sums[block : block + LANES] = 0
    counts[event] = size


@kernel
def sparse_many(tiles: Tiles, rows: Rows, events: Events, answers: Answers, counters: Ints) -> None:
    """Answer all events, tile by tile; those whose k-th best beats all that follow are done."""
    scores, ids, counts = answers
    sums = np.zeros(TILE, np.uint16)
    total = len(tiles[4]) if scores.shape[1] > 0 else 0
    for tile in range(total):
        bound, least_id = tiles[5][tile], tiles[7][tile]
        for event in range(len(counts)):
            if counts[event] == scores.shape[1]:
                worst = scores[event, 0]
                if bound < worst or (bound == worst and least_id > ids[event, 0]):
                    continue
            sparse_tile((tiles, rows), tile, (events, event), sums, answers, counters)
    for event in range(len(counts)):
        best_sort((scores, ids, event), counts[event])
