"""The newest subscriptions: records without lists, which are looked at one by one."""

from collections.abc import Sequence
from math import isnan
from struct import Struct
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Int32s, Int64s
from tidings.index.access.encoding import Encoded, parts_of
from tidings.index.access.kernels.match import Part
from tidings.index.access.kernels.records import AMONG, BETWEEN, DIFFERS, HEAD, NEVER, Rows, Weights
from tidings.index.access.postings import NO_LISTS
from tidings.index.access.segment import Segment, picked
from tidings.index.access.vocabulary import Check, Vocabulary
from tidings.model.records import Subscription

RECORDS: Final = 512
WORDS: Final = 1 << 15
CHECKS: Final = 1 << 13
_FLOAT: Final = Struct("<d")
_HALVES: Final = Struct("<ii")


class Row(NamedTuple):
    """The checks of one conjunction as words, and what each of them is."""

    words: Sequence[int] | Int32s
    parts: Sequence[int] | Any
    weights: Sequence[float] | Any


def rows_of(subscription: Subscription, vocabulary: Vocabulary) -> list[Row]:
    """Give a subscription in numbers."""
    rows = []
    for parts in parts_of(subscription):
        words: list[int] = []
        for _, _, part in parts:
            words += _words(vocabulary.use(part))
        rows.append(Row(words, [each[0] for each in parts], [each[1] for each in parts]))
    return rows


def _words(check: Check) -> list[int]:
    entry, slot, low, high, members = check
    if entry >= 0:
        return [entry]
    if slot < 0:
        return [~AMONG, len(members), *members]
    if isnan(high):
        return [~(4 * slot + DIFFERS), *_halves(low)]
    return [~(4 * slot + BETWEEN), *_halves(low), *_halves(high)]


def _halves(bound: float) -> tuple[int, int]:
    """Give a float as two numbers, which together have its order."""
    low, high = _HALVES.unpack(_FLOAT.pack(bound + 0.0))
    return (high, low) if high >= 0 else (high ^ 0x7FFF_FFFF, ~low)


def rows_in(segment: "Segment | Tail", rank: int) -> list[Row]:
    """Take the records of a rank as they are."""
    words, weights, found = segment.rows.words, segment.weights, []
    row, last = segment.rows.offsets[rank], segment.rows.offsets[rank + 1]
    while row < last:
        end, first = words[row + 1], words[row + 2]
        count = _count(words, row)
        heavy = weights.weight[first : first + count] if len(weights.weight) else [1.0] * count
        parts = weights.part[first : first + count]
        found.append(Row(words[row + HEAD : end], parts, heavy))
        row = end
    return found


def _count(words: Int32s, row: int) -> int:
    at, count = row + HEAD, 0
    while at < words[row + 1]:
        if words[at] >= 0:
            at += 1
        else:
            kind = ~words[at] & 3
            at += 5 if kind == BETWEEN else 3 if kind == DIFFERS else 2 + words[at + 1]
        count += 1
    return count


class Tail:
    """Room for new records. What a reader was told of stays as it is, but for deaths."""

    def __init__(self) -> None:
        self.rows = Rows(
            np.zeros(WORDS, np.int32),
            np.zeros(RECORDS + 1, np.int32),
            np.full(2 * RECORDS, NEVER, np.int32),
        )
        self.scores = np.zeros(RECORDS)
        order = np.zeros(RECORDS, np.int32)
        self.weights = Weights(np.zeros(CHECKS, np.uint16), np.ones(CHECKS), order)
        self.size = self.count = self.dead = 0
        self._checks = 0
        self._ordered: tuple[int, Int32s] = 0, np.zeros(RECORDS, np.int32)

    def fits(self, rows: list[Row]) -> bool:
        """Tell whether there is room for another subscription."""
        words = sum(HEAD + len(row.words) for row in rows)
        checks = self._checks + sum(len(row.parts) for row in rows)
        room = self.size + words <= WORDS and checks <= CHECKS
        return self.count < RECORDS and room and all(max(row.parts) < 1 << 16 for row in rows)

    def put(self, number: int, score: float, rows: list[Row]) -> int:
        """Write a subscription; give its place."""
        place, at = self.count, self.size
        words, offsets, notes = self.rows
        for row in rows:
            end = at + HEAD + len(row.words)
            words[at], words[at + 1], words[at + 2] = 2 * place, end, self._checks
            words[at + HEAD : end] = row.words
            last = self._checks + len(row.parts)
            self.weights.part[self._checks : last] = row.parts
            self.weights.weight[self._checks : last] = row.weights
            self._checks, at = last, end
        notes[2 * place], self.scores[place] = number, score
        offsets[place + 1] = at
        self.size, self.count = at, place + 1
        return place

    def part(self, size: int, version: int, ids: Sequence[str]) -> Part:
        """Give what kernels need, as of some words and a version."""
        weights = self.weights._replace(order=self._order(ids))
        return Part(self.rows, NO_LISTS, weights, size, version)

    def kill(self, places: Any, version: int) -> None:
        """Pass over some from a version on."""
        self.rows.notes[2 * np.asarray(places) + 1] = version
        self.dead += np.size(places)

    def encoded(self, version: int, ids: Sequence[str]) -> Encoded:
        """Give back, in numbers, who lives at a version; `ids` by number."""
        died = self.rows.notes[1 : 2 * self.count : 2]
        return self.picked(np.flatnonzero(died > version), ids)

    def picked(self, places: Int64s, ids: Sequence[str]) -> Encoded:
        """Give back some, in numbers; `ids` by number."""
        weights = self.weights._replace(order=self._order(ids))
        if np.all(weights.weight[: self._checks] == 1.0):
            weights = weights._replace(weight=np.empty(0))
        return picked(self.rows, weights, self.scores, places)

    def _order(self, ids: Sequence[str]) -> Int32s:
        """Give every place its place in the order of ids, which are by number."""
        count, order = self._ordered
        if count != self.count:
            count = self.count
            names = [ids[each] for each in self.rows.notes[: 2 * count : 2].tolist()]
            order = np.zeros(RECORDS, np.int32)
            order[sorted(range(count), key=names.__getitem__)] = np.arange(count)
            self._ordered = count, order
        return order

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        held = (*self.rows, *self.weights, self.scores)
        return sum(each.nbytes for each in held)
