"""Features of events that diverse windows choose by, shared by the cohorts that need the same."""

import json
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final
from weakref import WeakValueDictionary

import numpy as np

from tidings.diversify.event_hashes import EventHashes
from tidings.diversify.kernels.distances import SortedRows
from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.diversify.protocol import Diversifier
from tidings.feed.columnar.event_table import EventTable, insert_id, number_ids
from tidings.feed.columnar.kernels.layout import FeatureColumns
from tidings.model import named_parts
from tidings.model.records import Event
from tidings.rules.different import Different

_FIRST_SIZE: Final = 64
_NO_ROWS: Final = SortedRows(
    starts=np.zeros(0, np.int64),
    ends=np.zeros(0, np.int64),
    keys=np.zeros(0, np.uint64),
    marks=np.zeros(0, np.uint64),
    weights=np.zeros(0),
    masks=np.zeros((0, 0), np.int64),
)
NO_FEATURES: Final = FeatureColumns(_NO_ROWS, np.zeros(0, np.int64), np.zeros((0, 0), np.uint64))


class FeatureTable:
    """The features by event slot: a number that sorts as the id does, hashes, and LSH bands.

    Features stay until their slot gets another event, so they take no more room than the slots.
    """

    def __init__(self, part: Diversifier | Different, measured: bool) -> None:
        self._part = part
        self.hashes = EventHashes(part.distance) if measured else None
        self.id_order, self._rows = np.zeros(_FIRST_SIZE, np.int64), np.zeros(_FIRST_SIZE, np.int64)
        tables = part.shape[0] if isinstance(part, MaxDivRelLsh) else 0
        self.bands = np.zeros((_FIRST_SIZE, tables), np.uint64)
        self._events: list[Event | None] = [None] * _FIRST_SIZE
        self._ids: list[tuple[str, int]] = []

    def add(self, events: EventTable, slots: Sequence[int]) -> None:
        """Add the features of distinct slots where they are missing; O(log n + tokens) each."""
        self._make_room(len(events.us))
        slot_events = {slot: events.event(slot) for slot in slots}
        new = {slot: e for slot, e in slot_events.items() if self._events[slot] is not e}
        if not new:
            return
        if isinstance(self._part, MaxDivRelLsh):
            self.bands[[*new]] = self._part.bands([*new.values()])
        rows = self.hashes.add_many([*new.values()]) if self.hashes is not None else 0
        # In order of ids, which mostly rise with time: each goes to the end, and the gaps between
        # numbers are not halved again and again.
        ordered = sorted((event.id, slot) for slot, event in new.items())
        for slot, event in new.items():
            self._remove(slot)
            self._events[slot] = event
        if self._ids:
            for entry in ordered:
                insert_id(self._ids, entry, self.id_order)
        else:
            self._ids = ordered
            number_ids(ordered, self.id_order)
        self._rows[[*new]] = rows

    def leave_out(self, slots: Sequence[int]) -> None:
        """Leave out events of which only the id is known: their row is -1."""
        for slot in slots:
            self._remove(slot)
            self._events[slot] = None
        self._rows[slots] = -1

    def _remove(self, slot: int) -> None:
        event = self._events[slot]
        if event is None:
            return
        del self._ids[bisect_left(self._ids, (event.id, slot))]
        if self.hashes is not None:
            self.hashes.remove(int(self._rows[slot]))

    @property
    def columns(self) -> FeatureColumns:
        """The features as the kernels take them."""
        rows = self.hashes.rows if self.hashes is not None else _NO_ROWS
        return FeatureColumns(rows, self._rows, self.bands)

    def _make_room(self, size: int) -> None:
        more = size - len(self._events)
        if more > 0:
            self._events += [None] * more
            for name in ("id_order", "_rows", "bands"):
                column = getattr(self, name)
                room = np.zeros((more, *column.shape[1:]), column.dtype)
                setattr(self, name, np.concatenate([column, room]))


class FeatureCache:
    """The feature tables over one event table: one of each kind, while some cohort needs it."""

    def __init__(self) -> None:
        self._tables = WeakValueDictionary[str, FeatureTable]()

    def table(self, part: Diversifier | Different, measured: bool) -> FeatureTable:
        """Return the features that a diversifier needs; with hashes if it measures distances."""
        distance = named_parts.form(part.distance) if measured else None
        hashing = (*part.shape, part.seed) if isinstance(part, MaxDivRelLsh) else None
        key = json.dumps([distance, hashing], sort_keys=True)
        table = self._tables.get(key)
        if table is None:
            table = self._tables[key] = FeatureTable(part, measured)
        return table
