"""What choosing needs to know of events, once for all who need the same."""

import json
from bisect import bisect_left
from typing import Any, Final
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_types import Int64s, UInt64s
from tidings.diversify.event_hashes import EventHashes
from tidings.diversify.kernels.distances import SortedRows
from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.diversify.protocol import Diversifier
from tidings.feed.columnar.event_table import EventTable, insert_id
from tidings.model import named_parts
from tidings.model.records import Event

_FIRST: Final = 64
_NO_ROWS: Final = SortedRows(*(np.zeros(0, kind) for kind in ("i8", "i8", "u8", "u8", "f8")))


class Traits:
    """Of each event slot: a number that sorts as its id does, its hashes, and its bands for LSH.

    What is noted of an event stays until its slot has another, so it takes no more than the slots.
    """

    def __init__(self, part: Diversifier, measured: bool) -> None:
        self._part = part
        self.crowd = EventHashes(part.distance) if measured else None
        self.names, self.members = np.zeros(_FIRST, np.int64), np.zeros(_FIRST, np.int64)
        tables = part.shape[0] if isinstance(part, MaxDivRelLsh) else 0
        self.bands = np.zeros((_FIRST, tables), np.uint64)
        self._events: list[Event | None] = [None] * _FIRST
        self._ids: list[tuple[str, int]] = []

    def note(self, events: EventTable, slots: npt.NDArray[Any]) -> None:
        """Note the events of some slots, where they are new; O(log n) and its tokens for each."""
        self._make_room(len(events.us))
        every = ((slot, events.event(slot)) for slot in np.unique(slots).tolist())
        new = {slot: event for slot, event in every if self._events[slot] is not event}
        if not new:
            return
        if isinstance(self._part, MaxDivRelLsh):
            self.bands[[*new]] = self._part.bands([*new.values()])
        members = self.crowd.add_many([*new.values()]) if self.crowd is not None else 0
        for slot, event in new.items():
            self._forget(slot)
            self._events[slot] = event
            insert_id(self._ids, (event.id, slot), self.names)
        self.members[[*new]] = members

    def _forget(self, slot: int) -> None:
        before = self._events[slot]
        if before is None:
            return
        del self._ids[bisect_left(self._ids, (before.id, slot))]
        if self.crowd is not None:
            self.crowd.remove(int(self.members[slot]))

    @property
    def measures(self) -> tuple[Any, Int64s, UInt64s]:
        """The hashes, the row of each slot there, and the bands, as the kernels take them."""
        rows = self.crowd.rows if self.crowd is not None else _NO_ROWS
        return (rows, self.members, self.bands)

    def _make_room(self, size: int) -> None:
        more = size - len(self._events)
        if more > 0:
            self._events += [None] * more
            for name in ("names", "members", "bands"):
                column = getattr(self, name)
                room = np.zeros((more, *column.shape[1:]), column.dtype)
                setattr(self, name, np.concatenate([column, room]))


class AllTraits:
    """The traits of one table of events: one of each kind, for as long as a cohort needs it."""

    def __init__(self) -> None:
        self._made = WeakValueDictionary[str, Traits]()

    def of(self, part: Diversifier, measured: bool) -> Traits:
        """Give the traits that a diversifier needs, with distances where it measures them."""
        distance = named_parts.form(part.distance) if measured else None
        hashing = (*part.shape, part.seed) if isinstance(part, MaxDivRelLsh) else None
        key = json.dumps([distance, hashing], sort_keys=True)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = Traits(part, measured)
        return found
