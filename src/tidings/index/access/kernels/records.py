"""Records: conjunctions as words in one stream, and the stamps of an event they are tested against.

A conjunction is a *record* of int32 words; looking at it touches one place in memory:

    word 0          rank * 2 + several    `several`: its subscription may be reached more than once
    word 1          end                   the word after the record
    word 2          first check           the number of its first check, which counts all checks
    word 3 ...      its checks, the most selective first

A check starts with one of these words:

    term >= 0                 a predicate of the vocabulary; it holds if the event stamped the term
    ~(4 * slot + BETWEEN)     two bounds, two words each: some value of the slot lies within
    ~(4 * slot + OUTSIDE)     the same: some value of the slot lies outside
    ~AMONG                    a count and that many terms: one of them is stamped (`in`)
    ~(4 * slot + UNLIKE)      a term of the slot's family: some value does not stamp it

A slot is an attribute together with a family of values. Values are compared as integers that have
the order of the floats. Each is a pair (upper, lower): equal for a point; for a range, upper is its
high end and lower its low end if overlapping is enough, and the reverse if it must be contained.
So `low <= upper and lower <= high` decides whether an interval holds in all three cases, and
`upper <= high and low <= lower` whether nothing lies outside.
"""

from typing import Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import AnyArray, Float64s, Int8s, Int32s, Int64s
from tidings.compiled.jit import inlined, inner, kernel

BETWEEN: Final = 0
OUTSIDE: Final = 1
AMONG: Final = 2
UNLIKE: Final = 3
HEAD: Final = 3  # words of a record before its checks
NEVER: Final = (1 << 31) - 1  # the tombstone of a subscription that is alive
MASK: Final = 0xFFFFFFFF
SAMPLE: Final = 7  # one event in SAMPLE + 1 is counted, for all of them


class Records(NamedTuple):
    """Records in order of rank, and what each rank stands for."""

    words: Int32s
    offsets: Int32s  # by rank: its first record; one more for the end
    ranks: Int32s  # two words a rank: the subscription's number, and its tombstone version


class CheckWeights(NamedTuple):
    """By number of a check: which predicate of the subscription it is, and its weight."""

    part: AnyArray
    weight: Float64s  # empty if all weights are 1
    order: Int32s  # by rank, not by check: its place in the order of ids


class CachedTerms(NamedTuple):
    """By number of a cached text: the terms that it satisfies, and its code in a slot."""

    start: Int32s
    terms: Int32s
    slot: Int32s  # -1 where no negation compares texts of the attribute
    code: Int64s


class EncodedEvents(NamedTuple):
    """Events as numbers of a vocabulary."""

    spans: Int64s  # four an event: first and last of its `items`, first and last of its values
    items: Int32s  # the number of a cached text, or ~term
    slots: Int32s  # of the values, slot by slot within an event
    upper: Int64s
    lower: Int64s
    probabilities: Float64s  # of the items, then of the values; empty if all are 1


class Stamps(NamedTuple):
    """The terms and values of the event of the current epoch; scratch memory of one reader.

    Stamps of earlier epochs mean nothing, so nothing is cleared between events.
    """

    epoch: Int32s  # and how often terms were stamped again
    stamp: Int32s  # by term; then one that is always current, at `always`; then those of slots
    always: int
    slot_stamp: Int32s  # a view of the end of `stamp`
    slot_span: Int32s  # two a slot: where its values start and end
    term_probability: Float64s  # empty if all are 1
    slot_probability: Float64s
    terms: Int32s  # the terms that are stamped; from the end, those stamped again
    slots: Int32s  # the values, slot by slot
    upper: Int64s
    lower: Int64s


class HitCounts(NamedTuple):
    """Counts of terms and slots in events; shared by readers without a lock, so some are lost."""

    terms: Int32s
    slots: Int32s


@inlined
def count_up_to(ascending: Int64s, first: int, count: int, value: int) -> int:
    """Return how many of `count` ascending numbers from `first` on are <= value; O(log count)."""
    low = first
    while count > 0:
        half = count >> 1
        if ascending[low + half] <= value:
            low += half + 1
            count -= half + 1
        else:
            count = half
    return int(low - first)


@inlined
def stamp_event(
    stamps: Stamps, events: EncodedEvents, cached: CachedTerms, counts: HitCounts, event: int
) -> tuple[int, int]:
    """Start an epoch and stamp what an event satisfies; return how many terms and values it has."""
    epoch = stamps.epoch[0] + 1
    stamps.epoch[0], stamps.epoch[1] = epoch, 0
    stamps.stamp[stamps.always] = epoch
    terms, values = 0, 0
    uncertain = len(events.probabilities) > 0
    for place in range(events.spans[4 * event + 2], events.spans[4 * event + 3]):
        chance = events.probabilities[len(events.items) + place] if uncertain else 1.0
        value = (events.slots[place], events.upper[place], events.lower[place])
        values = add_value(stamps, counts, values, value, chance)
    for place in range(events.spans[4 * event], events.spans[4 * event + 1]):
        chance = events.probabilities[place] if uncertain else 1.0
        text = events.items[place]
        if text < 0:
            terms = stamp_term(stamps, counts, terms, ~text, chance)
            continue
        for position in range(cached.start[text], cached.start[text + 1]):
            terms = stamp_term(stamps, counts, terms, cached.terms[position], chance)
        if cached.slot[text] >= 0:
            code = cached.code[text]
            values = add_value(stamps, counts, values, (cached.slot[text], code, code), chance)
    return terms, values


@inlined
def stamp_term(stamps: Stamps, counts: HitCounts, terms: int, term: int, chance: float) -> int:
    """Stamp a term; return how many terms are stamped now."""
    if stamps.stamp[term] == stamps.epoch[0]:
        # Another value of a list has the same term: `times_stamped` counts these, from the end.
        stamps.epoch[1] += 1
        stamps.terms[len(stamps.terms) - stamps.epoch[1]] = term
        return terms
    stamps.stamp[term] = stamps.epoch[0]
    # Estimates of selectivity need no exact counts: a sample costs an eighth of the cache misses.
    if stamps.epoch[0] & SAMPLE == 0:
        counts.terms[term] += SAMPLE + 1
    stamps.terms[terms] = term
    if len(stamps.term_probability) > 0:
        stamps.term_probability[term] = chance
    return terms + 1


@inlined
def add_value(
    stamps: Stamps, counts: HitCounts, values: int, value: tuple[int, int, int], chance: float
) -> int:
    """Add a value (slot, upper, lower); return how many values there are now."""
    slot, upper, lower = value
    if stamps.slot_stamp[slot] != stamps.epoch[0]:
        stamps.slot_stamp[slot] = stamps.epoch[0]
        stamps.slot_span[2 * slot] = values
        if stamps.epoch[0] & SAMPLE == 0:
            counts.slots[slot] += SAMPLE + 1
        if len(stamps.slot_probability) > 0:
            stamps.slot_probability[slot] = chance
    stamps.slot_span[2 * slot + 1] = values + 1
    stamps.slots[values] = slot
    stamps.upper[values] = upper
    stamps.lower[values] = lower
    return values + 1


@inlined
def read_bound(words: Int32s, place: int) -> int:
    """Return a bound, which is 64 bits in two words, the high half first."""
    high = np.int64(words[place]) << 32
    return high | (np.int64(words[place + 1]) & MASK)  # type: ignore[return-value]


@inlined
def check_end(words: Int32s, place: int) -> int:
    """Return the word after a check."""
    if words[place] >= 0:
        return place + 1
    kind = ~words[place] & 3
    return place + (2 + words[place + 1] if kind == AMONG else 2 if kind == UNLIKE else 5)


@inlined
def check_holds(words: Int32s, place: int, stamps: Stamps) -> bool:
    """Return whether one check holds."""
    if words[place] >= 0:
        return bool(stamps.stamp[words[place]] == stamps.epoch[0])
    return comparison_holds(words, place, stamps)


@inner
def comparison_holds(words: Int32s, place: int, stamps: Stamps) -> bool:
    """Return whether some value of the slot satisfies the check, or some member is stamped.

    Not inlined: most checks are terms, and the loop would bloat every caller.
    """
    code = ~words[place]
    if code & 3 == AMONG:
        return first_member(words, place, stamps) >= 0
    slot = code >> 2
    if stamps.slot_stamp[slot] != stamps.epoch[0]:
        return False
    first, last = stamps.slot_span[2 * slot], stamps.slot_span[2 * slot + 1]
    if code & 3 == UNLIKE:
        # Some value is unlike if fewer values stamped the term than there are.
        return last - first > times_stamped(stamps, words[place + 1], last - first)
    low, high = read_bound(words, place + 1), read_bound(words, place + 3)
    for value in range(first, last):
        upper, lower = stamps.upper[value], stamps.lower[value]
        if code & 3 == BETWEEN:
            if low <= upper and lower <= high:
                return True
        elif upper > high or lower < low:
            return True
    return False


@inlined
def times_stamped(stamps: Stamps, term: int, values: int) -> int:
    """Return how many of the event's `values` stamped a term."""
    if stamps.stamp[term] != stamps.epoch[0]:
        return 0
    times = 1
    if values > 1:
        for place in range(len(stamps.terms) - stamps.epoch[1], len(stamps.terms)):
            times += stamps.terms[place] == term
    return times


@inlined
def first_member(words: Int32s, place: int, stamps: Stamps) -> int:
    """Return the first stamped term of an `in`, or -1."""
    for member in range(place + 2, place + 2 + words[place + 1]):
        if stamps.stamp[words[member]] == stamps.epoch[0]:
            return words[member]
    return -1


@inlined
def record_holds(words: Int32s, record: int, stamps: Stamps) -> int:
    """Return how many checks of a record were tested, negative if the last of them failed."""
    place, end, tested = record + HEAD, words[record + 1], 0
    while place < end:
        tested += 1
        if not check_holds(words, place, stamps):
            return -tested
        place = check_end(words, place)
    return tested


@inner
def scan_records(
    records: Records, extent: tuple[int, int], stamps: Stamps, counters: Int64s, out: Int32s
) -> int:
    """Write the ranks that cover the stamped event, testing every record; return their number.

    `extent` holds how many words there are, and the version.
    """
    size, version = extent
    count, record, last, checks, tested_records = 0, 0, -1, 0, 0
    while record < size:
        rank = records.words[record] >> 1
        # Records of a rank are adjacent: once one holds, the others are skipped.
        if rank != last and records.ranks[2 * rank + 1] > version:
            tested = record_holds(records.words, record, stamps)
            checks += abs(tested)
            tested_records += 1
            if tested > 0:
                out[count] = rank
                count += 1
                last = rank
        record = records.words[record + 1]
    counters[0] += checks
    counters[1] += tested_records
    return count


class CheckColumns(NamedTuple):
    """Conjunctions as columns: the first check of each, and term, slot and bounds of each check.

    A term of -1 is a comparison. The members of an AMONG, which has no slot, and of an UNLIKE go
    from low to high.
    """

    start: Int64s
    rank2: Int64s  # word 0 of the record
    term: Int32s
    slot: Int32s
    low: Int64s
    high: Int64s
    kind: Int8s
    members: Int32s


@inlined
def write_bound(words: Int32s, place: int, value: int) -> None:
    """Write a bound as two words."""
    low = value & MASK
    # Signed words: NumPy refuses larger numbers where the kernel is not compiled.
    words[place] = value >> 32
    words[place + 1] = low - (1 << 32) if low >= 1 << 31 else low


@kernel
def check_words(checks: CheckColumns) -> Int64s:
    """Return how many words each check takes."""
    out = np.empty(len(checks.term), np.int64)
    for check in range(len(out)):
        if checks.term[check] >= 0:
            out[check] = 1
        elif checks.slot[check] < 0:
            out[check] = 2 + checks.high[check] - checks.low[check]
        else:
            out[check] = 2 if checks.kind[check] == UNLIKE else 5
    return out


@kernel
def write_records(checks: CheckColumns, ends: Int64s, words: Int32s) -> None:
    """Write all records; `ends` has the word after each."""
    place = 0
    for row in range(len(checks.rank2)):
        words[place], words[place + 1] = checks.rank2[row], ends[row]
        words[place + 2] = checks.start[row]
        place += HEAD
        for check in range(checks.start[row], checks.start[row + 1]):
            if checks.term[check] >= 0:
                words[place] = checks.term[check]
                place += 1
            elif checks.slot[check] < 0:
                words[place], words[place + 1] = ~AMONG, checks.high[check] - checks.low[check]
                place += 2
                for member in range(checks.low[check], checks.high[check]):
                    words[place] = checks.members[member]
                    place += 1
            else:
                words[place] = ~(4 * checks.slot[check] + checks.kind[check])
                if checks.kind[check] == UNLIKE:
                    words[place + 1] = checks.members[checks.low[check]]
                    place += 2
                else:
                    write_bound(words, place + 1, checks.low[check])
                    write_bound(words, place + 3, checks.high[check])
                    place += 5


@kernel
def count_records(records: Records, ranks: Int64s) -> tuple[int, int, int]:
    """Return how many records, checks and members of these some ranks have."""
    count, checks, members = 0, 0, 0
    for rank in ranks:
        record = records.offsets[rank]
        while record < records.offsets[rank + 1]:
            place = record + HEAD
            while place < records.words[record + 1]:
                kind = ~records.words[place] & 3 if records.words[place] < 0 else BETWEEN
                members += records.words[place + 1] if kind == AMONG else int(kind == UNLIKE)
                checks += 1
                place = check_end(records.words, place)
            count += 1
            record = records.words[record + 1]
    return count, checks, members


@kernel
def read_records(records: Records, ranks: Int64s, out: CheckColumns, sizes: Int64s) -> None:
    """Read the records of some ranks back into columns: the inverse of `write_records`.

    `rank2` gets twice the position among `ranks`, `start` the number of each record's first check,
    and `sizes` how many checks it has.
    """
    words, count, checks, members = records.words, 0, 0, 0
    for position in range(len(ranks)):
        record = records.offsets[ranks[position]]
        while record < records.offsets[ranks[position] + 1]:
            out.rank2[count], out.start[count] = 2 * position, words[record + 2]
            place, first = record + HEAD, checks
            while place < words[record + 1]:
                members = read_check(words, place, out, checks, members)
                checks += 1
                place = check_end(words, place)
            sizes[count] = checks - first
            count += 1
            record = words[record + 1]


@inner
def read_check(words: Int32s, place: int, out: CheckColumns, check: int, members: int) -> int:
    """Read one check into the columns; return how many members there are now."""
    word = words[place]
    out.term[check], out.slot[check] = -1, -2
    out.low[check], out.high[check], out.kind[check] = 0, 0, BETWEEN
    if word >= 0:
        out.term[check] = word
        return members
    kind = ~word & 3
    out.kind[check] = kind
    out.slot[check] = -1 if kind == AMONG else ~word >> 2
    if kind in (BETWEEN, OUTSIDE):
        out.low[check] = read_bound(words, place + 1)
        out.high[check] = read_bound(words, place + 3)
        return members
    out.low[check] = members
    for member in range(place + (2 if kind == AMONG else 1), check_end(words, place)):
        out.members[members] = words[member]
        members += 1
    out.high[check] = members
    return members
