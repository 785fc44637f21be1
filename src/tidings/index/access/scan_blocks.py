"""Builds the blocks of the rows that no check makes selective."""

from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_file import Reader, Writer
from tidings.compiled.array_types import AnyArray, Bools, Float64s, Int32s, Int64s
from tidings.compiled.arrays import aligned, stable_order
from tidings.compiled.simd import LANES
from tidings.index.access.encoding import EncodedSubscriptions
from tidings.index.access.kernels.records import BETWEEN, Records
from tidings.index.access.kernels.scan_blocks import (
    FINITE,
    MOST_CUTS,
    KeyScratch,
    RowChecks,
    ScanBlocks,
    count_columns,
    fill_blocks,
)
from tidings.index.access.kernels.simd_blocks import BOTH
from tidings.index.access.kernels.validate import CheckMap, IndexSizes

UNSELECTIVE: Final = 1 / 48
"""A row whose checks each hold more often than this costs less in a block than in a list.

A block is compared in about a fifth of a nanosecond a row; a posting takes some ten nanoseconds
when its list is read, and a record fifty.
"""
COLUMN_NS: Final = 3.0
POSTING_NS: Final = 20.0
"""The least cost of comparing a column of a block, and of reading a posting and its record."""
FEWEST_ROWS: Final = 1024
"""Fewer rows than this are posted: the event is led to them soon enough."""
FIRST_BAND: Final = 16 * LANES
"""Rows of the first band of ranks; each further band ends 4 times as far."""
SAMPLE: Final = 1 << 13
"""Bounds of a slot from which its cuts are chosen."""
PACKED: Final = 4
"""Keys of a row in one number of 64 bits."""


def lane_mask(lane: int) -> int:
    """Return the mask of one lane, as a signed word."""
    return 1 << lane if lane < LANES - 1 else -(1 << lane)


def _none(dtype: Any) -> AnyArray:
    return np.empty(0, dtype)


NO_BLOCKS: Final = ScanBlocks(
    _none(np.int32),
    np.zeros(1, np.int64),
    _none(np.int64),
    _none(np.uint8),
    np.zeros(1, np.int64),
    _none(np.int32),
    _none(np.uint8),
    _none(np.uint8),
    np.zeros(1, np.int64),
    _none(np.int32),
    _none(np.int64),
    _none(np.int32),
    _none(np.int32),
    _none(np.int64),
    _none(np.int32),
    _none(np.int32),
)


def least_chances(size: Int32s, chance: Float64s) -> Float64s:
    """Return the chance of each row's most selective check; `size` has the checks of each row."""
    if not len(size):
        return np.empty(0)
    least: Float64s = np.minimum.reduceat(chance, np.cumsum(size, dtype=np.int64) - size)
    return least


def unselective_rows(least: Float64s) -> Bools:
    """Return which rows are to be scanned, by the chances of their most selective checks."""
    wide = least > UNSELECTIVE
    return wide if np.count_nonzero(wide) >= FEWEST_ROWS else np.zeros(len(least), np.bool_)


class _Slots(NamedTuple):
    """The slots of all ranges: their numbers by slot, and their cuts."""

    columns: Int32s
    cut_starts: Int64s
    cuts: Int64s
    exact: AnyArray


class RecordLayout(NamedTuple):
    """Records; by row, where each starts, and whether its subscription may be reached again."""

    records: Records
    starts: Int64s
    several: Bools


def build_blocks(
    ranked: EncodedSubscriptions,
    layout: RecordLayout,
    wide: Bools,
    chance: Float64s,
    extent: tuple[int, int],
) -> ScanBlocks:
    """Build the blocks of the rows that are wide; `extent` has the numbers of slots and terms."""
    rows = np.flatnonzero(wide)
    if not len(rows):
        return NO_BLOCKS
    first = np.cumsum(ranked.size, dtype=np.int64) - ranked.size
    is_range = (ranked.term < 0) & (ranked.slot >= 0) & (ranked.kind == BETWEEN)
    chosen = np.repeat(wide, ranked.size)
    slots = _slots(ranked, np.flatnonzero(is_range & chosen), extent[0])
    count = len(slots.exact)
    key = np.where(ranked.term >= 0, count + ranked.term.astype(np.int64), -1)
    key[is_range & chosen] = slots.columns[ranked.slot[is_range & chosen]]
    key[is_range & ~chosen] = -1
    order = rows[_neighbours(key, first[rows], ranked.size[rows], chance, count + extent[1])]
    checks = RowChecks(
        first[order], first[order] + ranked.size[order], key, ranked.low, ranked.high
    )
    blocks = _allocated(checks, slots, extent)
    columns = len(blocks.slots) + len(blocks.terms)
    if COLUMN_NS * columns > POSTING_NS * least_chances(ranked.size, chance)[rows].sum():
        return NO_BLOCKS  # rows with too many different attributes, which events seldom have
    blocks.rows[:] = layout.starts[order]
    blocks.numbers[:] = ranked.numbers[ranked.owner[order]]
    padded = np.zeros(len(blocks.tested) * LANES, np.bool_)
    padded[: len(order)] = layout.several[order]
    blocks.tested[:] = np.packbits(padded, bitorder="little").view(np.int64)
    fill_blocks(checks, blocks, _key_scratch(count + extent[1], checks))
    _fill_least(blocks)
    return blocks


def _slots(ranked: EncodedSubscriptions, checks: Int64s, slots: int) -> _Slots:
    """Return numbers for the slots of ranges, with cuts among their bounds."""
    columns = np.full(slots, -1, np.int32)
    order = checks[stable_order(ranked.slot[checks], slots)]
    used, firsts = np.unique(ranked.slot[order], return_index=True)
    columns[used] = np.arange(len(used))
    groups = np.split(order, firsts[1:]) if len(used) else []
    cuts = [_cuts(ranked.low[group], ranked.high[group]) for group in groups]
    return _Slots(
        columns,
        np.cumsum([0, *(len(numbers) for numbers, _ in cuts)], dtype=np.int64),
        np.concatenate([*(numbers for numbers, _ in cuts), np.empty(0, np.int64)]),
        np.array([exact for _, exact in cuts], np.uint8),
    )


def _cuts(low: Int64s, high: Int64s) -> tuple[Int64s, bool]:
    """Return the cuts of a slot, and whether every bound is one of them.

    A low is a cut itself; a high ends before the next number, which is the cut.
    """
    step = -(-len(low) // SAMPLE)
    for every in (step, 1):
        ends = np.concatenate([low[::every], high[::every] + 1])
        ends = np.unique(ends[(ends > FINITE[0]) & (ends < FINITE[1])])
        if len(ends) > MOST_CUTS:
            return ends[np.arange(1, MOST_CUTS + 1) * len(ends) // (MOST_CUTS + 1)], False
    return ends, True


def _neighbours(key: Int64s, first: Int64s, size: Int32s, chance: Float64s, keys: int) -> Int64s:
    """Return the rows so that those with the same checks follow each other within a band.

    Keys are compared from the most selective one on, by the average chance of their checks.
    """
    known = key >= 0
    count = np.bincount(key[known], minlength=keys)
    sums = np.bincount(key[known], chance[known], minlength=keys)
    place = np.empty(keys + 1, np.int64)
    place[np.argsort(sums / np.maximum(count, 1), kind="stable")] = np.arange(keys)
    place[-1] = keys  # of checks without a key
    place = np.minimum(place, (1 << 16) - 1)
    # Rows are in order of rank: band b starts at FIRST_BAND * 4 ** (b - 1).
    rank = np.arange(len(first)) // FIRST_BAND
    band = (np.frexp(rank.astype(np.float64))[1] + 1) // 2
    width = min(2 * PACKED, int(size.max()))
    column = np.arange(width)
    checks = np.minimum(first[:, None] + column, len(key) - 1)
    places = np.where(column < size[:, None], place[key[checks]], (1 << 16) - 1)
    places.sort(axis=1)
    packed = []
    for start in range(0, width, PACKED):
        number = np.zeros(len(first), np.uint64)
        for part in range(start, start + PACKED):
            number <<= np.uint64(16)
            if part < width:
                number |= places[:, part].astype(np.uint64)
        packed.append(number)
    order: Int64s = np.lexsort([*packed[::-1], band])
    return order


def _key_scratch(keys: int, checks: RowChecks) -> KeyScratch:
    most = int((checks.last - checks.first).max(initial=0)) * LANES
    return KeyScratch(np.full(keys, -1), np.empty(most, np.int64), np.empty(most, np.int64))


def _allocated(checks: RowChecks, slots: _Slots, extent: tuple[int, int]) -> ScanBlocks:
    """Return blocks of the right sizes, whose lanes are still to be filled."""
    size = len(checks.first)
    count = -(-size // LANES)
    columns = np.empty(2 * count, np.int64)
    count_columns(
        checks, len(slots.exact), _key_scratch(len(slots.exact) + extent[1], checks), columns
    )
    starts, term_starts = (np.concatenate([[0], np.cumsum(columns[side::2])]) for side in range(2))
    return ScanBlocks(
        slots.columns,
        slots.cut_starts,
        slots.cuts,
        slots.exact,
        starts,
        np.empty(starts[-1], np.int32),
        aligned(int(starts[-1]) * BOTH, np.uint8),
        aligned(int(starts[-1]) * BOTH, np.uint8),
        term_starts,
        np.empty(term_starts[-1], np.int32),
        np.empty(term_starts[-1], np.int64),
        np.empty(size, np.int32),
        np.empty(size, np.int32),
        np.empty(count, np.int64),
        np.empty(count, np.int32),
        np.empty(count, np.int32),
    )


def _fill_least(blocks: ScanBlocks) -> None:
    begins = np.arange(0, len(blocks.rows), LANES)
    blocks.least[:] = np.minimum.reduceat(blocks.rows, begins)
    blocks.least_onwards[:] = np.minimum.accumulate(blocks.least[::-1])[::-1]


DERIVED: Final = ("numbers", "least", "least_onwards")
"""The columns that follow from the others."""


def write_blocks(writer: Writer, blocks: ScanBlocks) -> None:
    """Write blocks to a file."""
    for name, column in blocks._asdict().items():
        if name not in DERIVED:
            writer.array(name, column)


def read_blocks(
    reader: Reader, records: Records, checks: CheckMap, sizes: IndexSizes
) -> ScanBlocks:
    """Return the blocks of a file; every number that a kernel follows is validated."""
    rows = reader.array("rows", np.int32)
    reader.within_bounds("rows", rows, max(1, len(checks.begins)))
    reader.require(checks.begins[rows].all(), "rows", "lead to no record")
    if not len(rows):
        return NO_BLOCKS
    exact = reader.array("exact", np.uint8)
    slot_columns = reader.array("slot_columns", np.int32)
    reader.require(len(slot_columns) <= sizes.slots, "slot_columns", "are too many")
    reader.within_bounds("slot_columns", slot_columns, max(1, len(exact)), -1)
    cuts = reader.array("cuts", np.int64)
    cut_starts = reader.starts("cut_starts", len(exact), len(cuts))
    few = np.diff(cut_starts).max(initial=0) <= MOST_CUTS
    reader.require(few, "cut_starts", "leave a slot too many cuts")
    count = -(-len(rows) // LANES)
    slots = reader.array("slots", np.int32)
    reader.within_bounds("slots", slots, len(exact))
    terms = reader.array("terms", np.int32)
    reader.within_bounds("terms", terms, sizes.terms)
    blocks = ScanBlocks(
        slot_columns,
        cut_starts,
        cuts,
        exact,
        reader.starts("starts", count, len(slots)),
        slots,
        reader.array("codes", np.uint8, len(slots) * BOTH),
        reader.array("fine", np.uint8, len(slots) * BOTH),
        reader.starts("term_starts", count, len(terms)),
        terms,
        reader.array("lanes", np.int64, len(terms)),
        rows,
        records.ranks[2 * (records.words[rows] >> 1)],
        reader.array("tested", np.int64, count),
        np.empty(count, np.int32),
        np.empty(count, np.int32),
    )
    _fill_least(blocks)
    return blocks
