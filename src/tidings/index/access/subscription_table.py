"""Tables of subscriptions: by number, and the numbers by id."""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import replace
from sys import getsizeof
from typing import Any, Final

import numpy as np

from tidings.compiled.array_types import Bools, Float64s, Int32s
from tidings.index.access.kernels.postings import FREE, fill_id_table
from tidings.index.access.terms import FLOAT_BYTES, INT_BYTES
from tidings.index.protocol import own_score
from tidings.model.records import Subscription

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
        held = zip(self.subscriptions.held, self.ids, keeps, strict=False)
        pairs = [(one, name) if keep else (None, "") for one, name, keep in held]
        table = SubscriptionTable([one for one, _ in pairs], [name for _, name in pairs])
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
        hashes = np.fromiter(map(hash, names), np.int64, len(names))
        cells = np.frombuffer(self._cells, np.int32)
        self._used += fill_id_table(hashes, np.array(numbers, np.int32), cells)
