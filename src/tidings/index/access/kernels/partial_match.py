"""All of which some predicate holds, which of them do, and the k best by the weights that hold.

Here every check is posted. An entry is a row, where the check begins, its number, and the first
and the last cell of an interval.
"""

from typing import Final, NamedTuple

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.exact_sum import sum_add, sum_total
from tidings.compiled.jit import inlined, inner
from tidings.compiled.rounding import rounded
from tidings.index.access.kernels.match import Asked, Part, Room
from tidings.index.access.kernels.postings import AT, END, KEY, WIDE, cells_of, in_cells, lists_for
from tidings.index.access.kernels.records import (
    AMONG,
    HEAD,
    Marks,
    check_end,
    check_holds,
    first_member,
    mark,
)

POST: Final = 4
SLACK: Final = 1e-11  # more than rounding and the order of additions can make of a score


class Touch(NamedTuple):
    """Where the checks that hold are collected, by subscription."""

    seen: Int32s  # by rank: the last epoch in which it was touched
    place: Int32s  # by rank: its place among the touched
    ranks: Int32s  # the touched
    counts: Int32s  # how many checks of each hold
    bounds: Float64s  # what they weigh together
    hits: Int32s  # two numbers a check that holds: the place of its subscription, its number
    partials: Float64s


class Touched(NamedTuple):
    """What is found: numbers, and of each the predicates that hold."""

    starts: Int64s  # by event
    numbers: Int32s
    part_starts: Int64s  # by number
    parts: Int32s


@inlined
def sureness(marks: Marks, words: Int32s, at: int) -> float:
    """Give the probability of the attribute of a check that holds."""
    if len(marks.entry_sure) == 0:
        return 1.0
    if words[at] >= 0:
        return marks.entry_sure[words[at]]
    if ~words[at] & 3 == AMONG:
        return marks.entry_sure[first_member(words, at, marks)]
    return marks.slot_sure[~words[at] >> 2]


@inlined
def hit(part: Part, room: Room, touch: Touch, size: int, check: tuple[int, int]) -> int:
    """Note that a check (its rank, its number) holds; give how many subscriptions are touched."""
    rank, number = check
    if touch.seen[rank] != room.marks.epoch[0]:
        if part.rows.notes[2 * rank + 1] <= part.version:
            return size
        touch.seen[rank] = room.marks.epoch[0]
        touch.place[rank] = size
        touch.ranks[size] = rank
        touch.counts[size] = 0
        touch.bounds[size] = 0.0
        size += 1
        room.looked[1] += 1
    place = touch.place[rank]
    at = touch.hits[0]
    touch.hits[at], touch.hits[at + 1] = place, number
    touch.hits[0] = at + 2
    touch.counts[place] += 1
    return size


@inner
def collect(part: Part, asked: Asked, room: Room, touch: Touch, event: int) -> int:
    """Collect the checks that hold for an event, by lists; give how many are touched."""
    words, entries, marks = part.rows.words, part.lists.entries, room.marks
    size, touch.hits[0] = 0, 2
    ids, values = mark(marks, asked.said, asked.phrases, asked.hits, event)
    for each in range(lists_for(part.lists, marks, ids, values, room.lists)):
        key = room.lists[WIDE * each + KEY]
        first, last = room.lists[WIDE * each + AT], room.lists[WIDE * each + END]
        room.looked[0] += (last - first) // POST
        for at in range(first, last, POST):
            place = entries[at + 1]
            if key < 0:
                if not in_cells(entries[at + 3], cells_of(room.lists, WIDE * each)):
                    continue
                if not check_holds(words, place, marks):
                    continue
            elif entries[at + 3] != 0 and first_member(words, place, marks) != key:
                continue  # an `in` counts once, under the first of its members that holds
            rank = words[entries[at]] >> 1
            size = hit(part, room, touch, size, (rank, entries[at + 2]))
    return size


@inner
def collect_by_scan(part: Part, asked: Asked, room: Room, touch: Touch, event: int) -> int:
    """Collect the same by looking at every record: for a part without lists."""
    words, marks = part.rows.words, room.marks
    size, touch.hits[0], row = 0, 2, 0
    mark(marks, asked.said, asked.phrases, asked.hits, event)
    while row < part.size:
        at, number = row + HEAD, words[row + 2]
        while at < words[row + 1]:
            room.looked[0] += 1
            if check_holds(words, at, marks):
                size = hit(part, room, touch, size, (words[row] >> 1, number))
            at = check_end(words, at)
            number += 1
        row = words[row + 1]
    return size


@inlined
def collected(part: Part, asked: Asked, room: Room, touch: Touch, event: int) -> int:
    """Collect by lists, or by looking at all where there are none."""
    if len(part.lists.heads) > 0:
        return collect(part, asked, room, touch, event)
    return collect_by_scan(part, asked, room, touch, event)


@inner
def touch_many(part: Part, asked: Asked, room: Room, touch: Touch, first: int, out: Touched) -> int:
    """Write for the events from `first` on who is touched, and by which predicates.

    Give the event that did not fit, or how many there are.
    """
    for event in range(first, len(out.starts) - 1):
        size = collected(part, asked, room, touch, event)
        start, hits = out.starts[event], (touch.hits[0] - 2) // 2
        if start + size >= len(out.part_starts):
            return event
        if out.part_starts[start] + hits > len(out.parts):
            return event
        for at in range(size):
            out.numbers[start + at] = part.rows.notes[2 * touch.ranks[at]]
            out.part_starts[start + at + 1] = out.part_starts[start + at] + touch.counts[at]
            touch.counts[at] = 0
        for at in range(2, touch.hits[0], 2):
            place = touch.hits[at]
            to = out.part_starts[start + place] + touch.counts[place]
            out.parts[to] = part.weights.part[touch.hits[at + 1]]
            touch.counts[place] += 1
        out.starts[event + 1] = start + size
    return len(out.starts) - 1


@inner
def weigh(part: Part, marks: Marks, touch: Touch, rank: int) -> float:
    """Give the score of a subscription: of its conjunctions the best sum of weights that hold."""
    words, weights, best = part.rows.words, part.weights, 0.0
    row = part.rows.offsets[rank]
    while row < part.size and words[row] >> 1 == rank:
        at, number, size = row + HEAD, words[row + 2], 0
        while at < words[row + 1]:
            if check_holds(words, at, marks):
                weight = weights.weight[number] if len(weights.weight) > 0 else 1.0
                size = sum_add(touch.partials, size, weight * sureness(marks, words, at))
            at = check_end(words, at)
            number += 1
        best = max(best, rounded(sum_total(touch.partials, size)))
        row = words[row + 1]
    return best


@inlined
def offer(scores: Float64s, ranks: Int64s, size: int, order: Int32s, new: tuple[float, int]) -> int:
    """Keep a (score, rank) among the best so far, which are in order; give how many there are."""
    score, rank = new
    at = size
    while at > 0 and (
        scores[at - 1] < score or (scores[at - 1] == score and order[ranks[at - 1]] > order[rank])
    ):
        if at < len(scores):
            scores[at], ranks[at] = scores[at - 1], ranks[at - 1]
        at -= 1
    if at < len(scores):
        scores[at], ranks[at] = score, rank
    return min(size + 1, len(scores))


@inner
def relaxed_top(
    part: Part, asked: Asked, room: Room, touch: Touch, event: int, best: Float64s
) -> int:
    """Put the k best by the weights that hold into `best` and the heap; give their number.

    What all checks that hold weigh together bounds the score; only what may still be among the
    best is weighed conjunction by conjunction.
    """
    weights = part.weights
    touched, size = collected(part, asked, room, touch, event), 0
    for at in range(2, touch.hits[0], 2):
        number = touch.hits[at + 1]
        touch.bounds[touch.hits[at]] += weights.weight[number] if len(weights.weight) > 0 else 1.0
    for at in range(touched):
        if size == len(best):
            least = best[size - 1]
            if size == 0 or touch.bounds[at] * (1.0 + SLACK) + SLACK < least:
                continue
        rank = touch.ranks[at]
        score = weigh(part, room.marks, touch, rank)
        size = offer(best, room.heap, size, weights.order, (score, rank))
    return size


@inner
def relaxed_tops(
    part: Part, asked: Asked, room: Room, touch: Touch, best: Float64s, out: Int64s
) -> None:
    """Write for every event how many are among the k best, their ranks, and their scores."""
    k = best.shape[1]
    for event in range(best.shape[0]):
        size = relaxed_top(part, asked, room, touch, event, best[event])
        out[event * (k + 1)] = size
        for at in range(size):
            out[event * (k + 1) + 1 + at] = room.heap[at]
