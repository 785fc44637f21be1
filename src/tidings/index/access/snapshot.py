"""Snapshots: the version of the index that a reader holds for as long as it reads.

A snapshot has the table of subscriptions, the segments, the memtable and the vocabulary. Writers
append where no reader looks, or replace a part, so that a snapshot never changes.
"""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from struct import Struct
from sys import getsizeof
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from tidings.compiled.array_types import Bools, Float64s, Int32s, Int64s
from tidings.index.access.encoding import EncodedSubscriptions, active_parts
from tidings.index.access.kernels.match import SegmentView
from tidings.index.access.kernels.postings import FREE, fill_id_table
from tidings.index.access.kernels.records import AMONG, HEAD, NEVER, UNLIKE, CheckWeights, Records
from tidings.index.access.postings import NO_POSTINGS
from tidings.index.access.scan_blocks import NO_BLOCKS
from tidings.index.access.segment import Segment, picked
from tidings.index.access.terms import FLOAT_BYTES, INT_BYTES
from tidings.index.access.vocabulary import Check, Vocabulary
from tidings.index.protocol import own_score
from tidings.model.records import Subscription

# Tables of subscriptions: by number, and the numbers by id.

VALID_SCORE: Final = 1e99
"""Scores below this are valid, whatever the limit of the model is."""

TOMBSTONE: Final = -2
"""A cell whose number was removed; a search for another id continues behind it."""


class SubscriptionList(Sequence[Subscription | None]):
    """Subscriptions by number. One that was rescored is built when it is first read."""

    def __init__(self, held: Iterable[Subscription | None] = ()) -> None:
        self.held = list(held)  # as they were added
        self.scores: dict[int, float] = {}  # of those that are still to be built

    def __len__(self) -> int:
        return len(self.held)

    def __getitem__(self, number: Any) -> Any:
        score, subscription = self.scores.get(number), self.held[number]
        if score is None or subscription is None:
            return subscription
        rescored = self.held[number] = replace(subscription, score=score)
        self.scores.pop(number, None)
        return rescored

    def many(self, numbers: Sequence[int]) -> list[Any]:
        """Return the subscriptions of some numbers."""
        get = self.__getitem__ if self.scores else self.held.__getitem__
        return [*map(get, numbers)]


class SubscriptionTable:
    """Subscriptions by number, and where their records are.

    Numbers of removed subscriptions are reused only by a later table, see `kept`.
    """

    def __init__(
        self, subscriptions: Iterable[Subscription | None] = (), ids: Iterable[str] = ()
    ) -> None:
        self.subscriptions = SubscriptionList(subscriptions)
        self.ids = list(ids)
        self.free: list[int] = []
        self.home = np.full(max(64, len(self.ids)), -1, np.int32)  # the serial of a segment
        self.place = np.zeros(max(64, len(self.ids)), np.int32)  # the rank within it

    def add(self, subscriptions: Sequence[Subscription]) -> list[int]:
        """Add subscriptions; return their numbers."""
        held, ids = self.subscriptions.held, self.ids
        reused = min(len(self.free), len(subscriptions))
        numbers = [self.free.pop() for _ in range(reused)]
        for number, subscription in zip(numbers, subscriptions, strict=False):
            held[number], ids[number] = subscription, subscription.id
        numbers += range(len(ids), len(ids) + len(subscriptions) - reused)
        held += subscriptions[reused:]
        ids += [subscription.id for subscription in subscriptions[reused:]]
        if len(ids) > len(self.home):
            more = max(len(self.home) // 8, len(ids) - len(self.home))
            self.home = np.concatenate([self.home, np.full(more, -1, np.int32)])
            self.place = np.concatenate([self.place, np.zeros(more, np.int32)])
        return numbers

    def add_rescored(self, old: Sequence[int], scores: Sequence[float]) -> list[int]:
        """Add present subscriptions again, with other scores; return their new numbers."""
        held = [self.subscriptions.held[number] for number in old]
        numbers = self.add(held)  # type: ignore[arg-type]
        self.subscriptions.scores.update(zip(numbers, scores, strict=True))
        return numbers

    def kept(self, alive: Bools) -> "SubscriptionTable":
        """Return a table of some subscriptions with the same numbers; the others are free."""
        last = int(alive.nonzero()[0].max(initial=-1)) + 1
        keeps = alive[:last].tolist()
        held, ids = self.subscriptions.held[:last], self.ids[:last]
        for number in np.flatnonzero(~alive[:last]).tolist():
            held[number], ids[number] = None, ""
        table = SubscriptionTable(held, ids)
        scores = list(self.subscriptions.scores.items())  # a copy: readers remove from it
        table.subscriptions.scores = {
            number: score for number, score in scores if number < last and keeps[number]
        }
        table.free = np.flatnonzero(~alive[:last])[::-1].tolist()
        return table

    @property
    def nbytes(self) -> int:
        """Bytes of arrays, lists and dicts, with the numbers that these hold."""
        subscriptions = self.subscriptions
        lists = getsizeof(subscriptions.held) + getsizeof(self.ids)
        scores = (FLOAT_BYTES + INT_BYTES) * len(subscriptions.scores)
        scores += getsizeof(subscriptions.scores)
        free = getsizeof(self.free) + INT_BYTES * len(self.free)
        return self.home.nbytes + self.place.nbytes + lists + scores + free


def checked_scores(
    subscriptions: Sequence[Subscription | None], scores: Iterable[float]
) -> Float64s:
    """Return the new scores of subscriptions; a score that may be invalid is left to the model."""
    checked = []
    for subscription, score in zip(subscriptions, scores, strict=True):
        valid = type(score) is float and 0 <= score < VALID_SCORE
        if not valid and subscription is not None:
            score = own_score(replace(subscription, score=score))  # noqa: PLW2901
        checked.append(score)
    return np.array(checked, np.float64)


class IdTable:
    """Open-addressing hash table from id to number; the ids themselves live in a list by number.

    It takes 6 to 8 bytes per id; a dict takes 80, most of it for objects. Every call is passed the
    ids by number. O(1).
    """

    def __init__(self) -> None:
        self._cells = array("i", [FREE]) * 64
        self._size = self._used = 0

    def __len__(self) -> int:
        return self._size

    def find(self, name: str, ids: Sequence[str]) -> int:
        """Return the number of an id, or -1."""
        cell = self._find_cell(name, ids)
        return self._cells[cell] if cell >= 0 else -1

    def remove(self, name: str, ids: Sequence[str]) -> None:
        """Remove an id that is present."""
        self._cells[self._find_cell(name, ids)] = TOMBSTONE
        self._size -= 1

    def add(self, names: Sequence[str], numbers: Sequence[int], ids: Sequence[str]) -> None:
        """Add ids that are absent."""
        if 3 * (self._used + len(names)) > 2 * len(self._cells):
            self._rebuild(self._size + len(names), ids)
        self._size += len(names)
        self._fill(names, numbers)

    def numbers(self) -> Int32s:
        """Return all numbers in ascending order."""
        cells = np.frombuffer(self._cells, np.int32)
        return np.sort(cells[cells >= 0])

    @property
    def nbytes(self) -> int:
        """Bytes of the table."""
        return len(self._cells) * self._cells.itemsize

    def _find_cell(self, name: str, ids: Sequence[str]) -> int:
        cells, size = self._cells, len(self._cells)
        cell = hash(name) % size
        while (number := cells[cell]) != FREE:
            if number >= 0 and ids[number] == name:
                return cell
            cell = (cell + 1) % size
        return -1

    def _rebuild(self, size: int, ids: Sequence[str]) -> None:
        """Make room for twice as many ids as there will be, and drop the tombstones."""
        numbers = self.numbers().tolist()
        self._cells = array("i", [FREE]) * (2 * size + 64)
        self._used = 0
        self._fill([ids[number] for number in numbers], numbers)

    def _fill(self, names: Sequence[str], numbers: Sequence[int]) -> None:
        if len(names) == 1:  # a compiled call takes ten times as long
            self._insert(names[0], numbers[0])
            return
        hashes = np.fromiter(map(hash, names), np.int64, len(names))
        cells = np.frombuffer(self._cells, np.int32)
        self._used += fill_id_table(hashes, np.array(numbers, np.int32), cells)

    def _insert(self, name: str, number: int) -> None:
        """Insert one number as `fill_id_table` does."""
        cells, size = self._cells, len(self._cells)
        cell = hash(name) % size
        while cells[cell] >= 0:
            cell = (cell + 1) % size
        self._used += cells[cell] == FREE
        cells[cell] = number


# The memtable: the newest subscriptions as records without postings, tested one by one.
#
#     words      | record | record | record | free ...        appended, never changed
#     ranks      number, tombstone  per subscription          tombstones are set later
#     offsets    first word of each subscription
#
# A reader knows how many words there were in its snapshot and never looks behind them, so the
# writer appends without a copy and without a lock.

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
        numbers, weights, predicates = zip(*parts, strict=True)
        words = [*chain.from_iterable(map(_words, map(vocabulary.check, predicates)))]
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
        words, checks = self.size, self._checks
        for conjunction in conjunctions:
            words += HEAD + len(conjunction.words)
            checks += len(conjunction.parts)
            if max(conjunction.parts) >= 1 << 16:
                return False
        return self.count < RECORDS and words <= WORDS and checks <= CHECKS

    def append(self, number: int, score: float, conjunctions: Sequence[StoredConjunction]) -> int:
        """Append a subscription; return its rank here."""
        rank, start = self.count, self.size
        words, offsets, ranks = self.records
        for conjunction in conjunctions:
            end = start + HEAD + len(conjunction.words)
            words[start], words[start + 1], words[start + 2] = 2 * rank, end, self._checks
            words[start + HEAD : end] = conjunction.words
            last = self._checks + len(conjunction.parts)
            self.weights.part[self._checks : last] = conjunction.parts
            self.weights.weight[self._checks : last] = conjunction.weights
            self._checks, start = last, end
        ranks[2 * rank], self.scores[rank] = number, score
        offsets[rank + 1] = start
        self.size, self.count = start, rank + 1
        return rank

    def view(self, size: int, version: int, ids: Sequence[str]) -> SegmentView:
        """Return the arrays for kernels, as of a number of words and a version."""
        weights = self.weights._replace(order=self._order(ids))
        return SegmentView(self.records, NO_POSTINGS, NO_BLOCKS, weights, size, version)

    def bury(self, ranks: int | Int32s | Int64s, version: int) -> None:
        """Set tombstones: skip some ranks from a version onwards."""
        self.records.ranks[2 * ranks + 1] = version
        self.dead += 1 if isinstance(ranks, int) else len(ranks)

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


class Snapshot(NamedTuple):
    """Segments, the larger ones first, and a memtable, as seen at one version.

    Segments and the memtable are shared with later snapshots. The version hides later tombstones,
    and `size` hides what was appended to the memtable later.
    """

    vocabulary: Vocabulary
    table: SubscriptionTable
    segments: tuple[Segment, ...]
    memtable: Memtable
    size: int  # words of the memtable
    version: int

    @classmethod
    def empty(cls, version: int = 0) -> "Snapshot":
        """Return the snapshot of an index without subscriptions."""
        return cls(Vocabulary(), SubscriptionTable(), (), Memtable(), 0, version)

    def at(self, version: int) -> "Snapshot":
        """Return the same parts, with all that the memtable has by now, at a version."""
        return self._replace(size=self.memtable.size, version=version)


class Listener(Protocol):
    """A stage that keeps arrays by number. It is called while the index waits."""

    def on_added(self, numbers: Sequence[int], subscriptions: Sequence[Subscription]) -> None:
        """Handle new numbers, before any answer contains them."""

    def on_removed(self, numbers: Sequence[int]) -> None:
        """Handle numbers that no later snapshot has; earlier ones may still be read."""
