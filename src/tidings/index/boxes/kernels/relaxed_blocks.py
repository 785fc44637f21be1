"""Relaxed matching over blocks of 64 subscriptions, those of the greatest total weight first.

Codes bound what may be scored (`box_lay`, `weights`): blocks whose bound is below the k-th best are
left out by their directory, subscriptions by their block, and only what is left is weighed in
float64, attribute by attribute in order. The search ends at the first directory from which on no
total reaches the k-th best. Every bound is at least the score, ties and rounding included, so that
nothing is lost.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_types import Float64s, Int64s
from tidings.compiled.bits import lowest_bit, without_lowest
from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined, inner, kernel
from tidings.compiled.rounding import rounded
from tidings.compiled.simd import LANES
from tidings.index.boxes.kernels.quantize import Alive, Asked, is_alive
from tidings.index.boxes.kernels.relaxed_layout import Laid
from tidings.index.boxes.kernels.score_bounds import (
    MOST,
    ROUNDING,
    SLACK,
    is_full,
    is_over,
    least_codes,
    most_score,
)
from tidings.index.boxes.kernels.simd_codes import Few, reach, weigh
from tidings.index.boxes.kernels.topk_heap import Found, best_offer, best_pop

Held = tuple[Laid, Laid, Float64s, Float64s, Int64s, Int64s, Float64s, bool, Laid]
"""Blocks; directories, none where there are too many attributes for them; of each block its
greatest total; from each directory on the greatest total and the smallest id; the ids by place; the
rows by place; whether the greatest weight counts, not the sum; and the middles of the blocks."""
Waiting = tuple[Float64s, Int64s, Int64s]
"""Subscriptions to be weighed exactly, a row each event: minus the most that they may score, and
their places, as a heap; and how many. The most promising first raise the k-th best, and with it
what others must reach: most of them are never weighed."""
Task = tuple[Held, Asked, Alive, Waiting, Found, Int64s]
"""What is held, what is asked, who lives, who waits, what was found, and the counters."""

Ahead = tuple[npt.NDArray[np.uint16], Int64s, Int64s]
"""Room for the sums of the first directories and for counting them in bins; and, a row each event,
the blocks of each directory that are done."""

FIRST: Final = 64
"""In so many directories the promising blocks are looked for."""
FEW: Final = 8
"""With no more directories than this it does not pay."""
AHEAD: Final = 48
"""About so many blocks are promising."""
BINS: Final = 512

BLOCKS, WEIGHED, DIRECTORIES = range(3)


@inlined
def held_weight(packed: Float64s, place: int, asked: Asked, row: int, greatest: bool) -> float:
    """Give the score of a subscription for an event, or -1 where no predicate holds."""
    below, above, shares = asked[2], asked[3], asked[4]
    total, held = 0.0, False
    for each in range(below.shape[1]):  # no branch: half of them would be mispredicted
        low, high = packed[place, 3 * each], packed[place, 3 * each + 1]
        inside = (low <= below[row, each]) & (above[row, each] <= high)
        weight = packed[place, 3 * each + 2] * shares[row, each] if inside else 0.0
        held |= inside
        total = max(total, weight) if greatest else total + weight
    return rounded(total) if held else -1.0


@inlined
def least_of(laid: Laid, at: int, task: Task, row: int) -> int:
    """Give what the codes of a block must come to for an event."""
    found = task[4]
    if not is_full(found, row):
        return 1
    return least_codes(found[0][row, 0], task[1][5][row], laid[1][at], laid[2][at])


@inlined
def let_wait(task: Task, block: int, few: Few, each: int) -> None:
    """Put the lanes that may come among the best to those that wait."""
    (_, scales, errors), bounds = task[0][0], task[0][2]
    waiting = task[3]
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
def weigh_waiting(task: Task, row: int) -> None:
    """Weigh exactly what waits for an event, the most promising first, until none is."""
    held, asked, alive, waiting, found, counters = task
    ids, packed, greatest = held[5], held[6], held[7]
    best, count = (found[0], found[1], row), found[2][row]
    heap, size = (waiting[0], waiting[1], row), waiting[2][row]
    while size > 0:
        if count == best[0].shape[1]:
            most = most_score(-heap[0][row, 0] * (1 + SLACK) + ROUNDING, asked[5][row])
            if most < best[0][row, 0]:
                break
        place = heap[1][row, 0]
        size = best_pop(heap, size)
        counters[WEIGHED] += 1
        if is_alive(alive, place):
            score = held_weight(packed, place, asked, row, greatest)
            if score >= 0:
                count = best_offer(best, count, score, ids[place])
    waiting[2][row], found[2][row] = 0, count


@inlined
def compare(task: Task, laid: Laid, block: int, few: Few, attributes: int) -> None:
    """Weigh a block in codes for the events that go together."""
    asked = task[1]
    span = (block * attributes * 3 * LANES, attributes, task[0][7], asked[6])
    weigh(laid[0], span, (asked[0], asked[1]), few)


@inlined
def ask_directory(task: Task, directory: int, row: int, some: Few) -> None:
    """Compare the rows of a directory with an event."""
    attributes = task[1][2].shape[1]
    some[0][0], some[1][0] = row, row * (attributes + 1)
    some[2][0] = least_of(task[0][1], directory, task, row)
    compare(task, task[0][1], directory, some, attributes + 1)
    task[5][DIRECTORIES] += 1


@inlined
def through_block(task: Task, block: int, row: int, one: Few, room: int) -> bool:
    """Let wait what a block may have for an event; say whether those that wait were weighed."""
    attributes = task[1][2].shape[1]
    one[0][0], one[1][0] = row, row * (attributes + 1)
    one[2][0] = least_of(task[0][0], block, task, row)
    compare(task, task[0][0], block, one, attributes)
    task[5][BLOCKS] += 1
    if one[3][0] == 0:
        return False
    let_wait(task, block, one, 0)
    if task[3][2][row] <= room:
        return False
    weigh_waiting(task, row)
    return True


@inlined
def promising(task: Task, row: int, few: tuple[Few, Few], ahead: Ahead) -> None:
    """Go first through the blocks whose middles score most, and note them as done.

    The k-th best is then about what it will be in the end, and the others are left out the sooner.
    """
    one, some = few
    sums, bins, done = ahead
    middles, room = task[0][8], task[3][0].shape[1] - LANES
    attributes, most = task[1][2].shape[1], task[0][3][0]
    bins[:] = 0
    some[0][0], some[1][0], some[2][0] = row, row * (attributes + 1), 1
    for directory in range(done.shape[1]):
        compare(task, middles, directory, some, attributes)
        step = bin_step(middles[1][directory], most)
        for lane in range(LANES):
            sums[directory * LANES + lane] = some[4][lane]
            bins[min(len(bins) - 1, (int64(some[4][lane]) * step) >> 32)] += 1
    least, count = len(bins) - 1, bins[len(bins) - 1]
    while least > 0 and count + bins[least - 1] <= AHEAD:
        least -= 1
        count += bins[least]
    for directory in range(done.shape[1]):
        step = bin_step(middles[1][directory], most)
        mask = reach(sums, directory * LANES, min(MOST, ((least << 32) + step - 1) // step))
        done[row, directory] = mask
        while mask != 0:
            block = directory * LANES + lowest_bit(mask)
            mask = without_lowest(mask)
            if block < len(
                task[0][2]
            ):  # k answers as soon as possible: others are left out by them
                through_block(task, block, row, one, room if is_full(task[4], row) else 0)
    weigh_waiting(task, row)


@inlined
def bin_step(scale: float, most: float) -> int:
    """Give how many bins, times 2**32, a code of a directory is worth; `most` fills them all."""
    if scale <= 0 or most <= 0:
        return 1
    return int64(min(max(1.0, BINS / (scale * most) * 2.0**32), 2.0**44))


@inlined
def through_blocks(task: Task, directory: int, row: int, few: tuple[Few, Few], mask: int) -> None:
    """Go through the blocks of a mask; a k-th best that rises leaves further ones out."""
    one, some = few
    while mask != 0:
        block = directory * LANES + lowest_bit(mask)
        mask = without_lowest(mask)
        if through_block(task, block, row, one, 0):
            mask &= reach(some[4], 0, least_of(task[0][1], directory, task, row))


@inner
def through_stretch(task: Task, few: Few, stretch: tuple[int, int]) -> None:
    """Go through a stretch of blocks for 1 or 4 events, which share what is loaded."""
    held, asked, _, waiting, _, counters = task
    rows, _, leasts, masks, _ = few
    room = waiting[0].shape[1] - LANES
    for block in range(stretch[0], stretch[1]):
        for each in range(len(rows)):
            leasts[each] = least_of(held[0], block, task, rows[each])
        compare(task, held[0], block, few, asked[2].shape[1])
        counters[BLOCKS] += len(rows)
        for each in range(len(rows)):
            if masks[each] != 0:
                let_wait(task, block, few, each)
                if waiting[2][rows[each]] > room:
                    weigh_waiting(task, rows[each])


@kernel
def few_of(count: int) -> Few:
    """Make room for so many events that go together."""
    return (
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.zeros(count * LANES, np.uint16),
    )


@inlined
def goes_on(task: Task, directory: int, row: int) -> bool:
    """Say whether an event may find an answer from a directory on."""
    held, asked, found = task[0], task[1], task[4]
    return not is_over(held[3][directory], held[4][directory], asked[5][row], found, row)


@kernel
def relaxed_near(task: Task) -> None:
    """Answer all events: the promising blocks of each, then all directory by directory.

    So the blocks of a directory are in the cache when the next event comes.
    """
    held, found = task[0], task[4]
    directories = len(held[3]) if found[0].shape[1] > 0 else 0
    few, some = (few_of(1), few_of(1)), min(directories, FIRST)
    done = np.zeros((len(found[2]), some), np.int64)
    ahead = np.empty(FIRST * LANES, np.uint16), np.empty(BINS + 1, np.int64), done
    if directories > FEW:
        for row in range(len(found[2])):
            promising(task, row, few, ahead)
    for directory in range(directories):
        going = False
        for row in range(len(found[2])):
            if goes_on(task, directory, row):
                going = True
                ask_directory(task, directory, row, few[1])
                mask = few[1][3][0]
                if directory < some:
                    mask &= ~done[row, directory]
                through_blocks(task, directory, row, few, mask)
        if not going:
            break


@kernel
def relaxed_wide(task: Task, tile: int) -> None:
    """Answer all events, tile by tile of so many blocks: with many attributes no block is left out.

    Four points go together while there are four; what is left over goes one by one.
    """
    held, asked, found = task[0], task[1], task[4]
    total = len(held[2]) if found[0].shape[1] > 0 else 0
    four, one = few_of(1 if asked[6] else 4), few_of(1)
    width = asked[2].shape[1] + 1
    for start in range(0, total, tile):
        stretch, some = (start, min(total, start + tile)), 0
        for row in range(len(found[2])):
            if goes_on(task, start // LANES, row):
                four[0][some], four[1][some] = row, row * width
                some += 1
            if some == len(four[0]):
                through_stretch(task, four, stretch)
                some = 0
        for each in range(some):
            one[0][0], one[1][0] = four[0][each], four[1][each]
            through_stretch(task, one, stretch)
    for row in range(len(found[2])):
        weigh_waiting(task, row)
