"""Relaxed matching where few of many attributes are constrained: predicates listed by attribute.

Subscriptions stand in tiles, those of the greatest total weight first. Within a tile the predicates
of an attribute follow each other, so that 64 are compared at once, and an attribute that an event
lacks costs nothing. What holds is added up, in codes, where the subscription stands in the tile.
"""

from typing import Final

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s, Int64s, UInt8s, UInt16s
from tidings.compiled.bits import lowest_bit, without_lowest
from tidings.compiled.ints import int64
from tidings.compiled.jit import inner, kernel
from tidings.compiled.rounding import rounded
from tidings.compiled.simd import LANES
from tidings.index.boxes.kernels.quantize import Alive, Asked, Cuts, code_of, is_alive
from tidings.index.boxes.kernels.score_bounds import MOST, TINY, is_full, is_over, least_codes
from tidings.index.boxes.kernels.simd_codes import reach, stab
from tidings.index.boxes.kernels.topk_heap import Found, best_offer

Rows = tuple[Int64s, Int32s, Float64s]
"""Where the predicates of each subscription, in order, start; their attributes; and low, high and
weight of each."""
Tiles = tuple[Int64s, UInt8s, UInt16s, UInt16s, Float64s, Float64s, Int64s, Int64s]
"""Where the predicates of each tile and attribute start; the codes of their lows, then of their
highs; where each stands in the tile, and its weight; of each tile its scale (codes for 1.0), and
the greatest score within; the ids in order; the smallest id from each tile on."""
Held = tuple[Tiles, Rows, bool]
"""Tiles, rows, and whether the greatest weight counts, not the sum."""
Task = tuple[Held, Asked, Alive, Found, Int64s]
"""What is held, what is asked, who lives, what was found, and the counters."""

TILE: Final = 8192

PREDICATES, WEIGHED = range(2)


@kernel
def sparse_totals(rows: Rows, greatest: bool, out: Float64s) -> None:
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
def lay_sparse(rows: Rows, cuts: Cuts, tiles: Tiles, totals: Float64s, greatest: bool) -> None:
    """Fill the tiles from rows in order of their totals; a counting sort by attribute in each."""
    starts, attributes, bounds = rows
    places, codes, stands, weights, scales, greatests, ids, least_ids = tiles
    count, width = len(cuts[1]) - 1, len(stands)
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
def held_predicates(rows: Rows, row: int, asked: Asked, event: int, greatest: bool) -> float:
    """Give the score of a subscription for an event, or -1 where no predicate holds."""
    starts, attributes, bounds = rows
    below, above, shares = asked[2], asked[3], asked[4]
    total, held = 0.0, False
    for at in range(starts[row], starts[row + 1]):
        each = attributes[at]
        if bounds[at, 0] <= below[event, each] and above[event, each] <= bounds[at, 1]:
            held = True
            weight = bounds[at, 2] * shares[event, each]
            total = max(total, weight) if greatest else total + weight
    return rounded(total) if held else -1.0


@inner
def add_up(held: Held, tile: int, asked: Asked, event: int, sums: UInt16s) -> int:
    """Add up the codes of what holds in a tile; give how many predicates were compared."""
    (places, codes, stands, weights, _, _, _, _), _, greatest = held
    below, above = asked[0], asked[1]
    count, width, compared = asked[2].shape[1], len(stands), 0
    for each in range(count):
        start = places[tile * (count + 1) + each]
        end = places[tile * (count + 1) + each + 1]
        if start == end or np.isnan(asked[2][event, each]):
            continue
        compared += end - start
        code = event * (count + 1) + each
        for at in range(start, end, LANES):
            mask = stab(codes, at, width + at, below[code], above[code])
            if end - at < LANES:
                mask &= ~(int64(-1) << int64(end - at))
            while mask != 0:
                lane = at + lowest_bit(mask)
                mask = without_lowest(mask)
                stand, weight = stands[lane], weights[lane]
                sums[stand] = max(sums[stand], weight) if greatest else sums[stand] + weight
    return compared


@inner
def sparse_least(task: Task, tile: int, event: int) -> int:
    """Give what the codes must come to, so that the k-th best may be reached."""
    if not is_full(task[3], event):
        return 1
    return least_codes(task[3][0][event, 0], task[1][5][event], task[0][0][4][tile], 0.0)


@inner
def sparse_tile(task: Task, tile: int, event: int, sums: UInt16s) -> None:
    """Weigh exactly what may come among the best; leave the sums at 0."""
    held, asked, alive, found, counters = task
    tiles, rows, greatest = held
    counters[PREDICATES] += add_up(held, tile, asked, event, sums)
    first, last = tile * TILE, min(len(tiles[6]), (tile + 1) * TILE)
    least = sparse_least(task, tile, event)
    for block in range(0, last - first, LANES):
        mask = reach(sums, block, least)
        while mask != 0:
            lane = block + lowest_bit(mask)
            mask = without_lowest(mask)
            if sums[lane] < least or not is_alive(alive, first + lane):
                continue
            counters[WEIGHED] += 1
            score = held_predicates(rows, first + lane, asked, event, greatest)
            if score >= 0:
                best = (found[0], found[1], event)
                found[2][event] = best_offer(best, found[2][event], score, tiles[6][first + lane])
                least = sparse_least(task, tile, event)
        sums[block : block + LANES] = 0


@kernel
def sparse_many(task: Task) -> None:
    """Answer all events, tile by tile; those whose k-th best beats all that follow are done."""
    tiles, asked, found = task[0][0], task[1], task[3]
    sums = np.zeros(TILE, np.uint16)
    for tile in range(len(tiles[4]) if found[0].shape[1] > 0 else 0):
        for event in range(len(found[2])):
            if not is_over(tiles[5][tile], tiles[7][tile], asked[5][event], found, event):
                sparse_tile(task, tile, event, sums)
