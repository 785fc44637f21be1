"""Rows that no check makes selective, in blocks of 64 that are compared at once.

    block       columns of ranges                            columns of terms
                | 64 low codes | 64 high codes | ...         | term, mask of lanes | ...

A block has a column for each slot and term that one of its rows checks. Rows with the same checks
are neighbours, so that most columns concern most lanes, and the column that concerns the most comes
first: an event without a value for it leaves the block after one comparison.

Codes of a slot count its cuts <= a number:

    0           a low without a bound                 1 ... 253   bounds and values
    254         a high without a bound                255         a high of a lane that does not ask
                                                                  for a value; a missing value

A value whose code differs from both bounds of a range is certainly inside or outside. Where all
bounds are cuts, the codes decide alone. Otherwise a second byte, the place within the cell of the
code, is compared where the codes agree; what that leaves open is decided by the records.
"""

from typing import Final, NamedTuple

from tidings.compiled.array_types import Int32s, Int64s, UInt8s
from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined, inner, kernel
from tidings.compiled.simd import LANES, highest_bit
from tidings.index.access.kernels.records import EncodedEvents, Stamps, count_up_to
from tidings.index.access.kernels.simd_blocks import (
    BOTH,
    SIDES,
    Columns,
    ColumnSpan,
    judge,
    refine,
)

EVENTS_TOGETHER: Final = 8
"""Events that share the loads of a block."""
MOST_CUTS: Final = 252
NO_HIGH: Final = 254
MISSING: Final = 255
NO_LOW_HAS: Final = 254
NO_HIGH_HAS: Final = 0
"""The borders of values that codes decide alone."""
FINITE: Final = (-(1 << 63) + (1 << 52), (1 << 63) - (1 << 52))
"""Finite floats lie between these, as ordered integers."""


class ScanBlocks(NamedTuple):
    """Blocks of rows; bands of blocks are in order of rank, each 4 times as long as the last."""

    slot_columns: Int32s  # by slot: its number here, or -1
    cut_starts: Int64s  # by number of a slot; one more for the end
    cuts: Int64s
    exact: UInt8s  # by number of a slot: whether each bound is a cut
    starts: Int64s  # by block: its first column of ranges; one more for the end
    slots: Int32s  # by column: the number of its slot
    codes: UInt8s  # by column: 64 lows, 64 highs
    fine: UInt8s  # their places within the cells of their codes
    term_starts: Int64s  # by block: its first column of terms; one more for the end
    terms: Int32s
    lanes: Int64s  # by column of terms: the lanes that it concerns
    rows: Int32s  # by lane, block after block: the record
    numbers: Int32s  # and the number of its subscription
    tested: Int64s  # by block: lanes whose records must be tested in any case
    least: Int32s  # by block: its first row
    least_onwards: Int32s  # by block: the first row from it on


class BlockScratch(NamedTuple):
    """What a scan of all blocks knows about some events."""

    codes: UInt8s  # by event: six for each slot, side by side
    undecided: Int64s  # by event: all lanes, if some slot has several values; else none
    masks: Int64s  # by event and block: the lanes that may match, and those that codes leave open


@inlined
def code_of(blocks: ScanBlocks, slot: int, number: int) -> int:
    """Return how many cuts of a slot are <= number, plus 1."""
    first, stop = blocks.cut_starts[slot], blocks.cut_starts[slot + 1]
    return count_up_to(blocks.cuts, first, stop - first, number) + 1


@inlined
def place_in_cell(blocks: ScanBlocks, slot: int, code: int, number: int) -> int:
    """Return the place of a number within the cell of its code, from 0 to 255, in order.

    The first and the last cell have no end, and those that are too wide to subtract have no places.
    """
    first = blocks.cut_starts[slot] + code - 2
    if code < 2 or first + 1 >= blocks.cut_starts[slot + 1]:
        return 0
    start = blocks.cuts[first]
    width = blocks.cuts[first + 1] - start
    if width <= 0:
        return 0
    return int((number - start) >> max(0, highest_bit(width) - 7))


@inner
def code_event(blocks: ScanBlocks, events: EncodedEvents, event: int, at: int, out: UInt8s) -> int:
    """Write the codes of an event from `at` on; return the lanes that codes leave open."""
    size, undecided = len(blocks.exact), int64(0)
    for slot in range(at, at + size):
        out[slot] = out[slot + size] = MISSING
        out[slot + 2 * size], out[slot + 3 * size] = NO_LOW_HAS, NO_HIGH_HAS
    for place in range(events.spans[4 * event + 2], events.spans[4 * event + 3]):
        slot = events.slots[place]
        # A slot may be newer than the blocks.
        column = blocks.slot_columns[slot] if slot < len(blocks.slot_columns) else -1
        if column < 0:
            continue
        below = code_of(blocks, column, events.upper[place])
        above = code_of(blocks, column, events.lower[place])
        place_below = at + column
        if out[place_below] != MISSING:
            # Several values: their hull loses no match, and the records decide.
            undecided = int64(-1)
            below = max(below, int64(out[place_below]))
            above = min(above, int64(out[place_below + size]))
        out[place_below], out[place_below + size] = below, above
        if undecided != 0:
            out[place_below + 2 * size], out[place_below + 3 * size] = NO_LOW_HAS, NO_HIGH_HAS
        elif blocks.exact[column] == 0:
            out[place_below + 2 * size], out[place_below + 3 * size] = below, above
            fine = place_in_cell(blocks, column, below, events.upper[place])
            out[place_below + 4 * size] = fine
            fine = place_in_cell(blocks, column, above, events.lower[place])
            out[place_below + 5 * size] = fine
    return undecided


@inlined
def all_lanes(blocks: ScanBlocks, block: int) -> int:
    """Return the mask of the lanes that a block has; only the last may have fewer than 64."""
    count = len(blocks.rows) - block * LANES
    return int64(-1) if count >= LANES else (int64(1) << int64(count)) - int64(1)


@inlined
def compare_block(blocks: ScanBlocks, block: int, codes: UInt8s, at: int) -> tuple[int, int]:
    """Return the lanes whose ranges may hold by the codes of one event, and which stay open.

    A lane is open if it shares a code with the event, since the cell of the code has both, and the
    place in it as well.
    """
    columns = Columns(blocks.slots, blocks.codes, blocks.fine, codes)
    span = ColumnSpan(blocks.starts[block], blocks.starts[block + 1], at, len(blocks.exact))
    mask, border = judge(columns, span, all_lanes(blocks, block))
    if mask & border != 0:
        mask, border = refine(columns, span, mask)
    return mask, border


@inner
def scan_blocks(
    blocks: ScanBlocks, events: EncodedEvents, span: tuple[int, int], scratch: BlockScratch
) -> None:
    """Write the masks of all blocks for some events, from the first of `span` to before the last.

    The events are the inner loop: they share the codes of a block while these are in the cache.
    """
    width, count = SIDES * len(blocks.exact), span[1] - span[0]
    size = len(blocks.tested)
    for event in range(count):
        scratch.undecided[event] = code_event(
            blocks, events, span[0] + event, event * width, scratch.codes
        )
    for block in range(size):
        for event in range(count):
            target = 2 * (event * size + block)
            mask, border = compare_block(blocks, block, scratch.codes, event * width)
            scratch.masks[target] = mask
            scratch.masks[target + 1] = border | scratch.undecided[event]


@inlined
def stamped_lanes(blocks: ScanBlocks, block: int, stamps: Stamps, mask: int) -> int:
    """Return the mask without the lanes that check a term which is not stamped."""
    for column in range(blocks.term_starts[block], blocks.term_starts[block + 1]):
        if stamps.stamp[blocks.terms[column]] != stamps.epoch[0]:
            mask &= ~blocks.lanes[column]
    return mask


class RowChecks(NamedTuple):
    """Rows in the order of their lanes, and their checks, from which blocks are filled."""

    first: Int64s  # by row: its first check
    last: Int64s
    key: Int64s  # by check: number of a slot, number of slots + term, or -1 for any other check
    low: Int64s  # by check
    high: Int64s


class KeyScratch(NamedTuple):
    """The distinct keys of a block, most frequent first."""

    place: Int64s  # by key: its place among those of the block, or -1
    keys: Int64s
    counts: Int64s


@inlined
def block_keys(checks: RowChecks, block: int, scratch: KeyScratch) -> int:
    """Collect the keys of a block, the more frequent ones first; return their number."""
    count = 0
    for row in range(block * LANES, min((block + 1) * LANES, len(checks.first))):
        for check in range(checks.first[row], checks.last[row]):
            key = checks.key[check]
            if key < 0:
                continue
            if scratch.place[key] < 0:
                scratch.place[key] = count
                scratch.keys[count], scratch.counts[count] = key, 0
                count += 1
            scratch.counts[scratch.place[key]] += 1
    for position in range(1, count):
        key, times, target = scratch.keys[position], scratch.counts[position], position
        while target > 0 and scratch.counts[target - 1] < times:
            scratch.keys[target] = scratch.keys[target - 1]
            scratch.counts[target] = scratch.counts[target - 1]
            target -= 1
        scratch.keys[target], scratch.counts[target] = key, times
    return count


@kernel
def count_columns(checks: RowChecks, slots: int, scratch: KeyScratch, out: Int64s) -> None:
    """Write how many columns of ranges and of terms each block has, two numbers a block."""
    for block in range(len(out) // 2):
        out[2 * block] = out[2 * block + 1] = 0
        for position in range(block_keys(checks, block, scratch)):
            key = scratch.keys[position]
            scratch.place[key] = -1
            out[2 * block + int64(key >= slots)] += 1


@kernel
def fill_blocks(checks: RowChecks, blocks: ScanBlocks, scratch: KeyScratch) -> None:
    """Fill codes, columns and lanes; `tested` gets the lanes with checks that have no column."""
    slots = len(blocks.exact)
    for column in range(len(blocks.slots)):
        for lane in range(LANES):
            # A lane that does not ask for a value contains all codes, that of a missing one too.
            blocks.codes[column * BOTH + lane] = 0
            blocks.codes[column * BOTH + LANES + lane] = MISSING
            blocks.fine[column * BOTH + lane] = blocks.fine[column * BOTH + LANES + lane] = 0
    for block in range(len(blocks.tested)):
        column, term = blocks.starts[block], blocks.term_starts[block]
        for position in range(block_keys(checks, block, scratch)):
            key = scratch.keys[position]
            if key < slots:
                blocks.slots[column], scratch.place[key] = key, column
                column += 1
            else:
                blocks.terms[term], blocks.lanes[term] = key - slots, 0
                scratch.place[key] = term
                term += 1
        fill_lanes(checks, blocks, block, scratch)
        for column in range(blocks.starts[block], blocks.starts[block + 1]):
            scratch.place[blocks.slots[column]] = -1
        for term in range(blocks.term_starts[block], blocks.term_starts[block + 1]):
            scratch.place[slots + blocks.terms[term]] = -1


@inlined
def fill_lanes(checks: RowChecks, blocks: ScanBlocks, block: int, scratch: KeyScratch) -> None:
    """Write the checks of the rows of one block into its columns."""
    slots = len(blocks.exact)
    for row in range(block * LANES, min((block + 1) * LANES, len(checks.first))):
        lane = int64(row - block * LANES)
        for check in range(checks.first[row], checks.last[row]):
            key = checks.key[check]
            if key < 0:
                blocks.tested[block] |= int64(1) << lane
            elif key >= slots:
                blocks.lanes[scratch.place[key]] |= int64(1) << lane
            else:
                place = scratch.place[key] * BOTH + lane
                fill_range(blocks, key, checks.low[check], checks.high[check], place)


@inlined
def fill_range(blocks: ScanBlocks, slot: int, low: int, high: int, place: int) -> None:
    """Write the codes of a range at a place, within those of another range that is there."""
    code = code_of(blocks, slot, low) if low > FINITE[0] else 0
    fine = place_in_cell(blocks, slot, code, low)
    if (code, fine) > (int64(blocks.codes[place]), int64(blocks.fine[place])):
        blocks.codes[place], blocks.fine[place] = code, fine
    place += LANES
    code = code_of(blocks, slot, high) if high < FINITE[1] else NO_HIGH
    fine = place_in_cell(blocks, slot, code, high) if code < NO_HIGH else 0
    if (code, fine) < (int64(blocks.codes[place]), int64(blocks.fine[place])):
        blocks.codes[place], blocks.fine[place] = code, fine
