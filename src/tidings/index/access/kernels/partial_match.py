"""Partial matching: subscriptions of which some predicate holds, which ones do, and the k best.

The score is that of relaxed matching (RPS): the weights of the predicates that hold, each times the
probability of its attribute, added up per conjunction and rounded; the best conjunction counts.

Here every check is posted:

    row       the record of the conjunction
    place     the first word of the check
    number    the number of the check, an index of `CheckWeights`
    cells     first and last cell of an interval, packed; not 0 for a member of an `in`
"""

from typing import Final, NamedTuple

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.exact_sum import sum_add, sum_total
from tidings.compiled.jit import inlined, inner
from tidings.compiled.rounding import rounded
from tidings.index.access.kernels.match import EventBatch, MatchScratch, SegmentView
from tidings.index.access.kernels.postings import (
    END,
    KEY,
    NEXT_ENTRY,
    WIDE,
    cell_limits,
    collect_lists,
    in_cells,
)
from tidings.index.access.kernels.records import (
    AMONG,
    HEAD,
    Stamps,
    check_end,
    check_holds,
    first_member,
    stamp_event,
)

PARTIAL_WIDTH: Final = 4  # numbers of a posting
SLACK: Final = 1e-11  # more than rounding and the order of additions can change a score


class Hits(NamedTuple):
    """Subscriptions that a batch of events reaches, in no order within an event.

    Those of event e are numbers[starts[e]:starts[e + 1]]. After partial matching, the predicates of
    the n-th number that hold are parts[part_starts[n]:part_starts[n + 1]], which count through the
    `groups` of the subscription; after whole matching both columns are empty.
    """

    starts: Int64s
    numbers: Int32s
    part_starts: Int64s
    parts: Int32s


class TouchScratch(NamedTuple):
    """Scratch buffers that collect the checks that hold, by subscription."""

    seen: Int32s  # by rank: the last epoch in which it was touched
    place: Int32s  # by rank: its place among the touched
    ranks: Int32s  # the touched
    counts: Int32s  # by place: how many checks hold
    bounds: Float64s  # by place: the sum of their weights
    held: Int32s  # [0]: where it ends; then two numbers per check that holds: place, check
    partials: Float64s  # of an exact sum


@inlined
def probability(stamps: Stamps, words: Int32s, place: int) -> float:
    """Return the probability of the attribute of a check that holds."""
    if len(stamps.term_probability) == 0:
        return 1.0
    if words[place] >= 0:
        return stamps.term_probability[words[place]]
    if ~words[place] & 3 == AMONG:
        return stamps.term_probability[first_member(words, place, stamps)]
    return stamps.slot_probability[~words[place] >> 2]


@inlined
def add_check(
    view: SegmentView, scratch: MatchScratch, touch: TouchScratch, size: int, check: tuple[int, int]
) -> int:
    """Add a check (rank, number) that holds; return how many subscriptions are touched."""
    rank, number = check
    if touch.seen[rank] != scratch.stamps.epoch[0]:
        # A dead subscription gets no place; its other checks come here again, but the dead are few.
        if view.records.ranks[2 * rank + 1] <= view.version:
            return size
        touch.seen[rank] = scratch.stamps.epoch[0]
        touch.place[rank] = size
        touch.ranks[size] = rank
        touch.counts[size] = 0
        touch.bounds[size] = 0.0
        size += 1
        scratch.counters[1] += 1
    place = touch.place[rank]
    end = touch.held[0]
    touch.held[end], touch.held[end + 1] = place, number
    touch.held[0] = end + 2
    touch.counts[place] += 1
    return size


@inner
def collect_from_lists(
    view: SegmentView, batch: EventBatch, scratch: MatchScratch, touch: TouchScratch, event: int
) -> int:
    """Collect the checks that hold for an event; return how many subscriptions are touched."""
    words, entries, stamps = view.records.words, view.postings.entries, scratch.stamps
    size, touch.held[0] = 0, 2
    terms, values = stamp_event(stamps, batch.events, batch.cached, batch.counts, event)
    for which in range(collect_lists(view.postings, stamps, terms, values, scratch.lists)):
        key = scratch.lists[WIDE * which + KEY]
        first = scratch.lists[WIDE * which + NEXT_ENTRY]
        last = scratch.lists[WIDE * which + END]
        scratch.counters[0] += (last - first) // PARTIAL_WIDTH
        for entry in range(first, last, PARTIAL_WIDTH):
            place = entries[entry + 1]
            if key < 0:
                if not in_cells(entries[entry + 3], cell_limits(scratch.lists, WIDE * which)):
                    continue
                if not check_holds(words, place, stamps):
                    continue
            elif entries[entry + 3] != 0 and first_member(words, place, stamps) != key:
                continue  # an `in` counts once, under the first of its members that holds
            rank = words[entries[entry]] >> 1
            size = add_check(view, scratch, touch, size, (rank, entries[entry + 2]))
    return size


@inner
def collect_by_scan(
    view: SegmentView, batch: EventBatch, scratch: MatchScratch, touch: TouchScratch, event: int
) -> int:
    """Collect the same by testing every check: for a memtable."""
    words, stamps = view.records.words, scratch.stamps
    size, touch.held[0], row = 0, 2, 0
    stamp_event(stamps, batch.events, batch.cached, batch.counts, event)
    while row < view.size:
        place, number = row + HEAD, words[row + 2]
        while place < words[row + 1]:
            scratch.counters[0] += 1
            if check_holds(words, place, stamps):
                size = add_check(view, scratch, touch, size, (words[row] >> 1, number))
            place = check_end(words, place)
            number += 1
        row = words[row + 1]
    return size


@inlined
def collect(
    view: SegmentView, batch: EventBatch, scratch: MatchScratch, touch: TouchScratch, event: int
) -> int:
    """Collect by lists, or by a scan where there are none."""
    if len(view.postings.heads) > 0:
        return collect_from_lists(view, batch, scratch, touch, event)
    return collect_by_scan(view, batch, scratch, touch, event)


@inner
def touch_events(
    view: SegmentView,
    batch: EventBatch,
    scratch: MatchScratch,
    touch: TouchScratch,
    first: int,
    out: Hits,
) -> int:
    """Write for the events from `first` on the touched subscriptions, and which predicates hold.

    Return the event that did not fit, or how many events there are.
    """
    for event in range(first, len(out.starts) - 1):
        size = collect(view, batch, scratch, touch, event)
        start, held = out.starts[event], (touch.held[0] - 2) // 2
        if start + size >= len(out.part_starts):
            return event
        # Checked before anything is written, so that the event can be repeated with more room.
        if out.part_starts[start] + held > len(out.parts):
            return event
        for place in range(size):
            out.numbers[start + place] = view.records.ranks[2 * touch.ranks[place]]
            out.part_starts[start + place + 1] = (
                out.part_starts[start + place] + touch.counts[place]
            )
            touch.counts[place] = 0
        for position in range(2, touch.held[0], 2):
            place = touch.held[position]
            target = out.part_starts[start + place] + touch.counts[place]
            out.parts[target] = view.weights.part[touch.held[position + 1]]
            touch.counts[place] += 1
        out.starts[event + 1] = start + size
    return len(out.starts) - 1


@inner
def score(view: SegmentView, stamps: Stamps, touch: TouchScratch, rank: int) -> float:
    """Return the score of a subscription: the best of its conjunctions."""
    words, weights, best = view.records.words, view.weights, 0.0
    row = view.records.offsets[rank]
    while row < view.size and words[row] >> 1 == rank:
        place, number, size = row + HEAD, words[row + 2], 0
        while place < words[row + 1]:
            if check_holds(words, place, stamps):
                weight = weights.weight[number] if len(weights.weight) > 0 else 1.0
                size = sum_add(touch.partials, size, weight * probability(stamps, words, place))
            place = check_end(words, place)
            number += 1
        best = max(best, rounded(sum_total(touch.partials, size)))
        row = words[row + 1]
    return best


@inlined
def insert(
    scores: Float64s, ranks: Int64s, size: int, order: Int32s, new: tuple[float, int]
) -> int:
    """Insert a (score, rank) among the best, which are in order; return how many there are."""
    score, rank = new
    place = size
    while place > 0 and (
        scores[place - 1] < score
        or (scores[place - 1] == score and order[ranks[place - 1]] > order[rank])
    ):
        # A full list drops its last entry by not writing behind its end.
        if place < len(scores):
            scores[place], ranks[place] = scores[place - 1], ranks[place - 1]
        place -= 1
    if place < len(scores):
        scores[place], ranks[place] = score, rank
    return min(size + 1, len(scores))


@inner
def relaxed_top(
    view: SegmentView,
    batch: EventBatch,
    scratch: MatchScratch,
    touch: TouchScratch,
    event: int,
    best: Float64s,
) -> int:
    """Write the k best scores to `best` and their ranks to the heap; return their number.

    The sum of all weights that hold bounds the score. Only a subscription whose bound may still be
    among the best is scored conjunction by conjunction.
    """
    weights = view.weights
    touched, size = collect(view, batch, scratch, touch, event), 0
    for position in range(2, touch.held[0], 2):
        number = touch.held[position + 1]
        weight = weights.weight[number] if len(weights.weight) > 0 else 1.0
        touch.bounds[touch.held[position]] += weight
    for place in range(touched):
        if size == len(best):
            least = best[size - 1]
            if size == 0 or touch.bounds[place] * (1.0 + SLACK) + SLACK < least:
                continue
        rank = touch.ranks[place]
        new = score(view, scratch.stamps, touch, rank), rank
        size = insert(best, scratch.heap, size, weights.order, new)
    return size


@inner
def relaxed_tops(
    view: SegmentView,
    batch: EventBatch,
    scratch: MatchScratch,
    touch: TouchScratch,
    best: Float64s,
    out: Int64s,
) -> None:
    """Write for every event how many are among the k best, their ranks, and their scores."""
    k = best.shape[1]
    for event in range(best.shape[0]):
        size = relaxed_top(view, batch, scratch, touch, event, best[event])
        out[event * (k + 1)] = size
        for position in range(size):
            out[event * (k + 1) + 1 + position] = scratch.heap[position]
