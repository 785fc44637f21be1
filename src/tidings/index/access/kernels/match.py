"""Matching: all subscriptions that cover an event, and the k best.

A conjunction without a selective check is in a block, see `scan_blocks`. Any other is posted once,
under its most selective check. The posting carries what can refute the conjunction without a look
at its record:

    row          the record of the conjunction
    next check   a term that must be stamped, ~(slot + 1) for a slot that must have a value, UNKNOWN
    cells        first and last cell of the access interval, packed, if it is one

Rows that survive are collected and their records are tested some at a time, so that the cache
misses of many records overlap. Postings are in order of rank, which is the order of scores: the k
best are the k lowest rows that match.
"""

from typing import Final, NamedTuple

from tidings.compiled.array_types import Int32s, Int64s
from tidings.compiled.heaps import heap_offer, heap_sort
from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined, inner
from tidings.compiled.simd import LANES, lowest_bit, prefetch, without_lowest
from tidings.index.access.kernels.postings import (
    END,
    NEXT_ENTRY,
    NEXT_ROW,
    WIDE,
    Postings,
    cell_limits,
    collect_lists,
    in_cells,
)
from tidings.index.access.kernels.records import (
    HEAD,
    CachedTerms,
    CheckWeights,
    EncodedEvents,
    HitCounts,
    Records,
    Stamps,
    record_holds,
    scan_records,
    stamp_event,
)
from tidings.index.access.kernels.scan_blocks import (
    EVENTS_TOGETHER,
    BlockScratch,
    ScanBlocks,
    code_event,
    compare_block,
    scan_blocks,
    stamped_lanes,
)

WIDTH: Final = 3  # numbers of a posting
BANDS: Final = 6  # bands that are each as long as all before, up to the end of a list
LEAST_BAND: Final = 64
STRAIGHT: Final = 3  # lanes of a block that are written without a branch
LAST_LANE: Final = -(1 << 63)


class EventBatch(NamedTuple):
    """Encoded events, and the parts of the vocabulary that they refer to."""

    events: EncodedEvents
    cached: CachedTerms
    counts: HitCounts


class SegmentView(NamedTuple):
    """A segment or memtable as of one version; a memtable has only records, of `size` words."""

    records: Records
    postings: Postings
    blocks: ScanBlocks
    weights: CheckWeights
    size: int
    version: int


class MatchScratch(NamedTuple):
    """Scratch buffers of one query, and what it looked at."""

    stamps: Stamps
    taken: Int32s  # by subscription: the last epoch in which it matched
    lists: Int32s  # the posting lists of the event, see `collect_lists`
    heap: Int64s
    ranks: Int32s
    rows: Int32s  # rows that may match, whose records are tested together
    blocks: BlockScratch
    counters: Int64s  # predicates, subscriptions, and a sum that keeps `read_ahead` alive


class ScannedEvent(NamedTuple):
    """An event, its place among those that were scanned together, and where its numbers start."""

    event: int
    place: int
    start: int


@inlined
def may_match(entries: Int32s, entry: int, stamps: Stamps, limits: tuple[int, int]) -> int:
    """Return 1 unless the posting alone refutes its row; else 0.

    Without a branch, since the outcome is hard to predict.
    """
    check = entries[entry + 1]
    # UNKNOWN is ~0 and thus reads the stamp that is always current: there is no third case.
    place = check if check >= 0 else stamps.always + ~check
    stamped = stamps.stamp[place] == stamps.epoch[0]
    return stamped & in_cells(entries[entry + 2], limits)


@inlined
def new_match(view: SegmentView, row: int, scratch: MatchScratch) -> bool:
    """Return whether a row matches whose subscription is alive and did not match before."""
    scratch.counters[1] += 1
    tested = record_holds(view.records.words, row, scratch.stamps)
    scratch.counters[0] += abs(tested)
    if tested < 0:
        return False
    head = view.records.words[row]
    rank = head >> 1
    # A later removal belongs to a later version, which this reader does not see.
    if view.records.ranks[2 * rank + 1] <= view.version:
        return False
    # Most subscriptions have one record: they skip `taken`, which is another cache miss.
    if head & 1:
        number = view.records.ranks[2 * rank]
        if scratch.taken[number] == scratch.stamps.epoch[0]:
            return False
        scratch.taken[number] = scratch.stamps.epoch[0]
    return True


@inlined
def read_ahead(words: Int32s, scratch: MatchScratch, count: int) -> None:
    """Read the first check of the collected records, so that their cache misses overlap.

    The sum is stored, or the compiler would drop the loop.
    """
    total = 0
    for position in range(count):
        total += words[scratch.rows[position] + HEAD]
    scratch.counters[2] = total


@inner
def emit_matches(
    view: SegmentView, scratch: MatchScratch, count: int, size: int, out: Int32s
) -> int:
    """Write the numbers of the collected rows that match; return how many numbers there are now."""
    read_ahead(view.records.words, scratch, count)
    for position in range(count):
        row = scratch.rows[position]
        if new_match(view, row, scratch):
            # One that does not fit is still counted, so the caller grows `out` once, to the right
            # size.
            if size < len(out):
                out[size] = view.records.ranks[2 * (view.records.words[row] >> 1)]
            size += 1
    return size


@inlined
def emit_lanes(blocks: ScanBlocks, block: int, mask: int, size: int, out: Int32s) -> int:
    """Write the numbers of some lanes; return how many numbers there are now."""
    if size + LANES > len(out):
        while mask != 0:
            if size < len(out):
                out[size] = blocks.numbers[block * LANES + lowest_bit(mask)]
            size += 1
            mask = without_lowest(mask)
        return size
    # Some lanes are written in any case and kept by moving on: the end of a loop would be
    # mispredicted in most blocks.
    last = len(blocks.numbers) - 1
    for _ in range(STRAIGHT):
        lane = lowest_bit(mask | LAST_LANE)
        out[size] = blocks.numbers[min(block * LANES + lane, last)]
        size += int64(mask != 0)
        mask = without_lowest(mask)
    while mask != 0:
        out[size] = blocks.numbers[block * LANES + lowest_bit(mask)]
        size += 1
        mask = without_lowest(mask)
    return size


@inner
def emit_blocks(
    view: SegmentView, scratch: MatchScratch, place: int, size: int, out: Int32s
) -> int:
    """Write the numbers of the rows in blocks that match; return how many numbers there are now.

    `place` is that of the event among those that were scanned together.
    """
    blocks, count = view.blocks, 0
    first = 2 * place * len(blocks.tested)
    for block in range(len(blocks.tested)):
        mask = scratch.blocks.masks[first + 2 * block]
        if mask == 0:
            continue
        mask = stamped_lanes(blocks, block, scratch.stamps, mask)
        tested = mask & (scratch.blocks.masks[first + 2 * block + 1] | blocks.tested[block])
        mask &= ~tested
        size = emit_lanes(blocks, block, mask, size, out)
        while tested != 0:
            scratch.rows[count] = blocks.rows[block * LANES + lowest_bit(tested)]
            count += 1
            tested = without_lowest(tested)
            if count == len(scratch.rows):
                size, count = emit_matches(view, scratch, count, size, out), 0
    return emit_matches(view, scratch, count, size, out)


@inner
def match_event(
    view: SegmentView,
    batch: EventBatch,
    scratch: MatchScratch,
    scanned: ScannedEvent,
    out: Int32s,
) -> int:
    """Write the number of each subscription that covers an event; return where they end.

    Those that do not fit are only counted.
    """
    size, postings, count = scanned.start, view.postings, 0
    terms, values = stamp_event(
        scratch.stamps, batch.events, batch.cached, batch.counts, scanned.event
    )
    if len(view.blocks.rows) > 0:
        size = emit_blocks(view, scratch, scanned.place, size, out)
    for which in range(collect_lists(postings, scratch.stamps, terms, values, scratch.lists)):
        first = scratch.lists[WIDE * which + NEXT_ENTRY]
        last = scratch.lists[WIDE * which + END]
        limits = cell_limits(scratch.lists, WIDE * which)
        scratch.counters[0] += (last - first) // WIDTH
        for entry in range(first, last, WIDTH):
            # Written in any case, and kept by moving on: a branch here would be mispredicted half
            # of the time.
            scratch.rows[count] = postings.entries[entry]
            count += may_match(postings.entries, entry, scratch.stamps, limits)
            if count == len(scratch.rows):
                size, count = emit_matches(view, scratch, count, size, out), 0
    return emit_matches(view, scratch, count, size, out)


@inner
def match_events(
    view: SegmentView,
    batch: EventBatch,
    scratch: MatchScratch,
    first: int,
    starts: Int64s,
    out: Int32s,
) -> int:
    """Write the numbers of all that cover the events from `first` on; `starts` separates them.

    Return the event whose numbers did not fit, or how many events there are; the next start tells
    how much room is needed.
    """
    for begin in range(first, len(starts) - 1, EVENTS_TOGETHER):
        stop = min(begin + EVENTS_TOGETHER, len(starts) - 1)
        if len(view.blocks.rows) > 0:
            scan_blocks(view.blocks, batch.events, (begin, stop), scratch.blocks)
            columns = len(view.blocks.slots) + len(view.blocks.terms)
            scratch.counters[0] += columns * (stop - begin)
        for event in range(begin, stop):
            scanned = ScannedEvent(event, event - begin, starts[event])
            starts[event + 1] = match_event(view, batch, scratch, scanned, out)
            if starts[event + 1] > len(out):
                return event
    return len(starts) - 1


@inner
def scan_events(
    view: SegmentView,
    batch: EventBatch,
    scratch: MatchScratch,
    first: int,
    starts: Int64s,
    out: Int32s,
) -> int:
    """Write the *ranks* in the same way, testing every record: for a memtable."""
    for event in range(first, len(starts) - 1):
        stamp_event(scratch.stamps, batch.events, batch.cached, batch.counts, event)
        extent = view.size, view.version
        count = scan_records(view.records, extent, scratch.stamps, scratch.counters, scratch.ranks)
        starts[event + 1] = starts[event] + count
        if starts[event + 1] > len(out):
            return event
        for position in range(count):
            out[starts[event] + position] = scratch.ranks[position]
    return len(starts) - 1


@inner
def offer_rows(view: SegmentView, scratch: MatchScratch, count: int, size: int) -> int:
    """Offer the heap the collected rows that match; return its size."""
    read_ahead(view.records.words, scratch, count)
    for position in range(count):
        row = scratch.rows[position]
        # Rows are in the order of scores: behind the k-th best, not even the record is read.
        if (size < len(scratch.heap) or row < scratch.heap[0]) and new_match(view, row, scratch):
            size = heap_offer(scratch.heap, size, row)
    return size


@inlined
def row_limit(scratch: MatchScratch, size: int, limit: int) -> int:
    """Return the row from which on none can enter the heap."""
    return min(limit, scratch.heap[0]) if size == len(scratch.heap) else limit


@inner
def search_blocks(
    view: SegmentView, batch: EventBatch, scratch: MatchScratch, event: int, most: int
) -> int:
    """Offer the heap the matching rows in blocks before row `most`; return its size."""
    blocks, codes, size = view.blocks, scratch.blocks.codes, 0
    undecided = code_event(blocks, batch.events, event, 0, codes)
    for block in range(len(blocks.tested)):
        last = row_limit(scratch, size, most)
        if blocks.least_onwards[block] >= last:
            break
        if blocks.least[block] >= last:
            continue
        scratch.counters[0] += blocks.starts[block + 1] - blocks.starts[block]
        mask, border = compare_block(blocks, block, codes, 0)
        if mask != 0:
            mask = stamped_lanes(blocks, block, scratch.stamps, mask)
        if mask == 0:
            continue
        tested = undecided | blocks.tested[block] | border
        while mask != 0:
            lane = lowest_bit(mask)
            row = blocks.rows[block * LANES + lane]
            needs_test = (tested >> lane) & 1
            mask = without_lowest(mask)
            if row < row_limit(scratch, size, most) and (
                needs_test == 0 or new_match(view, row, scratch)
            ):
                size = heap_offer(scratch.heap, size, row)
    return size


@inlined
def search_band(view: SegmentView, scratch: MatchScratch, lists: int, size: int, limit: int) -> int:
    """Offer the heap all matching rows before `limit`; each list resumes where it was left."""
    entries, count, last = view.postings.entries, 0, row_limit(scratch, size, limit)
    for which in range(0, WIDE * lists, WIDE):
        row = scratch.lists[which + NEXT_ROW]
        if row >= last:
            continue
        first, end = scratch.lists[which + NEXT_ENTRY], scratch.lists[which + END]
        limits = cell_limits(scratch.lists, which)
        entry = first
        while row < last:
            scratch.rows[count] = row
            count += may_match(entries, entry, scratch.stamps, limits)
            if count == len(scratch.rows):
                size, count = offer_rows(view, scratch, count, size), 0
                # A full heap narrows the band for the lists that follow.
                last = row_limit(scratch, size, limit)
            entry += WIDTH
            # A list that is used up continues with a row behind all others.
            row = entries[entry] if entry < end else view.size
        scratch.counters[0] += (entry - first) // WIDTH
        scratch.lists[which + NEXT_ENTRY], scratch.lists[which + NEXT_ROW] = entry, row
    return offer_rows(view, scratch, count, size)


@inner
def top_event(
    view: SegmentView, batch: EventBatch, scratch: MatchScratch, event: int, most: int
) -> int:
    """Put the k lowest ranks before row `most` that cover an event into the heap, in order.

    Return their number. Lists are read in bands, each as long as all before it, so at most twice as
    much is read as if it were known where the k-th lies.
    """
    size = 0
    terms, values = stamp_event(scratch.stamps, batch.events, batch.cached, batch.counts, event)
    if len(view.blocks.rows) > 0:
        size = search_blocks(view, batch, scratch, event, most)
    lists = collect_lists(view.postings, scratch.stamps, terms, values, scratch.lists)
    for which in range(0, WIDE * lists, WIDE):
        # The lists start far apart in memory: these misses overlap.
        prefetch(view.postings.entries, scratch.lists[which + NEXT_ENTRY])
    limit = (view.size >> BANDS) + LEAST_BAND
    while True:
        size = search_band(view, scratch, lists, size, min(limit, most))
        if limit >= row_limit(scratch, size, most):
            break
        limit *= 2
    heap_sort(scratch.heap, size)
    for position in range(size):
        scratch.heap[position] = view.records.words[scratch.heap[position]] >> 1
    return size


@inner
def top_events(
    view: SegmentView, batch: EventBatch, scratch: MatchScratch, limits: Int32s, out: Int64s
) -> None:
    """Write for every event how many ranks below its limit cover it, at most k, and these ranks."""
    width = len(scratch.heap) + 1
    for event in range(len(limits)):
        most = view.records.offsets[limits[event]]
        size = 0
        if most > 0:
            size = top_event(view, batch, scratch, event, most)
        out[event * width] = size
        for position in range(size):
            out[event * width + 1 + position] = scratch.heap[position]


@inner
def append_by_event(numbers: Int32s, starts: Int64s, ends: Int64s, out: Int32s) -> None:
    """Append the numbers of every event at its end so far."""
    for event in range(len(starts) - 1):
        end = ends[event]
        for position in range(starts[event], starts[event + 1]):
            out[end] = numbers[position]
            end += 1
        ends[event] = end
