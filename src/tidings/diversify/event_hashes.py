"""Many events as hashes in arrays, with slots that are given out again: what a window keeps."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_types import Float64s, Int64s, UInt64s
from tidings.diversify.distance import Jaccard
from tidings.diversify.distance_matrix import matrix_of
from tidings.diversify.event_tokens import Rows, hashed, known, starting
from tidings.diversify.kernels.distances import Rows as Merging
from tidings.diversify.kernels.distances import merged_row
from tidings.diversify.protocol import Distance
from tidings.errors import InvalidPolicy, TidingsError
from tidings.model.records import Event


class Crowd:
    """A table of events that come and go; distances between them are taken by kernels.

    An event takes 16 bytes for each attribute (overlap; 24 with weights) or token (Jaccard). Its
    slot is a number from 0; the slot of one that left is given out again, the smallest last.
    """

    def __init__(self, distance: Distance) -> None:
        if not known(distance):
            raise InvalidPolicy(f"a crowd knows overlap and jaccard, not {distance.name}")
        self._distance = distance
        self._starts, self._ends = np.zeros(8, np.int64), np.zeros(8, np.int64)
        self._weighted = bool(getattr(distance, "weights", None))
        self._pools = self._empty(64)
        self._free, self._taken = list(range(7, -1, -1)), set[int]()
        self._used = self._held = 0

    def __len__(self) -> int:
        return len(self._taken)

    @property
    def room(self) -> int:
        """How many slots there are: every slot given out is below."""
        return len(self._starts)

    def add(self, event: Event) -> int:
        """Take an event in; give its slot. O(tokens log tokens)."""
        return self.add_many([event])[0]

    def add_many(self, events: Sequence[Event]) -> list[int]:
        """Take events in; give their slots."""
        starts, *columns = hashed(events, self._distance)
        self._make_room(len(events), int(starts[-1]))
        slots = [self._free.pop() for _ in events]
        self._starts[slots], self._ends[slots] = self._used + starts[:-1], self._used + starts[1:]
        order, total = _sorted_rows(starts, columns[0]), int(starts[-1])
        for pool, column in zip(self._pools, columns, strict=True):
            if len(column):
                pool[self._used : self._used + total] = column[order]
        self._used += total
        self._held += total
        self._taken.update(slots)
        return slots

    def remove(self, slot: int) -> None:
        """Let the event of a slot go."""
        if slot not in self._taken:
            raise TidingsError(f"slot {slot} is free")
        self._taken.remove(slot)
        self._free.append(slot)
        self._held -= int(self._ends[slot] - self._starts[slot])

    @property
    def rows(self) -> Merging:
        """The hashes by slot as kernels take them, until the next event comes."""
        return (self._starts, self._ends, *self._pools)

    def row(self, slot: int, others: Int64s) -> Float64s:
        """Give the distances of one event to others; some ten nanoseconds each."""
        found = np.empty(len(others))
        merged_row(self.rows, slot, others, found)
        return found

    def matrix(self, slots: Int64s) -> Float64s:
        """Give the distances between all of some events."""
        lengths = self._ends[slots] - self._starts[slots]
        starts = starting(lengths)
        places = np.repeat(self._starts[slots] - starts[:-1], lengths) + np.arange(starts[-1])
        keys, marks, weights = self._pools
        own = keys[places]
        whole = weights[places] if self._weighted else weights
        return matrix_of(Rows(starts, own, own if marks is keys else marks[places], whole))

    def _make_room(self, events: int, tokens: int) -> None:
        """See that there are free slots, and room behind what is used in the pools."""
        if len(self._free) < events:
            more = max(self.room, events)
            self._free[:0] = range(self.room + more - 1, self.room - 1, -1)
            self._starts, self._ends = (
                np.concatenate((each, np.zeros(more, np.int64)))
                for each in (self._starts, self._ends)
            )
        if self._used + tokens > len(self._pools[0]):
            self._pack(max(64, 2 * (self._held + tokens)))

    def _empty(self, size: int) -> tuple[UInt64s, UInt64s, Float64s]:
        keys = np.empty(size, np.uint64)
        marks = keys if isinstance(self._distance, Jaccard) else np.empty(size, np.uint64)
        return (keys, marks, np.empty(size if self._weighted else 0))

    def _pack(self, size: int) -> None:
        """Copy what is held into new pools, without the gaps that were left."""
        fresh, used = self._empty(size), 0
        for slot in sorted(self._taken):
            first, last = int(self._starts[slot]), int(self._ends[slot])
            for pool, before in zip(fresh, self._pools, strict=True):
                if len(before):
                    pool[used : used + last - first] = before[first:last]
            self._starts[slot], self._ends[slot] = used, used + last - first
            used += last - first
        self._pools, self._used = fresh, used


def _sorted_rows(starts: Int64s, keys: npt.NDArray[Any]) -> Int64s:
    """Give the order that sorts the keys of each row."""
    if len(starts) == 2:
        return np.argsort(keys)
    return np.lexsort((keys, np.repeat(np.arange(len(starts) - 1), np.diff(starts))))
