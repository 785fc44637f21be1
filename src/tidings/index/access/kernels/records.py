"""Conditions in arrays: what an event says is stamped, and conjunctions are checked against it.

A conjunction is a *record* in one stream of numbers, so that a look at it is one look at memory:

    rank * 2 + several, end, number of its first check, then its checks

`several` tells that its subscription may be found more than once. A check begins with

    entry >= 0              a predicate of the vocabulary, which holds if the event stamped it
    ~(4 * slot + BETWEEN)   two bounds, each as two numbers: some value of the slot lies within
    ~(4 * slot + DIFFERS)   one bound: some value of the slot is another
    ~AMONG                  a count and so many entries: one of them is stamped (`in`)

A slot is an attribute and a family. Values are compared as whole numbers that have the order of
the floats. A value is a pair (upper, lower): equal for a point; for a range, upper is its high end
and lower its low end if overlapping is enough, and the other way round if it must be contained. So
`low <= upper and lower <= high` says in all cases whether an interval holds.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_types import AnyArray, Float64s, Int32s, Int64s
from tidings.compiled.jit import inlined, inner, kernel

BETWEEN: Final = 0
DIFFERS: Final = 1
AMONG: Final = 2
HEAD: Final = 3  # numbers before the checks of a record
NEVER: Final = (1 << 31) - 1
MASK: Final = 0xFFFFFFFF
SAMPLE: Final = 7  # of so many events and one, one counts, for all of them


class Rows(NamedTuple):
    """Records in order of rank, and what each rank is."""

    words: Int32s
    offsets: Int32s  # by rank: its first record; one more for the end
    notes: Int32s  # by rank: the number of the subscription, and the version in which it died


class Weights(NamedTuple):
    """What checks are: which predicate of the subscription, and its weight; nothing if all are 1.

    And of each rank its place in the order of ids.
    """

    part: AnyArray
    weight: Float64s
    order: Int32s


class Phrases(NamedTuple):
    """What values say: entries to stamp, and a code for their slot, if it is not -1."""

    start: Int32s
    entries: Int32s
    slot: Int32s
    code: Int64s


class Said(NamedTuple):
    """Events in numbers."""

    spans: Int64s  # four an event: its first of `heard` and the one after, and so for its values
    heard: Int32s  # a phrase, or ~entry
    slots: Int32s
    upper: Int64s
    lower: Int64s
    sure: Float64s  # probabilities of what is heard, then of the values; or nothing


class Marks(NamedTuple):
    """What holds for the event of the current epoch; of one reader."""

    epoch: Int32s
    stamp: Int32s  # of entries; then, from `always` on, one that always is, and those of slots
    always: int
    slot_stamp: Int32s  # the end of `stamp`
    slot_span: Int32s  # two a slot: where its values begin and end
    entry_sure: Float64s
    slot_sure: Float64s
    ids: Int32s  # the entries that are stamped
    slots: Int32s  # the values, slot by slot
    upper: Int64s
    lower: Int64s


class Hits(NamedTuple):
    """How often entries and slots came so far; readers share it, and may lose a count."""

    entries: Int32s
    slots: Int32s


@inlined
def mark(marks: Marks, said: Said, phrases: Phrases, hits: Hits, event: int) -> tuple[int, int]:
    """Stamp what an event says; give how many entries and values that is.

    Stamps of older epochs count for nothing.
    """
    epoch = marks.epoch[0] + 1
    marks.epoch[0] = epoch
    marks.stamp[marks.always] = epoch
    ids, values = 0, 0
    unsure = len(said.sure) > 0
    for at in range(said.spans[4 * event + 2], said.spans[4 * event + 3]):
        chance = said.sure[len(said.heard) + at] if unsure else 1.0
        value = (said.slots[at], said.upper[at], said.lower[at])
        values = mark_value(marks, hits, values, value, chance)
    for at in range(said.spans[4 * event], said.spans[4 * event + 1]):
        chance = said.sure[at] if unsure else 1.0
        phrase = said.heard[at]
        if phrase < 0:
            ids = mark_entry(marks, hits, ids, ~phrase, chance)
            continue
        for place in range(phrases.start[phrase], phrases.start[phrase + 1]):
            ids = mark_entry(marks, hits, ids, phrases.entries[place], chance)
        if phrases.slot[phrase] >= 0:
            code = phrases.code[phrase]
            values = mark_value(marks, hits, values, (phrases.slot[phrase], code, code), chance)
    return ids, values


@inlined
def mark_entry(marks: Marks, hits: Hits, ids: int, entry: int, chance: float) -> int:
    """Stamp an entry; give how many there are now."""
    if marks.stamp[entry] == marks.epoch[0]:
        return ids
    marks.stamp[entry] = marks.epoch[0]
    if marks.epoch[0] & SAMPLE == 0:
        hits.entries[entry] += SAMPLE + 1
    marks.ids[ids] = entry
    if len(marks.entry_sure) > 0:
        marks.entry_sure[entry] = chance
    return ids + 1


@inlined
def mark_value(
    marks: Marks, hits: Hits, values: int, value: tuple[int, int, int], chance: float
) -> int:
    """Note a value of a slot; give how many there are now."""
    slot, upper, lower = value
    if marks.slot_stamp[slot] != marks.epoch[0]:
        marks.slot_stamp[slot] = marks.epoch[0]
        marks.slot_span[2 * slot] = values
        if marks.epoch[0] & SAMPLE == 0:
            hits.slots[slot] += SAMPLE + 1
        if len(marks.slot_sure) > 0:
            marks.slot_sure[slot] = chance
    marks.slot_span[2 * slot + 1] = values + 1
    marks.slots[values] = slot
    marks.upper[values] = upper
    marks.lower[values] = lower
    return values + 1


@inlined
def long(words: Int32s, at: int) -> int:
    """Read one bound."""
    high = np.int64(words[at]) << 32
    return high | (np.int64(words[at + 1]) & MASK)  # type: ignore[return-value]


@inlined
def check_end(words: Int32s, at: int) -> int:
    """Give where the check at a place ends."""
    if words[at] >= 0:
        return at + 1
    kind = ~words[at] & 3
    return at + (5 if kind == BETWEEN else 3 if kind == DIFFERS else 2 + words[at + 1])


@inlined
def check_holds(words: Int32s, at: int, marks: Marks) -> bool:
    """Tell whether one check holds."""
    if words[at] >= 0:
        return bool(marks.stamp[words[at]] == marks.epoch[0])
    return other_holds(words, at, marks)


@inner
def other_holds(words: Int32s, at: int, marks: Marks) -> bool:
    """Tell whether some value of the slot satisfies the check, or some member is stamped."""
    code = ~words[at]
    if code & 3 == AMONG:
        return first_member(words, at, marks) >= 0
    slot = code >> 2
    if marks.slot_stamp[slot] != marks.epoch[0]:
        return False
    low = long(words, at + 1)
    high = long(words, at + 3) if code & 3 == BETWEEN else low
    for each in range(marks.slot_span[2 * slot], marks.slot_span[2 * slot + 1]):
        upper, lower = marks.upper[each], marks.lower[each]
        if code & 3 == BETWEEN:
            if low <= upper and lower <= high:
                return True
        elif upper < lower:
            if not upper <= low <= lower:
                return True
        elif upper != low or lower != low:
            return True
    return False


@inlined
def first_member(words: Int32s, at: int, marks: Marks) -> int:
    """Give the first stamped entry of an `in`, or -1."""
    for each in range(at + 2, at + 2 + words[at + 1]):
        if marks.stamp[words[each]] == marks.epoch[0]:
            return words[each]
    return -1


@inlined
def row_holds(words: Int32s, row: int, marks: Marks) -> int:
    """Give how many checks of a record were made, negative if one failed."""
    at, end, made = row + HEAD, words[row + 1], 0
    while at < end:
        made += 1
        if not check_holds(words, at, marks):
            return -made
        at = check_end(words, at)
    return made


@inner
def find_by_scan(
    rows: Rows, seen: tuple[int, int], marks: Marks, looked: Int64s, out: Int32s
) -> int:
    """Write the ranks that cover the marked event, by looking at every record: the naive check.

    `seen` is how many words there are, and the version.
    """
    size, version = seen
    found, row, last, checks, records = 0, 0, -1, 0, 0
    while row < size:
        rank = rows.words[row] >> 1
        if rank != last and rows.notes[2 * rank + 1] > version:
            made = row_holds(rows.words, row, marks)
            checks += abs(made)
            records += 1
            if made > 0:
                out[found] = rank
                found += 1
                last = rank
        row = rows.words[row + 1]
    looked[0] += checks
    looked[1] += records
    return found


class Flat(NamedTuple):
    """Conjunctions as columns: their first checks, and of each check entry, slot and bounds.

    An entry is -1 for intervals; a slot of -1 is an `in`, whose members go from low to high. A NaN
    as high bound means that a value differs from the low one.
    """

    start: Int64s
    rank2: Int64s
    entry: Int32s
    slot: Int32s
    low: Int64s
    high: Int64s
    differs: npt.NDArray[np.bool_]
    members: Int32s


@inlined
def put_long(words: Int32s, at: int, value: int) -> None:
    """Write one bound."""
    low = value & MASK
    words[at] = value >> 32
    words[at + 1] = low - (1 << 32) if low >= 1 << 31 else low


@kernel
def check_words(flat: Flat) -> Int64s:
    """Give how many numbers each check takes."""
    out = np.empty(len(flat.entry), np.int64)
    for check in range(len(out)):
        if flat.entry[check] >= 0:
            out[check] = 1
        elif flat.slot[check] < 0:
            out[check] = 2 + flat.high[check] - flat.low[check]
        else:
            out[check] = 3 if flat.differs[check] else 5
    return out


@kernel
def write_records(flat: Flat, ends: Int64s, words: Int32s) -> None:
    """Write all records; `ends` says where each ends."""
    at = 0
    for row in range(len(flat.rank2)):
        words[at], words[at + 1], words[at + 2] = flat.rank2[row], ends[row], flat.start[row]
        at += HEAD
        for check in range(flat.start[row], flat.start[row + 1]):
            if flat.entry[check] >= 0:
                words[at] = flat.entry[check]
                at += 1
            elif flat.slot[check] < 0:
                words[at], words[at + 1] = ~AMONG, flat.high[check] - flat.low[check]
                at += 2
                for each in range(flat.low[check], flat.high[check]):
                    words[at] = flat.members[each]
                    at += 1
            else:
                kind = DIFFERS if flat.differs[check] else BETWEEN
                words[at] = ~(4 * flat.slot[check] + kind)
                put_long(words, at + 1, flat.low[check])
                if kind == BETWEEN:
                    put_long(words, at + 3, flat.high[check])
                at += 5 if kind == BETWEEN else 3


@kernel
def count_records(rows: Rows, ranks: Int64s) -> tuple[int, int, int]:
    """Give how many rows, checks and members of `in` some ranks have."""
    found, checks, members = 0, 0, 0
    for rank in ranks:
        row = rows.offsets[rank]
        while row < rows.offsets[rank + 1]:
            at = row + HEAD
            while at < rows.words[row + 1]:
                if rows.words[at] == ~AMONG:
                    members += rows.words[at + 1]
                checks += 1
                at = check_end(rows.words, at)
            found += 1
            row = rows.words[row + 1]
    return found, checks, members


@kernel
def read_records(rows: Rows, ranks: Int64s, flat: Flat, sizes: Int64s) -> None:
    """Read the records of some ranks back into columns: `rank2` is the place among these.

    `start` gets the number of each row's first check, `sizes` how many it has.
    """
    words, found, checks, members = rows.words, 0, 0, 0
    for place in range(len(ranks)):
        row = rows.offsets[ranks[place]]
        while row < rows.offsets[ranks[place] + 1]:
            flat.rank2[found], flat.start[found] = 2 * place, words[row + 2]
            at, first = row + HEAD, checks
            while at < words[row + 1]:
                members = read_check(words, at, flat, checks, members)
                checks += 1
                at = check_end(words, at)
            sizes[found] = checks - first
            found += 1
            row = words[row + 1]


@inner
def read_check(words: Int32s, at: int, flat: Flat, check: int, members: int) -> int:
    """Read one check; give how many members there are now."""
    word = words[at]
    flat.entry[check], flat.slot[check] = -1, -2
    flat.low[check], flat.high[check], flat.differs[check] = 0, 0, False
    if word >= 0:
        flat.entry[check] = word
    elif ~word & 3 == AMONG:
        flat.slot[check], flat.low[check] = -1, members
        for each in range(at + 2, at + 2 + words[at + 1]):
            flat.members[members] = words[each]
            members += 1
        flat.high[check] = members
    else:
        flat.slot[check], flat.low[check] = ~word >> 2, long(words, at + 1)
        flat.differs[check] = ~word & 3 == DIFFERS
        if ~word & 3 == BETWEEN:
            flat.high[check] = long(words, at + 3)
    return members
