"""Which subscriptions matched, as one number an entry: a subscription, or a set of them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np

from tidings.compiled.array_types import Int32s, Int64s

EMPTY: Final = -1
_FIRST: Final = 256


class MatchedSets:
    """Subscriptions by number, and sets of them as runs of numbers behind their length.

    A handle of 0 or more is a single subscription; below it is the complement of where a set
    starts. Sets that no entry refers to any more go when room runs out, and numbers that nobody
    uses are given again once they are most.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.generation = 0
        self._numbers: dict[str, int] = {}
        self._holders: list[int] = []
        self._free: list[int] = []
        self._limit = _FIRST
        self._runs = np.zeros(_FIRST, np.int32)
        self._used = 1

    def number(self, subscription: str) -> int:
        """Give the number of a subscription: its own for the next handles, and while they last."""
        found = self._numbers.get(subscription)
        if found is None:
            found = self._numbers[subscription] = self._taken()
            self.names[found] = subscription
        return found

    def _taken(self) -> int:
        if self._free:
            return self._free.pop()
        self.names.append("")
        self._holders.append(0)
        return len(self.names) - 1

    def hold(self, subscription: str) -> int:
        """Give the number of a subscription, which stays its own until it is let go as often."""
        number = self.number(subscription)
        self._holders[number] += 1
        return number

    def let_go(self, number: int) -> None:
        """Say that somebody who held a number needs it no more."""
        self._holders[number] -= 1

    @property
    def crowded(self) -> bool:
        """Whether there are twice as many numbers as were used when that was last looked at."""
        return len(self._numbers) > self._limit

    def keep(self, used: Iterable[Int32s]) -> None:
        """Free the numbers that nobody holds and that are not among the used."""
        kept = np.array(self._holders, np.int64) > 0
        kept[self._free] = True
        for each in used:
            kept[each] = True
        for number in np.flatnonzero(~kept).tolist():
            del self._numbers[self.names[number]]
            self.names[number] = ""
            self._free.append(number)
        self._limit = max(_FIRST, 2 * len(self._numbers))
        self.generation += 1

    def number_many(self, subscriptions: Sequence[str]) -> Int32s:
        """Give the numbers of many."""
        return np.fromiter(map(self.number, subscriptions), np.int32, len(subscriptions))

    def ids(self, handle: int) -> tuple[str, ...]:
        """Give the subscriptions that a handle stands for, in order."""
        return tuple(sorted(self.names[each] for each in self.numbers(handle)))

    def numbers(self, handle: int) -> list[int]:
        """Give the numbers of the subscriptions that a handle stands for."""
        if handle >= 0:
            return [handle]
        start = ~handle
        found: list[int] = self._runs[start + 1 : start + 1 + self._runs[start]].tolist()
        return found

    def handles(
        self, starts: Int64s, members: Int32s, copy: Callable[[Int32s, Int32s, int], int]
    ) -> Int32s:
        """Give a handle for each run of members; `copy` copies those still in use."""
        sizes = np.diff(starts)
        handles = np.full(len(sizes), EMPTY, np.int32)
        single = sizes == 1
        handles[single] = members[starts[:-1][single]]
        several = np.flatnonzero(sizes > 1)
        if len(several):
            self._append(handles, several, starts, members, copy)
        return handles

    def _append(
        self,
        handles: Int32s,
        several: Int64s,
        starts: Int64s,
        members: Int32s,
        copy: Callable[..., int],
    ) -> None:
        sizes = np.diff(starts)[several]
        self._make_room(int(sizes.sum()) + len(several), copy)
        begins = self._used + np.concatenate([[0], np.cumsum(sizes + 1)])
        handles[several] = ~begins[:-1]
        self._runs[begins[:-1]] = sizes
        within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        self._runs[np.repeat(begins[:-1] + 1, sizes) + within] = members[
            np.repeat(starts[:-1][several], sizes) + within
        ]
        self._used = int(begins[-1])

    def _make_room(self, wanted: int, copy: Callable[[Int32s, Int32s, int], int]) -> None:
        """Copy what is in use together; if that is more than half, take twice the room."""
        if self._used + wanted <= len(self._runs):
            return
        packed = np.zeros(len(self._runs), np.int32)
        self._used = copy(self._runs, packed, 1)
        size = len(packed)
        while 2 * (self._used + wanted) > size:
            size *= 2
        packed.resize(size, refcheck=False)
        self._runs = packed
        self.generation += 1

    def flat(self, handles: Int32s) -> tuple[Int64s, Int32s]:
        """Give the runs of members that handles stand for: where each starts, and all of them."""
        behind = ~np.minimum(handles, EMPTY)
        sizes = np.where(handles >= 0, 1, self._runs[behind]).astype(np.int64)
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        within = np.arange(starts[-1]) - np.repeat(starts[:-1], sizes)
        members = self._runs[np.repeat(behind + 1, sizes) + within]
        single = np.repeat(handles, sizes)
        return starts, np.where(single >= 0, single, members).astype(np.int32)
