"""Validation of an access index that was read from a file, before other kernels trust it.

Each kernel returns whether what the matching kernels rely on holds. They read nothing outside their
arrays, whatever these contain, and every loop is bounded by the size of an array.
"""

from typing import Any, Final, NamedTuple

from tidings.compiled.array_types import AnyArray, Bools, Int32s
from tidings.compiled.jit import inlined, kernel
from tidings.index.access.kernels.match import WIDTH
from tidings.index.access.kernels.partial_match import PARTIAL_WIDTH
from tidings.index.access.kernels.postings import CELL_BITS, FAN_BITS, SPREAD, Postings
from tidings.index.access.kernels.records import AMONG, HEAD, UNLIKE, Records

PROBES: Final = 32  # steps allowed per place of a hash table; tables that were written take about 2


class IndexSizes(NamedTuple):
    """The numbers of ranks, terms, slots and checks of an index."""

    ranks: int
    terms: int
    slots: int
    checks: int


class CheckMap(NamedTuple):
    """The places of records and checks, as `records_valid` finds them."""

    begins: Bools  # by word: whether a record starts there
    records: Int32s  # by check: its record
    places: Int32s  # by check: its first word
    firsts: Int32s  # by rank: its first check; one more for the end


class CheckedParts(NamedTuple):
    """The predicates of subscriptions that the records of an index check."""

    part: AnyArray  # by check: the predicate of the subscription
    numbers: Int32s  # by rank: the subscription
    firsts: Int32s  # by rank: its first check; one more for the end


@inlined
def check_size(words: Int32s, place: int, end: int, sizes: IndexSizes) -> int:
    """Return how many words the check at a place takes, or 0 if it is not a valid check."""
    word = words[place]
    if word >= 0:
        return 1 if word < sizes.terms else 0
    kind = ~word & 3
    if kind != AMONG:
        size = 2 if kind == UNLIKE else 5
        if ~word >> 2 >= sizes.slots or place + size > end:
            return 0
        known = kind != UNLIKE or 0 <= words[place + 1] < sizes.terms
        return size if known else 0
    if ~word != AMONG or place + 2 > end:
        return 0
    count = words[place + 1]
    if count < 1 or count > end - place - 2:
        return 0
    for member in range(place + 2, place + 2 + count):
        if words[member] < 0 or words[member] >= sizes.terms:
            return 0
    return int(2 + count)


@kernel
def records_valid(records: Records, sizes: IndexSizes, out: CheckMap) -> bool:
    """Return whether records lie in order of rank, each made of whole checks; write where.

    The number of a record's first check must be the number of checks before it. A subscription that
    can be reached more than once must have the `several` bit, or it would be reported twice.
    """
    words, offsets, checks = records.words, records.offsets, 0
    record = 0
    for rank in range(sizes.ranks):
        last = offsets[rank + 1]
        if offsets[rank] != record or last < record or last > len(words):
            return False
        out.firsts[rank] = checks
        first, count, several = record, 0, 0
        while record < last:
            # The first comparison protects the reads of the others.
            if last - record <= HEAD or words[record] >> 1 != rank or words[record + 2] != checks:
                return False
            end = words[record + 1]
            if end <= record + HEAD or end > last:
                return False
            out.begins[record] = True
            several |= words[record + HEAD] == ~AMONG
            place = record + HEAD
            while place < end:
                size = check_size(words, place, end, sizes)
                if size == 0 or checks == sizes.checks:
                    return False
                out.records[checks], out.places[checks] = record, place
                checks += 1
                place += size
            count += 1
            record = end
        if count > 1 and not all_several(words, first, last):
            return False
        if count == 1 and several and words[first] & 1 == 0:
            return False
    out.firsts[sizes.ranks] = checks
    return record == len(words) and checks == sizes.checks


@inlined
def all_several(words: Int32s, record: int, last: int) -> bool:
    """Return whether all records of a rank have the `several` bit."""
    while record < last:
        if words[record] & 1 == 0:
            return False
        record = words[record + 1]
    return True


@kernel
def trees_valid(postings: Postings) -> bool:
    """Return whether the trees of all slots follow the hash table, one behind the other."""
    node, total = postings.mask + 1, len(postings.heads) // 3 - 1
    for slot in range(len(postings.cells)):
        width = postings.cells[slot]
        if width == 0:
            continue
        first = postings.edges_from[slot]
        if width < 0 or width > 1 << CELL_BITS or postings.nodes[slot] != node:
            return False
        if first < 0 or first + width - 1 > len(postings.edges):
            return False
        node += width
        while width > 1:
            width = (width + 7) >> FAN_BITS
            node += width
        if node > total:
            return False
    return bool(node == total)


@kernel
def heads_valid(postings: Postings, width: int, terms: int) -> bool:
    """Return whether every list lies within the entries, and the hash table has a free place."""
    heads, mask = postings.heads, postings.mask
    total, end, used = len(heads) // 3 - 1, 0, 0
    for which in range(total + 1):
        key, start = heads[3 * which], heads[3 * which + 1]
        if start < end or start > len(postings.entries) or start % width != 0:
            return False
        # A search trusts the first row in the head and does not read the entry.
        if which > 0 and start > end and heads[3 * which - 1] != postings.entries[end]:
            return False
        end = start
        if key < -1 or key >= terms or (which > mask and key != -1):
            return False
        used += key >= 0
    return bool(heads[1] == 0 and end == len(postings.entries) and used <= mask)


@kernel
def keys_valid(postings: Postings) -> bool:
    """Return whether probing finds every key at its own place, in few steps.

    A key that occurs twice fails. There must be a free place, see `heads_valid`.
    """
    heads, mask, probes = postings.heads, postings.mask, 0
    for which in range(mask + 1):
        key = heads[3 * which]
        if key >= 0:
            place = (int(key) * SPREAD >> 12) & mask
            while heads[3 * place] != key:
                probes += 1
                # A crafted table could make every probe walk the whole table.
                if heads[3 * place] < 0 or probes > PROBES * (mask + 1):
                    return False
                place = (place + 1) & mask
            if place != which:
                return False
    return True


@kernel
def access_postings_valid(postings: Postings, begins: Bools, sizes: IndexSizes) -> bool:
    """Return whether postings point to records, and their next checks to terms or slots."""
    entries = postings.entries
    for entry in range(0, len(entries), WIDTH):
        row, check = entries[entry], entries[entry + 1]
        if row < 0 or row >= len(begins) or not begins[row]:
            return False
        if check >= sizes.terms or ~check > sizes.slots:
            return False
    return True


@kernel
def partial_postings_valid(
    postings: Postings, words: Int32s, checks: CheckMap, seen: Bools
) -> bool:
    """Return whether every posting is that of a check, and no event can lead to a check twice.

    Under a key, checks come in order and ask for that key; in the tree of a slot, each occurs once.
    """
    for which in range(postings.mask + 1):
        last = -1
        first, end = postings.heads[3 * which + 1], postings.heads[3 * which + 4]
        for entry in range(first, end, PARTIAL_WIDTH):
            if not posting_valid(postings.entries, entry, checks):
                return False
            number = postings.entries[entry + 2]
            place = checks.places[number]
            if number <= last:
                return False
            last = number
            if postings.entries[entry + 3] == 0:
                if words[place] != postings.heads[3 * which] or words[place] < 0:
                    return False
            elif words[place] != ~AMONG:
                return False
    for slot in range(len(postings.cells)):
        if postings.cells[slot] > 0 and not slot_valid(postings, words, checks, seen, slot):
            return False
    return True


@inlined
def posting_valid(entries: Int32s, entry: int, checks: CheckMap) -> bool:
    """Return whether a posting has the number, the record and the first word of one check."""
    number = entries[entry + 2]
    if number < 0 or number >= len(checks.places):
        return False
    right = entries[entry] == checks.records[number]
    return bool(right and entries[entry + 1] == checks.places[number])


@inlined
def slot_valid(postings: Postings, words: Int32s, checks: CheckMap, seen: Bools, slot: int) -> bool:
    """Return whether the tree of a slot has checks of that slot, each once."""
    first, width = postings.nodes[slot], postings.cells[slot]
    last = first + width
    while width > 1:
        width = (width + 7) >> FAN_BITS
        last += width
    start, end = postings.heads[3 * first + 1], postings.heads[3 * last + 1]
    for entry in range(start, end, PARTIAL_WIDTH):
        if not posting_valid(postings.entries, entry, checks):
            return False
        number = postings.entries[entry + 2]
        word = words[checks.places[number]]
        if word >= 0 or ~word & 3 == AMONG or ~word >> 2 != slot or seen[number]:
            return False
        seen[number] = True
    return True


@kernel
def largest_parts(part: AnyArray, numbers: Int32s, firsts: Int32s, out: Int32s) -> None:
    """Write for each subscription, by number, the largest predicate number of its checks."""
    for rank in range(len(numbers)):
        most = -1
        for check in range(firsts[rank], firsts[rank + 1]):
            most = max(most, int(part[check]))
        out[numbers[rank]] = most


@kernel
def nodes_valid(checked: CheckedParts, firsts: Any, nodes: Int32s) -> bool:
    """Return whether every predicate that a record checks is a node of its subscriber's graph.

    By subscription, `firsts` has where its predicates start in `nodes`, or -1.
    """
    for rank in range(len(checked.numbers)):
        first = firsts[checked.numbers[rank]]
        if first >= 0:
            for check in range(checked.firsts[rank], checked.firsts[rank + 1]):
                if nodes[first + checked.part[check]] < 0:
                    return False
    return True
