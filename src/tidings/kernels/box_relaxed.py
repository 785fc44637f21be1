"""Relaxed matching over blocks of 64 subscriptions, those of the greatest total weight first.

The weights of a block are codes too, on a scale of its own: what holds of a subscription weighs at
most its codes plus the block's error. Only those that may come among the k best are weighed again
in float64, attribute by attribute in order.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from tidings.kernels.best import Best, best_offer, best_pop, best_sort
from tidings.kernels.bits import lowest_bit, without_lowest
from tidings.kernels.code_vectors import GROUP, Codes, Few, weigh
from tidings.kernels.codes import NEVER, Cuts, Floats, Ints, code_of, is_free
from tidings.kernels.policy import inner, kernel
from tidings.kernels.rounding import rounded
from tidings.kernels.vectors import LANES

Ids = npt.NDArray[np.int32]
Boxes = tuple[Floats, Floats, Floats]
"""Lows, highs and weights, a row each subscription."""
Blocks = tuple[Codes, Floats, Floats, Floats, Ids, Ids, Floats]
"""Codes; of each block its scale (codes for 1.0), its error in codes, the greatest score within;
the ids in order; the smallest id from each block on; and for each place and attribute low, high
and weight, which an unconstrained attribute has as inf, -inf and 0."""
Events = tuple[Codes, Floats, bool]
"""The codes of all events, the events, and whether the greatest weight counts, not the sum."""
Waiting = tuple[Floats, Ints, Ints]
"""Subscriptions to be weighed exactly, a row each event: minus the most that they may score, and
their places, as a heap; and how many. The most promising first raise the k-th best, and with it
what others must reach: most of them are never weighed."""
Answers = tuple[Floats, Ints, Ints, Ints]
"""A row of scores and of ids for each event, how many it has, and whether its search has ended."""

MANY: Final = 16
"""With more attributes than this, totals differ so little that a search hardly ever ends early: it
pays to let more wait. With fewer, a k-th best that is up to date ends it; only the first stretch,
where most candidates are met, lets them wait."""
FULL: Final = 255
MOST: Final = 65535
TINY: Final = 1e-300
SLACK: Final = 1e-9
ROUNDING: Final = 1e-12

BLOCKS, WEIGHED = range(2)


@inner
def total_weight(boxes: Boxes, id: int, greatest: bool) -> float:
    """Give the score of a subscription if all its predicates hold."""
    low, high, weight = boxes
    total = 0.0
    for each in range(low.shape[1]):
        if not is_free((low, high), id, each):
            total = max(total, weight[id, each]) if greatest else total + weight[id, each]
    return rounded(total)


@inner
def held_weight(packed: Floats, place: int, rows: Floats, row: int, greatest: bool) -> float:
    """Give the score of a subscription for an event, or -1 where no predicate holds."""
    total, held = 0.0, False
    for each in range(rows.shape[1]):  # no branch: half of them would be mispredicted
        inside = packed[place, 3 * each] <= rows[row, each] <= packed[place, 3 * each + 1]
        weight = packed[place, 3 * each + 2] if inside else 0.0
        held |= inside
        total = max(total, weight) if greatest else total + weight
    return rounded(total) if held else -1.0


@kernel
def total_weights(boxes: Boxes, greatest: bool, out: Floats) -> None:
    """Give the greatest score of each subscription."""
    for id in range(len(out)):
        out[id] = total_weight(boxes, id, greatest)


@inner
def heaviest_group(boxes: Boxes, ids: Ids, block: int, scale: float, greatest: bool) -> float:
    """Give the most that a group of attributes weighs in a block, in whole codes or as it is."""
    low, high, weight = boxes
    most = 0.0
    for place in range(block * LANES, min(len(ids), (block + 1) * LANES)):
        id, part = ids[place], 0.0
        for each in range(low.shape[1]):
            if each % GROUP == 0:
                part = 0.0
            if not is_free((low, high), id, each):
                heavy = weight[id, each]
                code = max(1.0, np.rint(heavy * scale)) if scale > 0 else heavy
                part = max(part, code) if greatest else part + code
                most = max(most, part)
    return most


@inner
def block_scale(boxes: Boxes, ids: Ids, block: int, greatest: bool) -> float:
    """Choose the finest scale on which every group of a block fits a byte; 0 for no weight."""
    most = heaviest_group(boxes, ids, block, 0.0, greatest)
    if not TINY < most < np.inf:
        return 0.0
    scale = FULL / most
    while True:
        codes = heaviest_group(boxes, ids, block, scale, greatest)
        if codes <= FULL:
            return scale
        scale *= 0.99 * FULL / codes


@inner
def lay_lane(
    boxes: Boxes, id: int, cuts: Cuts, codes: Codes, first: int, by: tuple[float, bool]
) -> float:
    """Write the codes of one subscription; give what its weights may exceed them by."""
    low, high, weight = boxes
    scale, greatest = by
    error = 0.0
    for each in range(low.shape[1]):
        at = first + each * 3 * LANES
        if is_free((low, high), id, each):
            continue
        codes[at] = code_of(cuts, each, low[id, each])
        codes[at + LANES] = code_of(cuts, each, high[id, each]) - codes[at]
        exact = weight[id, each] * scale
        code = max(1.0, np.rint(exact))
        codes[at + 2 * LANES] = np.uint8(code)
        more = max(0.0, exact - code)
        error = max(error, more) if greatest else error + more
    return error


@inner
def pack(boxes: Boxes, ids: Ids, packed: Floats) -> None:
    """Lay low, high and weight side by side, in the order of the ids."""
    low, high, weight = boxes
    for place in range(len(ids)):
        id = ids[place]
        for each in range(low.shape[1]):
            free = is_free((low, high), id, each)
            packed[place, 3 * each] = np.inf if free else low[id, each]
            packed[place, 3 * each + 1] = -np.inf if free else high[id, each]
            packed[place, 3 * each + 2] = 0.0 if free else weight[id, each]


@kernel
def lay_relaxed(boxes: Boxes, cuts: Cuts, blocks: Blocks, totals: Floats, greatest: bool) -> None:
    """Fill the blocks, whose ids stand in order of their totals; unused lanes hold nothing."""
    codes, scales, errors, bounds, ids, least_ids, packed = blocks
    attributes = boxes[0].shape[1]
    for block in range(len(scales)):
        start = block * attributes * 3 * LANES
        for each in range(attributes):
            for lane in range(LANES):
                at = start + each * 3 * LANES + lane
                codes[at], codes[at + LANES], codes[at + 2 * LANES] = NEVER, 0, 0
        scales[block] = block_scale(boxes, ids, block, greatest)
        by, error = (scales[block], greatest), 0.0
        for place in range(block * LANES, min(len(ids), (block + 1) * LANES)):
            first = start + place % LANES
            lane_error = lay_lane(boxes, ids[place], cuts, codes, first, by)
            error = max(error, lane_error)
        errors[block] = error
        bounds[block] = totals[ids[block * LANES]]
    pack(boxes, ids, packed)
    least = ids[0] if len(ids) > 0 else 0
    for place in range(len(ids) - 1, -1, -1):
        least = ids[place] if place == len(ids) - 1 else min(least, ids[place])
        least_ids[place // LANES] = least


@inner
def least_codes(score: float, scale: float, error: float) -> int:
    """Give what codes must come to, so that the score may be reached; 0 bars only the unmatched."""
    codes = (score - ROUNDING) * (1 - SLACK) * scale - error - SLACK * (1 + error)
    return int(min(max(1.0, np.ceil(codes)), float(MOST)))


@inner
def relaxed_least(blocks: Blocks, block: int, best: Best, size: int) -> int:
    """Give what codes of a block must come to; MOST where none does, 0 where the search ends."""
    _, scales, errors, bounds, _, least_ids, _ = blocks
    scores, ids, row = best
    if size < scores.shape[1]:
        return 1
    worst = scores[row, 0]
    if bounds[block] < worst or (bounds[block] == worst and least_ids[block] > ids[row, 0]):
        return 0
    return least_codes(worst, scales[block], errors[block])


@inner
def relaxed_wait(blocks: Blocks, block: int, few: Few, each: int, waiting: Waiting) -> None:
    """Put the lanes that may come among the best to those that wait."""
    _, scales, errors, bounds, _, _, _ = blocks
    row, mask, sums = few[0][each], few[3][each], few[4]
    heap, size = (waiting[0], waiting[1], row), waiting[2][row]
    while mask != 0:
        lane = lowest_bit(mask)
        mask = without_lowest(mask)
        most = bounds[block]
        if scales[block] > 0:
            most = min(most, (sums[each * LANES + lane] + errors[block]) / scales[block])
        size = best_offer(heap, size, -most, block * LANES + lane)
    waiting[2][row] = size


@inner
def relaxed_weigh(
    blocks: Blocks, events: Events, row: int, waiting: Waiting, answers: Answers, counters: Ints
) -> None:
    """Weigh exactly what waits for an event, the most promising first, until none is."""
    ids, packed = blocks[4], blocks[6]
    _, rows, greatest = events
    best, count = (answers[0], answers[1], row), answers[2][row]
    heap, size = (waiting[0], waiting[1], row), waiting[2][row]
    while size > 0:
        if count == best[0].shape[1]:
            most = -heap[0][row, 0] * (1 + SLACK) + ROUNDING
            if most < best[0][row, 0]:
                break
        place = heap[1][row, 0]
        size = best_pop(heap, size)
        score = held_weight(packed, place, rows, row, greatest)
        counters[WEIGHED] += 1
        if score >= 0:
            count = best_offer(best, count, score, ids[place])
    waiting[2][row], answers[2][row] = 0, count


@inner
def relaxed_ask(blocks: Blocks, block: int, few: Few, answers: Answers) -> bool:
    """Note what each event asks of a block, and where its search ends; say whether one goes on."""
    rows, _, leasts, _, _ = few
    going = False
    for each in range(len(rows)):
        row, leasts[each] = rows[each], MOST
        if answers[3][row] == 0:
            best = (answers[0], answers[1], row)
            leasts[each] = relaxed_least(blocks, block, best, answers[2][row])
            answers[3][row] = leasts[each] == 0
            going |= leasts[each] > 0
    return going


@inner
def relaxed_few(
    blocks: Blocks,
    events: Events,
    few: Few,
    stretch: tuple[int, int],
    found: tuple[Waiting, Answers],
    counters: Ints,
) -> None:
    """Go through a stretch of blocks for 1 or 4 events; note where a search ends."""
    row_codes, rows, greatest = events
    waiting, answers = found
    attributes = rows.shape[1]
    few_rows, starts, leasts, masks, _ = few
    patient = stretch[0] == 0 or attributes > MANY
    room = waiting[0].shape[1] - LANES if patient else 0
    for each in range(len(few_rows)):
        starts[each] = few_rows[each] * attributes
    for block in range(stretch[0], stretch[1]):
        if not relaxed_ask(blocks, block, few, answers):
            break
        span = (block * attributes * 3 * LANES, attributes, greatest)
        weigh(blocks[0], span, row_codes, few)
        counters[BLOCKS] += len(few_rows)
        for each in range(len(few_rows)):
            if masks[each] != 0 and 0 < leasts[each] < MOST:
                relaxed_wait(blocks, block, few, each, waiting)
                if waiting[2][few_rows[each]] > room:
                    relaxed_weigh(blocks, events, few_rows[each], waiting, answers, counters)
    if attributes <= MANY:
        for each in range(len(few_rows)):
            relaxed_weigh(blocks, events, few_rows[each], waiting, answers, counters)


@kernel
def few_of(count: int) -> Few:
    """Make room for so many events that go together."""
    return (
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty(count * LANES, np.uint16),
    )


@kernel
def relaxed_many(
    blocks: Blocks, events: Events, tile: int, waiting: Waiting, answers: Answers, counters: Ints
) -> None:
    """Answer all events, tile by tile of so many blocks, while a tile is in the cache.

    Four events go together while there are four; what is left over goes one by one.
    """
    scores, ids, counts, ended = answers
    total = len(blocks[1]) if scores.shape[1] > 0 else 0
    four, one = few_of(4), few_of(1)
    for start in range(0, total, tile):
        stretch, some = (start, min(total, start + tile)), 0
        for row in range(len(counts)):
            if ended[row] == 0:
                four[0][some] = row
                some += 1
            if some == 4:
                relaxed_few(blocks, events, four, stretch, (waiting, answers), counters)
                some = 0
        for each in range(some):
            one[0][0] = four[0][each]
            relaxed_few(blocks, events, one, stretch, (waiting, answers), counters)
    for row in range(len(counts)):
        relaxed_weigh(blocks, events, row, waiting, answers, counters)
        best_sort((scores, ids, row), counts[row])
