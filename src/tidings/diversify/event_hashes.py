"""A table of events as hashes, whose slots are reused: distances of windows that move on."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_types import Float64s, Int64s, UInt64s
from tidings.compiled.simd import WORDS
from tidings.diversify.distance import Jaccard
from tidings.diversify.distance_matrix import matrix_of
from tidings.diversify.event_tokens import HashRows, has_kernel, hash_events, offsets
from tidings.diversify.kernels.distances import SortedRows, distances_to, write_masks
from tidings.diversify.protocol import Distance
from tidings.errors import InvalidPolicy, TidingsError
from tidings.model.records import Event

_FEW_KEYS: Final = 64
"""Up to this number of attributes, as one event has, sorting them first takes longer."""
_MOST_WORDS: Final = 8
"""Up to 512 attributes have masks: 64 bytes an event, and less time than a merge takes."""


class EventHashes:
    """Events that come and go, and the distances between them.

    An event takes 16 bytes for each attribute (overlap; 24 with weights) or token (Jaccard). Its
    slot is a number from 0. A removed event leaves its slot to the next one, and a gap in the pools
    of hashes, which are compacted when they are full. For the overlap distance, the key of an
    attribute is its number among those in use, so that a row also has a mask of its attributes.
    """

    def __init__(self, distance: Distance) -> None:
        if not has_kernel(distance):
            raise InvalidPolicy(
                f"EventHashes supports the distances overlap and jaccard, not {distance.name}"
            )
        self._distance = distance
        self._starts, self._ends = np.zeros(8, np.int64), np.zeros(8, np.int64)
        self._weighted = bool(getattr(distance, "weights", None))
        self._pools = self._empty_pools(64)
        self._masks = np.zeros((8, 0), np.int64)
        self._numbers = dict[int, int]()
        self._free, self._taken = list(range(7, -1, -1)), set[int]()
        self._used = self._held = 0

    def __len__(self) -> int:
        return len(self._taken)

    @property
    def capacity(self) -> int:
        """The number of slots, free ones included: every slot is below."""
        return len(self._starts)

    def add(self, event: Event) -> int:
        """Add an event and return its slot; O(tokens log tokens)."""
        return self.add_many([event])[0]

    def add_many(self, events: Sequence[Event]) -> list[int]:
        """Add events and return their slots."""
        starts, keys, marks, weights = hash_events(events, self._distance)
        self._reserve(len(events), int(starts[-1]))
        keys = self._numbered(keys)
        slots = [self._free.pop() for _ in events]
        self._starts[slots], self._ends[slots] = self._used + starts[:-1], self._used + starts[1:]
        order, total = _sorted_rows(starts, keys), int(starts[-1])
        for pool, column in zip(self._pools, (keys, marks, weights), strict=True):
            if len(column):
                pool[self._used : self._used + total] = column[order]
        self._used += total
        self._held += total
        self._taken.update(slots)
        self._write_masks(slots)
        return slots

    def _numbered(self, keys: UInt64s) -> UInt64s:
        """Return the numbers of attributes, or keys that are tokens as they are."""
        if isinstance(self._distance, Jaccard):
            return keys
        if len(keys) <= _FEW_KEYS:
            return np.array(self._numbers_of(keys), np.uint64)
        unique, inverse = np.unique(keys, return_inverse=True)
        return np.array(self._numbers_of(unique), np.uint64)[inverse]

    def _numbers_of(self, keys: UInt64s) -> list[int]:
        numbers = self._numbers
        return [numbers.setdefault(key, len(numbers)) for key in keys.tolist()]

    def _write_masks(self, slots: Sequence[int]) -> None:
        """Write the masks of new rows; of all, where the number of words has changed."""
        words = -(-len(self._numbers) // 64)
        words = words if words <= _MOST_WORDS and not self._weighted else 0
        if words != self._masks.shape[1]:
            self._masks = np.zeros((self.capacity, words), np.int64)
            slots = sorted(self._taken)
        if words:
            write_masks(self.rows, np.array(slots, np.int64))

    def remove(self, slot: int) -> None:
        """Remove the event of a slot."""
        if slot not in self._taken:
            raise TidingsError(f"slot {slot} is free")
        self._taken.remove(slot)
        self._free.append(slot)
        self._held -= int(self._ends[slot] - self._starts[slot])

    @property
    def rows(self) -> SortedRows:
        """The hashes by slot, as kernels read them; valid until the next `add`."""
        return SortedRows(self._starts, self._ends, *self._pools, self._masks)

    def row(self, slot: int, others: Int64s) -> Float64s:
        """Return the distances of one event to others; some ten nanoseconds each."""
        distances = np.empty(len(others))
        distances_to(self.rows, slot, others, distances)
        return distances

    def matrix(self, slots: Int64s) -> Float64s:
        """Return the distances between all of some events."""
        lengths = self._ends[slots] - self._starts[slots]
        starts = offsets(lengths)
        positions = np.repeat(self._starts[slots] - starts[:-1], lengths) + np.arange(starts[-1])
        keys, marks, weights = self._pools
        keys_taken = keys[positions]
        marks_taken = keys_taken if marks is keys else marks[positions]
        weights_taken = weights[positions] if self._weighted else weights
        return matrix_of(HashRows(starts, keys_taken, marks_taken, weights_taken))

    def _reserve(self, events: int, tokens: int) -> None:
        """Grow the slots and the pools for `events` and `tokens` more."""
        if len(self._free) < events:
            more = max(self.capacity, events)
            self._free[:0] = range(self.capacity + more - 1, self.capacity - 1, -1)
            self._starts, self._ends = (
                np.concatenate((column, np.zeros(more, np.int64)))
                for column in (self._starts, self._ends)
            )
            room = np.zeros((more, self._masks.shape[1]), np.int64)
            self._masks = np.concatenate((self._masks, room))
        if self._used + tokens > len(self._pools[0]):
            self._compact(max(64, 2 * (self._held + tokens)))

    def _empty_pools(self, size: int) -> tuple[UInt64s, UInt64s, Float64s]:
        keys = np.empty(size, np.uint64)
        jaccard = isinstance(self._distance, Jaccard)
        marks = keys if jaccard else np.empty(size + WORDS, np.uint64)
        return (keys, marks, np.empty(size if self._weighted else 0))

    def _compact(self, size: int) -> None:
        """Copy the hashes of all events into new pools, without the gaps."""
        pools, used = self._empty_pools(size), 0
        for slot in sorted(self._taken):
            first, last = int(self._starts[slot]), int(self._ends[slot])
            for pool, old_pool in zip(pools, self._pools, strict=True):
                if len(old_pool):
                    pool[used : used + last - first] = old_pool[first:last]
            self._starts[slot], self._ends[slot] = used, used + last - first
            used += last - first
        self._pools, self._used = pools, used
        if self._numbers:
            self._number_again()

    def _number_again(self) -> None:
        """Forget the attributes of events that have left; the others stay in their order."""
        keys = self._pools[0][: self._used]
        kept = np.unique(keys)
        keys[:] = np.searchsorted(kept, keys)
        hashes = [*self._numbers]  # by number
        self._numbers = {hashes[number]: new for new, number in enumerate(kept.tolist())}
        self._masks = np.zeros((self.capacity, 0), np.int64)
        self._write_masks([])


def _sorted_rows(starts: Int64s, keys: npt.NDArray[Any]) -> Int64s:
    """Return the permutation that sorts the keys of each row."""
    if len(starts) == 2:
        return np.argsort(keys)
    return np.lexsort((keys, np.repeat(np.arange(len(starts) - 1), np.diff(starts))))
