"""Relaxed matching where few of many attributes are constrained: predicates listed by attribute.

    tile (8,192 boxes, the greatest total weights first)
      attribute 0   | lows ... | highs ... | position in the tile | weight code |
      attribute 7   | lows ...                                             only those present
      sums          one uint16 per box of the tile

Within a tile the predicates of an attribute are consecutive, so that 64 are compared at once, and
an attribute that an event lacks costs nothing. The weights that hold are added, in codes, to the
sum of their box; boxes whose sum is large enough are scored in float64.
"""

from typing import Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s, Int64s, UInt8s, UInt16s
from tidings.compiled.ints import int64
from tidings.compiled.jit import inner, kernel
from tidings.compiled.rounding import rounded
from tidings.compiled.simd import LANES, lowest_bit, without_lowest
from tidings.index.boxes.kernels.quantize import CodeCuts, CodedEvents, Liveness, code_of, is_alive
from tidings.index.boxes.kernels.score_bounds import MAX_CODES, TINY, is_full, is_over, least_codes
from tidings.index.boxes.kernels.simd_codes import reach, stab
from tidings.index.boxes.kernels.topk_heap import TopkHeaps, topk_offer

TILE: Final = 8192
LOW, HIGH, WEIGHT = range(3)
"""The columns of a predicate's bounds."""

PREDICATES, WEIGHED = range(2)
"""The counters."""


class PredicateRows(NamedTuple):
    """The predicates of box i are those from starts[i] to starts[i + 1], attributes ascending."""

    starts: Int64s
    attributes: Int32s
    bounds: Float64s
    """Low, high and weight."""


class SparseTiles(NamedTuple):
    """The tiles; see the drawing above."""

    places: Int64s
    """Where the predicates of each tile and attribute start; d + 1 per tile."""
    codes: UInt8s
    """All lows, then all highs."""
    positions: UInt16s
    weights: UInt16s
    scales: Float64s
    """Per tile, the codes for a weight of 1.0."""
    most: Float64s
    """Per tile, the greatest total."""
    ids: Int64s
    least_id_onwards: Int64s


class SparseLayout(NamedTuple):
    """The index: tiles and rows in the same order."""

    tiles: SparseTiles
    rows: PredicateRows
    greatest: bool
    """Whether the greatest weight counts, not the sum."""


class SparseTask(NamedTuple):
    """A search: the index, the events, and the results."""

    layout: SparseLayout
    events: CodedEvents
    liveness: Liveness
    best: TopkHeaps
    counters: Int64s


@inner
def row_total(rows: PredicateRows, row: int, greatest: bool) -> float:
    """Return the score of a box, unrounded, if all its predicates hold."""
    total = 0.0
    for predicate in range(rows.starts[row], rows.starts[row + 1]):
        weight = rows.bounds[predicate, WEIGHT]
        total = max(total, weight) if greatest else total + weight
    return total


@kernel
def sparse_totals(rows: PredicateRows, greatest: bool, out: Float64s) -> None:
    """Write the greatest score of each box."""
    for row in range(len(out)):
        out[row] = rounded(row_total(rows, row, greatest))


@inner
def tile_scale(rows: PredicateRows, first: int, last: int, greatest: bool) -> float:
    """Return a scale on which the weights of a box, each rounded up, fit two bytes."""
    most, count = 0.0, 0
    for row in range(first, last):
        most = max(most, row_total(rows, row, greatest))
        count = max(count, rows.starts[row + 1] - rows.starts[row])
    # Rounding up and the extra one of `fill_tile` add at most two codes a predicate.
    return max(0, MAX_CODES - 1 - 2 * count) / most if TINY < most < np.inf else 0.0


@kernel
def fill_tile(
    rows: PredicateRows, cuts: CodeCuts, tiles: SparseTiles, tile: int, first: int, last: int
) -> None:
    """Write the predicates of a tile, with a counting sort by attribute."""
    starts, attributes, bounds = rows.starts, rows.attributes, rows.bounds
    count, size = len(cuts.counts) - 1, len(tiles.positions)
    place = tiles.places[tile * (count + 1) : (tile + 1) * (count + 1)]
    place[0] = starts[first]
    for predicate in range(starts[first], starts[last]):
        place[attributes[predicate] + 1] += 1
    for attribute in range(count):
        place[attribute + 1] += place[attribute]
    # Written backwards: place[attribute + 1] falls from the end of an attribute to its start.
    for row in range(last - 1, first - 1, -1):
        for predicate in range(starts[row + 1] - 1, starts[row] - 1, -1):
            attribute = attributes[predicate]
            place[attribute + 1] -= 1
            target = place[attribute + 1]
            tiles.codes[target] = code_of(cuts, attribute, bounds[predicate, LOW])
            tiles.codes[size + target] = code_of(cuts, attribute, bounds[predicate, HIGH])
            tiles.positions[target] = row - first
            # Rounded up and one more, so that a sum of codes is never below the sum of weights.
            weight = bounds[predicate, WEIGHT] * tiles.scales[tile]
            tiles.weights[target] = int(np.ceil(weight)) + 1
    for attribute in range(count):
        place[attribute] = place[attribute + 1]
    place[count] = starts[last]


@kernel
def fill_sparse(
    rows: PredicateRows, cuts: CodeCuts, tiles: SparseTiles, totals: Float64s, greatest: bool
) -> None:
    """Fill the tiles from rows in the order of their totals."""
    ids, least = tiles.ids, 0
    for tile in range(len(tiles.scales) - 1, -1, -1):
        first, last = tile * TILE, min(len(ids), (tile + 1) * TILE)
        tiles.scales[tile] = tile_scale(rows, first, last, greatest)
        tiles.most[tile] = totals[first]
        least = ids[first] if last == len(ids) else least
        for row in range(first, last):
            least = min(least, ids[row])
        tiles.least_id_onwards[tile] = least
        fill_tile(rows, cuts, tiles, tile, first, last)


@inner
def sparse_score(
    rows: PredicateRows, row: int, events: CodedEvents, event: int, greatest: bool
) -> float:
    """Return the score of a box for an event, or -1 where no predicate holds."""
    bounds = rows.bounds
    total, matches = 0.0, False
    for predicate in range(rows.starts[row], rows.starts[row + 1]):
        attribute = rows.attributes[predicate]
        if (
            bounds[predicate, LOW] <= events.below[event, attribute]
            and events.above[event, attribute] <= bounds[predicate, HIGH]
        ):
            matches = True
            weight = bounds[predicate, WEIGHT] * events.shares[event, attribute]
            total = max(total, weight) if greatest else total + weight
    return rounded(total) if matches else -1.0


@inner
def add_codes(
    layout: SparseLayout, tile: int, events: CodedEvents, event: int, sums: UInt16s
) -> int:
    """Add the codes of the predicates that hold in a tile; return how many were compared."""
    tiles, greatest = layout.tiles, layout.greatest
    positions, weights = tiles.positions, tiles.weights
    count, size, compared = events.below.shape[1], len(positions), 0
    for attribute in range(count):
        start = tiles.places[tile * (count + 1) + attribute]
        end = tiles.places[tile * (count + 1) + attribute + 1]
        # NaN stands for an attribute that the event lacks.
        if start == end or np.isnan(events.below[event, attribute]):
            continue
        compared += end - start
        code = event * (count + 1) + attribute
        below, above = events.below_codes[code], events.above_codes[code]
        for first in range(start, end, LANES):
            mask = stab(tiles.codes, first, size + first, below, above)
            # The lanes behind the last predicate belong to the next attribute.
            if end - first < LANES:
                mask &= ~(int64(-1) << int64(end - first))
            while mask != 0:
                lane = first + lowest_bit(mask)
                mask = without_lowest(mask)
                box, weight = positions[lane], weights[lane]
                sums[box] = max(sums[box], weight) if greatest else sums[box] + weight
    return compared


@inner
def required_codes(task: SparseTask, tile: int, event: int) -> int:
    """Return the codes that a box of a tile needs to enter an event's top k."""
    if not is_full(task.best, event):
        return 1
    worst, peak = task.best.scores[event, 0], task.events.peaks[event]
    return least_codes(worst, peak, task.layout.tiles.scales[tile], 0.0)


@inner
def search_tile(task: SparseTask, tile: int, event: int, sums: UInt16s) -> None:
    """Score the boxes of a tile that may enter an event's top k; reset the sums to 0."""
    layout, ids, counters = task.layout, task.layout.tiles.ids, task.counters
    counters[PREDICATES] += add_codes(layout, tile, task.events, event, sums)
    first, last = tile * TILE, min(len(ids), (tile + 1) * TILE)
    required = required_codes(task, tile, event)
    for block in range(0, last - first, LANES):
        mask = reach(sums, block, required)
        while mask != 0:
            box = block + lowest_bit(mask)
            mask = without_lowest(mask)
            # `required` may have grown since the mask was taken.
            if sums[box] < required or not is_alive(task.liveness, first + box):
                continue
            counters[WEIGHED] += 1
            score = sparse_score(layout.rows, first + box, task.events, event, layout.greatest)
            if score >= 0:
                topk_offer(task.best, event, score, ids[first + box])
                required = required_codes(task, tile, event)
        # Cleared while the line is in the cache, for the next event.
        sums[block : block + LANES] = 0


@kernel
def sparse_many(task: SparseTask) -> None:
    """Answer all events, tile by tile; an event ends when its k-th best beats all that follow."""
    tiles, events, best = task.layout.tiles, task.events, task.best
    sums = np.zeros(TILE, np.uint16)
    for tile in range(len(tiles.scales) if best.scores.shape[1] > 0 else 0):
        most, least_id = tiles.most[tile], tiles.least_id_onwards[tile]
        # Events are the inner loop: the predicates of a tile stay in the cache for all of them.
        for event in range(len(best.sizes)):
            if not is_over(most, least_id, events.peaks[event], best, event):
                search_tile(task, tile, event, sums)
