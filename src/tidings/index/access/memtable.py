"""The memtable: the newest subscriptions as records without postings, tested one by one.

    words      | record | record | record | free ...        appended, never changed
    ranks      number, tombstone  per subscription          tombstones are set later
    offsets    first word of each subscription

A reader knows how many words there were in its snapshot and never looks behind them, so the writer
appends without a copy and without a lock.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Int32s, Int64s
from tidings.index.access.encoding import EncodedSubscriptions, active_parts
from tidings.index.access.kernels.match import SegmentView
from tidings.index.access.kernels.records import AMONG, HEAD, NEVER, UNLIKE, CheckWeights, Records
from tidings.index.access.postings import NO_POSTINGS
from tidings.index.access.scan_blocks import NO_BLOCKS
from tidings.index.access.segment import Segment, picked
from tidings.index.access.vocabulary import Check, Vocabulary
from tidings.model.records import Subscription

RECORDS: Final = 512
WORDS: Final = 1 << 15
CHECKS: Final = 1 << 13
_FLOAT: Final = Struct("<d")
_HALVES: Final = Struct("<ii")


class StoredConjunction(NamedTuple):
    """The checks of one conjunction as words; the predicate and the weight of each check."""

    words: Sequence[int] | Int32s
    parts: Sequence[int] | Any
    weights: Sequence[float] | Any


def conjunctions_of(subscription: Subscription, vocabulary: Vocabulary) -> list[StoredConjunction]:
    """Encode a subscription."""
    conjunctions = []
    for parts in active_parts(subscription):
        words: list[int] = []
        for _, _, predicate in parts:
            words += _words(vocabulary.check(predicate))
        numbers, weights, _ = zip(*parts, strict=True)
        conjunctions.append(StoredConjunction(words, numbers, weights))
    return conjunctions


def _words(check: Check) -> list[int]:
    term, slot, low, high, members, kind = check
    if term >= 0:
        return [term]
    if slot < 0:
        return [~AMONG, len(members), *members]
    if kind == UNLIKE:
        return [~(4 * slot + UNLIKE), *members]
    return [~(4 * slot + kind), *_halves(low), *_halves(high)]


def _halves(bound: float) -> tuple[int, int]:
    """Return a float as two words, which together have its order; see `ordered`."""
    low, high = _HALVES.unpack(_FLOAT.pack(bound + 0.0))
    return (high, low) if high >= 0 else (high ^ 0x7FFF_FFFF, ~low)


def stored_conjunctions(part: "Segment | Memtable", rank: int) -> list[StoredConjunction]:
    """Return the conjunctions of a rank as they are stored."""
    words, weights, conjunctions = part.records.words, part.weights, []
    record, last = part.records.offsets[rank], part.records.offsets[rank + 1]
    while record < last:
        end, first = words[record + 1], words[record + 2]
        count = _count_checks(words, record)
        weight = weights.weight[first : first + count] if len(weights.weight) else [1.0] * count
        parts = weights.part[first : first + count]
        conjunctions.append(StoredConjunction(words[record + HEAD : end], parts, weight))
        record = end
    return conjunctions


def _count_checks(words: Int32s, record: int) -> int:
    # `check_end` in Python: a compiled call per check would cost more.
    place, count = record + HEAD, 0
    while place < words[record + 1]:
        if words[place] >= 0:
            place += 1
        else:
            kind = ~words[place] & 3
            place += 2 + words[place + 1] if kind == AMONG else 2 if kind == UNLIKE else 5
        count += 1
    return count


class Memtable:
    """Room for new records. What a snapshot has seen never changes, but for tombstones."""

    def __init__(self) -> None:
        self.records = Records(
            np.zeros(WORDS, np.int32),
            np.zeros(RECORDS + 1, np.int32),
            np.full(2 * RECORDS, NEVER, np.int32),
        )
        self.scores = np.zeros(RECORDS)
        order = np.zeros(RECORDS, np.int32)
        self.weights = CheckWeights(np.zeros(CHECKS, np.uint16), np.ones(CHECKS), order)
        self.size = self.count = self.dead = 0
        self._checks = 0
        self._ordered: tuple[int, Int32s] = 0, np.zeros(RECORDS, np.int32)

    def fits(self, conjunctions: Sequence[StoredConjunction]) -> bool:
        """Return whether there is room for another subscription."""
        words = sum(HEAD + len(one.words) for one in conjunctions)
        checks = self._checks + sum(len(one.parts) for one in conjunctions)
        room = self.size + words <= WORDS and checks <= CHECKS
        narrow = all(max(one.parts) < 1 << 16 for one in conjunctions)
        return self.count < RECORDS and room and narrow

    def append(self, number: int, score: float, conjunctions: Sequence[StoredConjunction]) -> int:
        """Append a subscription; return its rank here."""
        rank, start = self.count, self.size
        words, offsets, ranks = self.records
        for one in conjunctions:
            end = start + HEAD + len(one.words)
            words[start], words[start + 1], words[start + 2] = 2 * rank, end, self._checks
            words[start + HEAD : end] = one.words
            last = self._checks + len(one.parts)
            self.weights.part[self._checks : last] = one.parts
            self.weights.weight[self._checks : last] = one.weights
            self._checks, start = last, end
        ranks[2 * rank], self.scores[rank] = number, score
        offsets[rank + 1] = start
        self.size, self.count = start, rank + 1
        return rank

    def view(self, size: int, version: int, ids: Sequence[str]) -> SegmentView:
        """Return the arrays for kernels, as of a number of words and a version."""
        weights = self.weights._replace(order=self._order(ids))
        return SegmentView(self.records, NO_POSTINGS, NO_BLOCKS, weights, size, version)

    def bury(self, ranks: Any, version: int) -> None:
        """Set tombstones: skip some ranks from a version on."""
        self.records.ranks[2 * np.asarray(ranks) + 1] = version
        self.dead += np.size(ranks)

    def encoded(self, version: int, ids: Sequence[str]) -> EncodedSubscriptions:
        """Return the subscriptions that are alive at a version; `ids` by number."""
        tombstones = self.records.ranks[1 : 2 * self.count : 2]
        return self.picked(np.flatnonzero(tombstones > version), ids)

    def picked(self, ranks: Int64s, ids: Sequence[str]) -> EncodedSubscriptions:
        """Return the subscriptions of some ranks; `ids` by number."""
        weights = self.weights._replace(order=self._order(ids))
        if np.all(weights.weight[: self._checks] == 1.0):
            weights = weights._replace(weight=np.empty(0))
        return picked(self.records, weights, self.scores, ranks)

    def _order(self, ids: Sequence[str]) -> Int32s:
        """Return by rank the place in the order of ids, which are by number; cached."""
        count, order = self._ordered
        if count != self.count:
            count = self.count
            names = [ids[number] for number in self.records.ranks[: 2 * count : 2].tolist()]
            order = np.zeros(RECORDS, np.int32)
            order[sorted(range(count), key=names.__getitem__)] = np.arange(count)
            self._ordered = count, order
        return order

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        held = (*self.records, *self.weights, self.scores)
        return sum(column.nbytes for column in held)
