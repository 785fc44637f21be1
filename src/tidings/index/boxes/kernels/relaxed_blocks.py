"""Relaxed matching over blocks of 64 boxes, those of the greatest total weight first.

    for each event:  promising blocks -> directories -> blocks -> waiting boxes -> float64 score
                     (by middles)        (hulls)        (codes)   (heap by bound)

Codes bound every score from above, ties and rounding included (`relaxed_layout`, `score_bounds`):
a directory skips blocks whose bound is below the k-th best, a block skips boxes, and only the rest
is scored in float64. The search ends at the first directory from which on no total reaches the k-th
best. At 1,000,000 boxes over 8 attributes an event compares 1,872 of 15,625 blocks and scores 135
boxes (bench/results/box.md).
"""

from typing import Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s, UInt16s
from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined, inner, kernel
from tidings.compiled.simd import LANES, lowest_bit, without_lowest
from tidings.index.boxes.kernels.quantize import CodedEvents, Liveness, is_alive
from tidings.index.boxes.kernels.relaxed_layout import CodeBlocks, packed_score
from tidings.index.boxes.kernels.score_bounds import (
    MAX_CODES,
    ROUNDING,
    SLACK,
    is_full,
    is_over,
    least_codes,
    most_score,
)
from tidings.index.boxes.kernels.simd_codes import BlockSpan, EventCodes, EventGroup, reach, weigh
from tidings.index.boxes.kernels.topk_heap import TopkHeaps, topk_offer, topk_pop

AHEAD_DIRECTORIES: Final = 64
"""Directories in which promising blocks are looked for."""
FEW_DIRECTORIES: Final = 8
"""With no more directories than this, looking ahead does not pay."""
AHEAD_BLOCKS: Final = 48
"""About this many blocks are promising."""
BINS: Final = 512

BLOCKS, WEIGHED, DIRECTORIES = range(3)
"""The counters."""


class RelaxedLayout(NamedTuple):
    """The index: coded blocks, directories, and the packed rows in the same order."""

    blocks: CodeBlocks
    directories: CodeBlocks
    """Empty where there are too many attributes for them."""
    middles: CodeBlocks
    """A typical row of each block."""
    most: Float64s
    """The greatest total of each block."""
    most_onwards: Float64s
    least_id_onwards: Int64s
    """The greatest total and the smallest id from each directory on."""
    ids: Int64s
    packed: Float64s
    greatest: bool
    """Whether the greatest weight counts, not the sum."""


class RelaxedTask(NamedTuple):
    """A search: the index, the events, and the results."""

    layout: RelaxedLayout
    events: CodedEvents
    liveness: Liveness
    waiting: TopkHeaps
    """Boxes to be scored, as heaps of (-bound, place). The most promising are scored first and
    raise the k-th best, so that most of the others are never scored."""
    best: TopkHeaps
    counters: Int64s


class LookAhead(NamedTuple):
    """Scratch buffers for promising blocks."""

    sums: UInt16s
    """The codes of each middle."""
    bins: Int64s
    """A histogram of the codes."""
    done: Int64s
    """Per event and directory, the mask of the blocks that are done."""


class Groups(NamedTuple):
    """Two groups of one event, for a block and for a directory."""

    block: EventGroup
    directory: EventGroup


@kernel
def event_group(count: int) -> EventGroup:
    """Return room for `count` events that share the loads of a block."""
    return EventGroup(
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.zeros(count * LANES, np.uint16),
    )


@inlined
def required_codes(task: RelaxedTask, blocks: CodeBlocks, block: int, row: int) -> int:
    """Return the codes that a box of a block needs to enter an event's top k."""
    # Until there are k answers any match is one: 1 excludes only lanes where nothing holds.
    if not is_full(task.best, row):
        return 1
    worst, peak = task.best.scores[row, 0], task.events.peaks[row]
    return least_codes(worst, peak, blocks.scales[block], blocks.errors[block])


@inlined
def weigh_block(
    task: RelaxedTask, blocks: CodeBlocks, block: int, group: EventGroup, attributes: int
) -> None:
    """Add up the codes of a block for the events of a group."""
    events = task.events
    span = BlockSpan(
        block * attributes * 3 * LANES, attributes, task.layout.greatest, events.ranged
    )
    weigh(blocks.codes, span, EventCodes(events.below_codes, events.above_codes), group)


@inlined
def enqueue(task: RelaxedTask, block: int, group: EventGroup, member: int) -> None:
    """Put the lanes of a block that may enter an event's top k on its waiting heap."""
    blocks = task.layout.blocks
    row, mask = group.rows[member], group.masks[member]
    while mask != 0:
        lane = lowest_bit(mask)
        mask = without_lowest(mask)
        most = task.layout.most[block]
        # A scale of 0 marks weights that no code can hold: only the total bounds them.
        if blocks.scales[block] > 0:
            codes = group.sums[member * LANES + lane] + blocks.errors[block]
            most = min(most, codes / blocks.scales[block])
        topk_offer(task.waiting, row, -most, block * LANES + lane)


@inner
def score_waiting(task: RelaxedTask, row: int) -> None:
    """Score an event's waiting boxes, most promising first, until none can enter."""
    layout, events, waiting, best = task.layout, task.events, task.waiting, task.best
    while waiting.sizes[row] > 0:
        if is_full(best, row):
            # The slack covers the rounding of sums, so that a tie is scored and not skipped.
            bound = -waiting.scores[row, 0] * (1 + SLACK) + ROUNDING
            if most_score(bound, events.peaks[row]) < best.scores[row, 0]:
                break
        place = waiting.ids[row, 0]
        topk_pop(waiting, row)
        task.counters[WEIGHED] += 1
        if is_alive(task.liveness, place):
            score = packed_score(layout.packed, place, events, row, layout.greatest)
            if score >= 0:
                topk_offer(best, row, score, layout.ids[place])
    # What is left cannot enter, and the k-th best only rises.
    waiting.sizes[row] = 0


@inlined
def aim(task: RelaxedTask, group: EventGroup, row: int, required: int) -> None:
    """Set up a group of one event."""
    group.rows[0], group.starts[0] = row, row * (task.events.below.shape[1] + 1)
    group.required[0] = required


@inlined
def search_block(task: RelaxedTask, block: int, row: int, group: EventGroup, room: int) -> bool:
    """Enqueue the boxes of a block for an event; return whether the queue was scored.

    It is scored once it has more than `room` boxes.
    """
    blocks = task.layout.blocks
    aim(task, group, row, required_codes(task, blocks, block, row))
    weigh_block(task, blocks, block, group, task.events.below.shape[1])
    task.counters[BLOCKS] += 1
    if group.masks[0] == 0:
        return False
    enqueue(task, block, group, 0)
    if task.waiting.sizes[row] <= room:
        return False
    score_waiting(task, row)
    return True


@inlined
def bin_step(scale: float, most: float) -> int:
    """Return the bins, times 2**32, that one code of a directory is worth; `most` fills all."""
    if scale <= 0 or most <= 0:
        return 1
    return int64(min(max(1.0, BINS / (scale * most) * 2.0**32), 2.0**44))


@inlined
def search_promising(task: RelaxedTask, row: int, groups: Groups, ahead: LookAhead) -> None:
    """Search the blocks whose middles score most, and mark them as done.

    The k-th best is then close to its final value, so that more of the other blocks are skipped.
    The best middles are found by a histogram: sorting all of them would cost more.
    """
    sums, bins, done = ahead.sums, ahead.bins, ahead.done
    middles, room = task.layout.middles, task.waiting.scores.shape[1] - LANES
    attributes, most = task.events.below.shape[1], task.layout.most_onwards[0]
    bins[:] = 0
    aim(task, groups.directory, row, 1)
    for directory in range(done.shape[1]):
        weigh_block(task, middles, directory, groups.directory, attributes)
        step = bin_step(middles.scales[directory], most)
        for lane in range(LANES):
            codes = groups.directory.sums[lane]
            # Kept: the second pass needs them again, once the histogram has its threshold.
            sums[directory * LANES + lane] = codes
            bins[min(len(bins) - 1, (int64(codes) * step) >> 32)] += 1
    least, count = len(bins) - 1, bins[len(bins) - 1]
    # From the best bin downwards, as many bins as hold about AHEAD_BLOCKS middles.
    while least > 0 and count + bins[least - 1] <= AHEAD_BLOCKS:
        least -= 1
        count += bins[least]
    for directory in range(done.shape[1]):
        step = bin_step(middles.scales[directory], most)
        required = min(MAX_CODES, ((least << 32) + step - 1) // step)
        mask = reach(sums, directory * LANES, required)
        done[row, directory] = mask
        while mask != 0:
            block = directory * LANES + lowest_bit(mask)
            mask = without_lowest(mask)
            if block < len(task.layout.most):
                # Until there are k answers the queue is scored at once: they exclude others.
                queue = room if is_full(task.best, row) else 0
                search_block(task, block, row, groups.block, queue)
    score_waiting(task, row)


@inlined
def search_directory(
    task: RelaxedTask, directory: int, row: int, groups: Groups, done: int
) -> None:
    """Search the blocks of a directory that are not done; a rising k-th best skips further ones."""
    directories, group = task.layout.directories, groups.directory
    aim(task, group, row, required_codes(task, directories, directory, row))
    weigh_block(task, directories, directory, group, task.events.below.shape[1] + 1)
    task.counters[DIRECTORIES] += 1
    # Those done were promising and have been searched already.
    mask = group.masks[0] & ~done
    while mask != 0:
        block = directory * LANES + lowest_bit(mask)
        mask = without_lowest(mask)
        # Only scoring raises the k-th best, and with it the codes that a block needs.
        if search_block(task, block, row, groups.block, 0):
            mask &= reach(group.sums, 0, required_codes(task, directories, directory, row))


@inlined
def is_unfinished(task: RelaxedTask, directory: int, row: int) -> bool:
    """Return whether an event may find an answer from a directory on."""
    most = task.layout.most_onwards[directory]
    least_id = task.layout.least_id_onwards[directory]
    return not is_over(most, least_id, task.events.peaks[row], task.best, row)


@kernel
def relaxed_near(task: RelaxedTask) -> None:
    """Answer all events: the promising blocks of each, then directory by directory.

    Directories are the outer loop, so that the blocks of one stay in the cache for all events.
    """
    rows = len(task.best.sizes)
    directories = len(task.layout.most_onwards) if task.best.scores.shape[1] > 0 else 0
    groups, looked = Groups(event_group(1), event_group(1)), min(directories, AHEAD_DIRECTORIES)
    ahead = LookAhead(
        np.empty(AHEAD_DIRECTORIES * LANES, np.uint16),
        np.empty(BINS + 1, np.int64),
        np.zeros((rows, looked), np.int64),
    )
    if directories > FEW_DIRECTORIES:
        for row in range(rows):
            search_promising(task, row, groups, ahead)
    for directory in range(directories):
        unfinished = False
        for row in range(rows):
            if is_unfinished(task, directory, row):
                unfinished = True
                done = ahead.done[row, directory] if directory < looked else int64(0)
                search_directory(task, directory, row, groups, done)
        # No event can find anything further on: totals descend.
        if not unfinished:
            break


@inner
def search_stretch(task: RelaxedTask, group: EventGroup, first: int, last: int) -> None:
    """Search blocks first..last - 1 for the 1 or 4 events of a group, which share the loads."""
    blocks, rows = task.layout.blocks, group.rows
    room = task.waiting.scores.shape[1] - LANES
    for block in range(first, last):
        for member in range(len(rows)):
            group.required[member] = required_codes(task, blocks, block, rows[member])
        weigh_block(task, blocks, block, group, task.events.below.shape[1])
        task.counters[BLOCKS] += len(rows)
        for member in range(len(rows)):
            if group.masks[member] != 0:
                enqueue(task, block, group, member)
                # Another block may add 64 boxes: a fuller heap would drop some of them.
                if task.waiting.sizes[rows[member]] > room:
                    score_waiting(task, rows[member])


@kernel
def relaxed_wide(task: RelaxedTask, tile: int) -> None:
    """Answer all events, in tiles of `tile` blocks: with many attributes no block is skipped.

    Points are searched four at a time; the rest, and ranges, one by one.
    """
    rows = len(task.best.sizes)
    total = len(task.layout.most) if task.best.scores.shape[1] > 0 else 0
    # Four events fill the vector registers; ranges need two codes each, and there is no such
    # kernel.
    four, single = event_group(1 if task.events.ranged else 4), event_group(1)
    width = task.events.below.shape[1] + 1
    for first in range(0, total, tile):
        last, members = min(total, first + tile), 0
        for row in range(rows):
            if is_unfinished(task, first // LANES, row):
                four.rows[members], four.starts[members] = row, row * width
                members += 1
            if members == len(four.rows):
                search_stretch(task, four, first, last)
                members = 0
        for member in range(members):
            single.rows[0], single.starts[0] = four.rows[member], four.starts[member]
            search_stretch(task, single, first, last)
    for row in range(rows):
        score_waiting(task, row)
