"""Numbers for ids: of the enrolled subscribers, and of the sets of subscriptions that matched.

`IdTexts` keeps ids by number as UTF-8, so that a column of them is made without touching Python
strings. At a million ids the strings are scattered over the memory, and each one that is touched
misses the cache. The bytes of all ids are written once they pay: when as many were asked for as
there are.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from operator import is_
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.compiled.array_types import Int32s, Int64s
from tidings.compiled.arrays import Ragged, grown, offsets, run_indexes
from tidings.errors import InvalidSubscription, TidingsError
from tidings.feed.columnar.kernels.texts import TextPool, write_offsets, write_texts

_FIRST_SUBSCRIBERS: Final = 16
_MOST_BYTES: Final = 2**31 - 1
_FEW: Final = 100
"""So many of the longest ids fit into a column."""


class EnrolledSubscribers:
    """Subscribers by number; the number of one that is removed is reused."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.texts = IdTexts(self.names)
        self.cohort = np.full(_FIRST_SUBSCRIBERS, -1, np.int32)
        self.row = np.zeros(_FIRST_SUBSCRIBERS, np.int32)
        self.order = np.zeros(_FIRST_SUBSCRIBERS, np.int64)
        self.generation = 0
        self._numbers: dict[str, int] = {}
        self._free: list[int] = []
        self._enrolled = 0

    def __contains__(self, subscriber: str) -> bool:
        return subscriber in self._numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def number(self, subscriber: str) -> int:
        """Return the number of a subscriber, which must be enrolled."""
        if subscriber not in self._numbers:
            raise InvalidSubscription(f"there is no subscriber {subscriber!r}")
        return self._numbers[subscriber]

    def number_many(self, subscribers: Sequence[str], likely: Int64s | None = None) -> Int32s:
        """Return the numbers of subscribers, all of which must be enrolled.

        `likely` are ascending numbers that they may well have, which are not looked up.
        """
        if likely is not None and self._are_numbers(likely, subscribers):
            return likely.astype(np.int32)
        known = map(self._numbers.get, subscribers, repeat(-1))
        numbers = np.fromiter(known, np.int32, len(subscribers))
        for place in np.flatnonzero(numbers < 0).tolist():
            self.number(subscribers[place])  # refuses it
        return numbers

    def _are_numbers(self, numbers: Int64s, subscribers: Sequence[str]) -> bool:
        """Return whether ascending numbers are known to be those of subscribers."""
        if len(numbers) and numbers[-1] >= len(self.names):
            return False
        names = map(self.names.__getitem__, numbers.tolist())
        # A number that is free still has the name that was removed, but no cohort.
        return bool((self.cohort[numbers] >= 0).all()) and all(map(is_, names, subscribers))

    def add(self, subscriber: str) -> int:
        """Return a number for a new subscriber, the last in the order of enrolment."""
        if self._free:
            number = self._free.pop()
            self.names[number] = subscriber
            self.texts.replaced(number)
            self.generation += 1
        else:
            number = len(self.names)
            self._make_room(number + 1)
            self.names.append(subscriber)
        self._numbers[subscriber] = number
        self.order[number] = self._enrolled
        self._enrolled += 1
        return number

    def add_many(self, subscribers: Sequence[str]) -> Int64s:
        """Return numbers for new subscribers, in their order."""
        if self._free:
            return np.array([self.add(subscriber) for subscriber in subscribers], np.int64)
        numbers = np.arange(len(self.names), len(self.names) + len(subscribers))
        self._make_room(len(self.names) + len(subscribers))
        self.names += subscribers
        self._numbers.update(zip(subscribers, numbers.tolist(), strict=True))
        self.order[numbers] = self._enrolled + np.arange(len(subscribers))
        self._enrolled += len(subscribers)
        return numbers

    def assign(self, number: int, cohort: int, row: int) -> None:
        """Set the cohort and row that hold the window of a subscriber."""
        self.cohort[number], self.row[number] = cohort, row

    def remove(self, subscriber: str) -> None:
        """Remove a subscriber."""
        number = self._numbers.pop(subscriber)
        self.cohort[number] = -1
        self._free.append(number)

    def in_order(self) -> Int64s:
        """Return all numbers in the order of enrolment."""
        numbers = np.fromiter(self._numbers.values(), np.int64, len(self._numbers))
        return numbers[np.argsort(self.order[numbers])]

    def _make_room(self, count: int) -> None:
        """Lengthen all columns; `cohort`, by whose length they are measured, is the last."""
        if count > len(self.cohort):
            size = max(count, len(self.cohort) + len(self.cohort) // 4)
            for column in (self.row, self.order, self.cohort):
                column.resize(size, refcheck=False)


# Sets of matched subscriptions, as one int32 handle for each match.
#
# handle >= 0     the number of the only subscription that matched
# handle == -1    no subscription
# handle < -1     ~start of a run in a shared pool: its length, then the numbers

EMPTY: Final = -1
_FIRST_NUMBERS: Final = 256

CopySets = Callable[[Int32s, Int32s, int], int]
"""Copy the runs in use to another pool, from a cell onwards; return how much is used then."""


class MatchedSets:
    """Numbers of subscriptions, and a pool of sets of them.

    The pool is compacted when it is full: sets that no match refers to go. Numbers that are not in
    use are freed once there are twice as many as were in use before.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.texts = IdTexts(self.names)
        self.generation = 0
        self._numbers: dict[str, int] = {}
        self._holders: list[int] = []
        self._unheld = 0  # numbers in use without a holder
        self._free: list[int] = []
        self._limit = _FIRST_NUMBERS
        self._runs = np.zeros(_FIRST_NUMBERS, np.int32)
        self._used = 1

    def number(self, subscription: str) -> int:
        """Return the number of a subscription, valid for the next handles and while they last."""
        number = self._numbers.get(subscription)
        if number is None:
            number = self._numbers[subscription] = self._take_number()
            self._unheld += 1
            self.names[number] = subscription
            self.texts.replaced(number)
        return number

    def _take_number(self) -> int:
        if self._free:
            return self._free.pop()
        self.names.append("")
        self._holders.append(0)
        return len(self.names) - 1

    def hold(self, subscriptions: Sequence[str]) -> Int32s:
        """Return the numbers of different subscriptions, each valid until it is released.

        One that is held several times must be released the same number of times.
        """
        if self._free or not self._numbers.keys().isdisjoint(subscriptions):
            numbers = self.number_many(subscriptions)
            for number in numbers.tolist():
                self._unheld -= not self._holders[number]
                self._holders[number] += 1
            return numbers
        return self._append_names(subscriptions, 1)

    def _append_names(self, subscriptions: Sequence[str], holders: int) -> Int32s:
        """Return new numbers, none of which was in use, for different subscriptions."""
        first = len(self.names)
        last = first + len(subscriptions)
        self._numbers.update(zip(subscriptions, range(first, last), strict=True))
        self.names += subscriptions
        self._holders += [holders] * len(subscriptions)
        self._unheld += 0 if holders else len(subscriptions)
        return np.arange(first, last, dtype=np.int32)

    def release(self, number: int) -> None:
        """Release a number that was held."""
        self._holders[number] -= 1
        self._unheld += not self._holders[number]

    @property
    def crowded(self) -> bool:
        """True if there are twice as many numbers as were in use at the last count.

        Where all of them are held, none can be freed.
        """
        return self._unheld > 0 and len(self._numbers) > self._limit

    def free_unused(self, used: Iterable[Int32s]) -> None:
        """Free the numbers that are neither held nor among the used."""
        in_use = np.array(self._holders, np.int64) > 0
        in_use[self._free] = True
        for numbers in used:
            in_use[numbers] = True
        unused = np.flatnonzero(~in_use).tolist()
        self._unheld -= len(unused)
        for number in unused:
            del self._numbers[self.names[number]]
            self.names[number] = ""
            self._free.append(number)
        self._limit = max(_FIRST_NUMBERS, 2 * len(self._numbers))
        self.generation += 1

    def number_many(self, subscriptions: Sequence[str]) -> Int32s:
        """Return the numbers of many subscriptions."""
        known = map(self._numbers.get, subscriptions, repeat(-1))
        numbers = np.fromiter(known, np.int32, len(subscriptions))
        missing = np.flatnonzero(numbers < 0)
        if len(missing):
            names = [subscriptions[index] for index in missing.tolist()]
            if self._free:
                new = map(self.number, names)
            else:
                self._append_names([*dict.fromkeys(names)], 0)
                new = map(self._numbers.__getitem__, names)
            numbers[missing] = np.fromiter(new, np.int32, len(names))
        return numbers

    def ids(self, handle: int) -> tuple[str, ...]:
        """Return the subscriptions of a handle, sorted."""
        return tuple(sorted(map(self.names.__getitem__, self.numbers(handle))))

    def numbers(self, handle: int) -> list[int]:
        """Return the numbers of the subscriptions of a handle."""
        if handle >= 0:
            return [handle]
        start = ~handle
        numbers: list[int] = self._runs[start + 1 : start + 1 + self._runs[start]].tolist()
        return numbers

    def handles(self, sets: Ragged, copy: CopySets) -> Int32s:
        """Return a handle for each set."""
        starts, members = sets
        sizes = starts[1:] - starts[:-1]
        if len(sizes) == 1 == len(members) or (len(sizes) == len(members) and (sizes == 1).all()):
            return members.astype(np.int32, copy=False)  # the only subscription of each
        if len(sizes) == 1 < len(members):
            return np.array([self._append_one(members, copy)], np.int32)
        handles = np.full(len(sizes), EMPTY, np.int32)
        single = sizes == 1
        handles[single] = members[starts[:-1][single]]
        several = np.flatnonzero(sizes > 1)
        if len(several):
            sizes = sizes[several]
            members = members[run_indexes(starts[several], sizes)]
            handles[several] = self._append(sizes, members, copy)
        return handles

    def _append(self, sizes: Int64s, members: Int32s, copy: CopySets) -> Int64s:
        """Append runs of members of these sizes to the pool; return their handles."""
        self._make_room(len(members) + len(sizes), copy)
        cells = self._used + offsets(sizes + 1)
        self._runs[cells[:-1]] = sizes
        self._runs[run_indexes(cells[:-1] + 1, sizes)] = members
        self._used = int(cells[-1])
        return np.asarray(~cells[:-1])

    def _append_one(self, members: Int32s, copy: CopySets) -> int:
        """Append one run to the pool; return its handle. Most single events have only one."""
        self._make_room(len(members) + 1, copy)
        start, self._used = self._used, self._used + 1 + len(members)
        self._runs[start] = len(members)
        self._runs[start + 1 : self._used] = members
        return ~start

    def _make_room(self, needed: int, copy: CopySets) -> None:
        """Compact the pool; double it while it is more than half full."""
        if self._used + needed <= len(self._runs):
            return
        # A window and a rule may refer to one set, of which each gets a copy.
        packed = np.zeros(2 * len(self._runs), np.int32)
        self._used = copy(self._runs, packed, 1)
        size = len(self._runs)
        while 2 * (self._used + needed) > size:
            size *= 2
        packed.resize(size, refcheck=False)
        self._runs = packed
        self.generation += 1

    def members(self, handles: Int32s) -> Ragged:
        """Return the set of each handle."""
        runs = ~np.minimum(handles, EMPTY)
        sizes = np.where(handles >= 0, 1, self._runs[runs]).astype(np.int64)
        members = self._runs[run_indexes(runs + 1, sizes)]
        single = np.repeat(handles, sizes)
        return Ragged(offsets(sizes), np.where(single >= 0, single, members).astype(np.int32))


class IdTexts:
    """The texts of a list of ids, which grows, and in which a number may get another id."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._bounds, self._data = np.zeros((64, 2), np.int64), np.zeros(1024, np.uint8)
        self._used = self._known = self._replaced = 0
        self._changed: list[int] = []
        self._asked = self._asked_order = 0
        self._order: Int64s | None = None

    def replaced(self, number: int) -> None:
        """Note that a number now has another id."""
        self._order = None
        if number < self._known:
            self._changed.append(number)

    def pool(self, asked: int) -> TextPool | None:
        """Return all texts; None if too few have been asked for so far to write all of them."""
        missing = len(self._names) - self._known + len(self._changed)
        if missing:
            self._asked += asked
            if missing > self._asked:
                return None
            self._write()
        return TextPool(self._bounds, self._data)

    def order(self, asked: int) -> Int64s | None:
        """Return the place of each id among all of them, ascending; None if that does not pay."""
        if self._order is None or len(self._order) != len(self._names):
            self._asked_order += asked
            if len(self._names) > self._asked_order:
                return None
            self._asked_order, self._order = 0, ascending_places(self._names)
        return self._order

    def _write(self) -> None:
        """Write the texts that are new; all of them if more than half were replaced."""
        names = self._names
        self._replaced += len(self._changed)
        if 2 * self._replaced > len(names):
            self._used = self._known = self._replaced = 0
            self._changed = []
        written = [*map(names.__getitem__, self._changed), *names[self._known :]]
        changed = np.array(self._changed, np.int64)
        numbers = np.concatenate([changed, np.arange(self._known, len(names))])
        _, ends, data = pa.array(written, pa.large_string()).buffers()
        offsets = np.frombuffer(ends, np.int64)[: len(written) + 1]
        size = int(offsets[-1])
        self._data = grown(self._data, self._used + size)
        if size:
            self._data[self._used : self._used + size] = np.frombuffer(data, np.uint8)[:size]
        self._bounds = grown(self._bounds, len(names))
        self._bounds[numbers, 0] = self._used + offsets[:-1]
        self._bounds[numbers, 1] = self._used + offsets[1:]
        self._used, self._known = self._used + size, len(names)
        self._changed, self._asked = [], 0


def gathered(pool: TextPool, numbers: Int64s) -> pa.StringArray:
    """Return the texts of numbers as a column; refuse those that take more than 2 GB."""
    if len(numbers) > _FEW:
        size = int((pool.bounds[numbers, 1] - pool.bounds[numbers, 0]).sum())
        if size > _MOST_BYTES:
            raise TidingsError(
                f"{len(numbers):,} ids take {size:,} bytes, more than a column of Arrow can hold; "
                "publish fewer events at once"
            )
    offsets = np.empty(len(numbers) + 1, np.int32)
    write_offsets(pool, numbers, offsets)
    out = np.empty(int(offsets[-1]), np.uint8)
    write_texts(pool, numbers, offsets, out)
    return text_column(offsets, out)


def text_column(offsets: np.ndarray, data: np.ndarray) -> pa.StringArray:
    """Return a column of consecutive texts."""
    return pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data))


def ascending_places(texts: Sequence[str]) -> Int64s:
    """Return the place of each text in ascending order."""
    order = pc.sort_indices(pa.array(texts, pa.large_string())).to_numpy()
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return places
