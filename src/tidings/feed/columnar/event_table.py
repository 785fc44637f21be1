"""The events that windows hold, each stored once: a slot, and its columns for the kernels."""

import json
from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Final, Protocol
from weakref import WeakSet, WeakValueDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.compiled.array_types import Int32s, Int64s, UInt64s
from tidings.compiled.arrays import grown
from tidings.diversify.hashed_distances import EventHashes
from tidings.diversify.kernels.distances import SortedRows
from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.diversify.protocol import Diversifier
from tidings.errors import StateError
from tidings.feed.columnar.kernels.layout import FeatureColumns
from tidings.formats.binary import damaged, reading
from tidings.model import named_parts
from tidings.model.content import read_content
from tidings.model.event_columns import UNNUMBERED
from tidings.model.records import Event
from tidings.rules.different import Different
from tidings.window.snapshot_fields import read_event

_GAP: Final = 1 << 40
_LARGEST: Final = 1 << 61
_FIRST_SIZE: Final = 64
_CONTENT: Final = "the content of an event in the state of feeds"
_CACHED_EVENTS: Final = 1 << 12
"""Events that a process keeps as objects besides those in tables; one with five attributes takes
about 9 KB with everything derived from it."""


class EventTable:
    """Slots of events; slots that no window refers to are reused when the table is full.

    Kernels order events of the same time by `id_order`, which sorts as their ids do. Events arrive
    in order of publication, so only the newest time can get more of them. An event that is not
    compared with others needs only its id; the object, or its JSON text, is kept if it is known.
    `contents` has the texts of the content of events that have any, by slot.
    """

    def __init__(self) -> None:
        self.us = np.zeros(_FIRST_SIZE, np.int64)
        self.sequence = np.zeros(_FIRST_SIZE, np.int64)
        self.id_order = np.zeros(_FIRST_SIZE, np.int64)
        self.pending = np.zeros(_FIRST_SIZE, np.bool_)
        self._any_pending = False
        self.ids: list[str | None] = [None] * _FIRST_SIZE
        self.objects: list[Event | None] = [None] * _FIRST_SIZE
        self.forms: list[str] = [""] * _FIRST_SIZE
        self.contents: dict[int, str] = {}
        self.generation = 0
        self._slots: dict[str, int] = {}
        self._free = list(range(_FIRST_SIZE - 1, -1, -1))
        self._newest_us: int | None = None
        self._newest_ids: list[tuple[str, int]] = []

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, event: str) -> bool:
        return event in self._slots

    def isdisjoint(self, events: Collection[str]) -> bool:
        """Return whether none of some ids is in the table."""
        return self._slots.keys().isdisjoint(events)

    def slot(self, event: Event, mark: Callable[[Int32s], None]) -> int:
        """Return the slot of an event; `mark` marks the slots in use if the table is full.

        A new slot is kept until the event has been offered, or until time advances.
        """
        slot = self._slots.get(event.id)
        if slot is not None and self.us[slot] != event.published_us:
            slot = self._slot_in_use(slot, mark)
        if slot is not None:
            if self.objects[slot] is None and not self.forms[slot]:
                self.objects[slot] = event
            return slot
        self._reserve(1, mark)
        slot = self._free.pop()
        self._slots[event.id], self.ids[slot] = slot, event.id
        self.store(slot, event)
        self.us[slot] = event.published_us
        self.sequence[slot] = UNNUMBERED if event.sequence is None else event.sequence
        self.pending[slot] = self._any_pending = True
        self._order_newest(event.published_us, [(event.id, slot)])
        return slot

    def slots(
        self, ids: Sequence[str], us: Int64s, sequence: Int64s, mark: Callable[[Int32s], None]
    ) -> Int32s:
        """Return the slots of distinct events in order of publication, as `slot` does."""
        slots = np.fromiter(map(self._slots.get, ids, repeat(-1)), np.int32, len(ids))
        new = np.flatnonzero(slots < 0)
        if len(new):
            self._any_pending = True
            self.pending[slots[slots >= 0]] = True
            self._reserve(len(new), mark)
            new_slots = self._free[-len(new) :]
            del self._free[-len(new) :]
            new_ids = list(ids) if len(new) == len(ids) else [ids[i] for i in new.tolist()]
            self._slots.update(zip(new_ids, new_slots, strict=True))
            for slot, name in zip(new_slots, new_ids, strict=True):
                self.ids[slot] = name
            slots[new] = new_slots
            self.us[new_slots], self.sequence[new_slots] = us[new], sequence[new]
            self.pending[new_slots] = True
            self._order_many(new_ids, us[new], slots[new])
        return slots

    def store(self, slot: int, event: Event) -> None:
        """Store an event, and the text of its content, in the slot of its id."""
        self.objects[slot] = event
        if event.content_json is not None:
            self.contents[slot] = event.content_json

    def offered(self, slots: Int32s) -> None:
        """Note that events have been offered: only windows hold their slots from now on."""
        self.pending[slots] = False

    def all_offered(self) -> None:
        """Note that time advances, and that no event is about to be offered."""
        if self._any_pending:
            self.pending[:] = False
            self._any_pending = False

    def describe(self, slot: int, form: str) -> None:
        """Store the JSON text of an event, without its content."""
        self.forms[slot] = form

    def form(self, slot: int) -> str:
        """Return the JSON text, without content, of an event that is known by more than its id."""
        return self.forms[slot] or json.dumps(self.event(slot).dict_without_content())

    def is_described(self, slot: int) -> bool:
        """Return whether more than the id of an event is known."""
        return self.objects[slot] is not None or bool(self.forms[slot])

    def slot_of(self, event: str) -> int:
        """Return the slot of an event in the table, by its id."""
        return self._slots[event]

    def id(self, slot: int) -> str:
        """Return the id of the event in a slot."""
        name = self.ids[slot]
        if name is None:
            raise LookupError(f"slot {slot} holds no event")
        return name

    def event(self, slot: int) -> Event:
        """Return the event in a slot, maybe without its content.

        It must be known by more than its id.
        """
        event = self.objects[slot]
        if event is None and self.forms[slot]:
            event = self.objects[slot] = read_form(self.forms[slot])
        if event is None:
            raise damaged("the state of feeds", f"only the id of event {self.id(slot)} is known")
        return event

    def whole_event(self, slot: int) -> Event:
        """Return the event in a slot with its content."""
        event = self.event(slot)
        if slot not in self.contents or event.content_json is not None:
            return event
        with reading(_CONTENT):
            return event.carrying(self.contents[slot])

    def _order_newest(self, us: int, entries: Sequence[tuple[str, int]]) -> None:
        """Set the id order of new events of one time, which is the newest."""
        if us != self._newest_us:
            self._newest_us, self._newest_ids = us, []
        for entry in entries:
            insert_id(self._newest_ids, entry, self.id_order)

    def _order_many(self, ids: Sequence[str], us: Int64s, slots: Int32s) -> None:
        """Set the id order of new events; only those of the first time may join older ones."""
        first = int(np.searchsorted(us, us[0], side="right"))
        self._order_newest(int(us[0]), list(zip(ids[:first], slots[:first].tolist(), strict=True)))
        ids, us, slots = ids[first:], us[first:], slots[first:]
        if not len(us):
            return
        starts = np.flatnonzero(np.diff(us, prepend=us[0] - 1))
        order = _by_time_and_id(ids, us) if len(starts) < len(us) else np.arange(len(us))
        ranks = np.arange(len(us)) - np.repeat(starts, np.diff(starts, append=len(us)))
        self.id_order[slots[order]] = ranks * _GAP
        newest = order[starts[-1] :].tolist()
        self._newest_us = int(us[-1])
        self._newest_ids = [(ids[i], int(slots[i])) for i in newest]

    def _reserve(self, count: int, mark: Callable[[Int32s], None]) -> None:
        """Free the slots that nothing refers to; grow if they are fewer than half."""
        if len(self._free) >= count:
            return
        size = len(self.ids)
        alive = self._alive(mark)
        self._release(np.flatnonzero(alive == 0).tolist())
        self._newest_ids = [entry for entry in self._newest_ids if alive[entry[1]]]
        least = count + len(self._slots)
        if 2 * len(self._free) < size or least > size:
            self._grow(max(2 * size, least + least // 8))

    def _alive(self, mark: Callable[[Int32s], None]) -> Int32s:
        """Return which slots are not 0: those in use, and those that are free already."""
        alive = self.pending.astype(np.int32)
        mark(alive)
        alive[self._free] = 1
        return alive

    def _slot_in_use(self, slot: int, mark: Callable[[Int32s], None]) -> int | None:
        """Return a slot if a window holds its event; else free it for a new event of that id."""
        if self._alive(mark)[slot]:
            return slot
        self._release([slot])
        return None

    def _release(self, slots: Sequence[int]) -> None:
        """Free slots and all that they hold."""
        for slot in slots:
            del self._slots[self.id(slot)]
            self.ids[slot], self.objects[slot], self.forms[slot] = None, None, ""
            self.contents.pop(slot, None)
            self._free.append(slot)
        self.generation += 1

    def _grow(self, size: int) -> None:
        old = len(self.ids)
        for name in ("us", "sequence", "id_order", "pending"):
            setattr(self, name, grown(getattr(self, name), size))
        self.ids += [None] * (size - old)
        self.objects += [None] * (size - old)
        self.forms += [""] * (size - old)
        self._free += range(size - 1, old - 1, -1)


@lru_cache(maxsize=_CACHED_EVENTS)
def read_form(form: str) -> Event:
    """Return the event of a JSON text; cached, because many tables of a process hold the same."""
    with reading("an event in the state of feeds"):
        return read_event(json.loads(form))


def check_content(text: str) -> None:
    """Refuse the text of content that is damaged."""
    with reading(_CONTENT):
        read_content("an event", json.loads(text), StateError)


def _by_time_and_id(ids: Sequence[str], us: Int64s) -> Int64s:
    table = pa.table({"us": us, "id": pa.array(ids, pa.large_string())})
    order = pc.sort_indices(table, sort_keys=[("us", "ascending"), ("id", "ascending")])
    return np.asarray(order.to_numpy().astype(np.int64))


def insert_id(entries: list[tuple[str, int]], entry: tuple[str, int], id_order: Int64s) -> None:
    """Insert (id, slot) into a sorted list, and give the slot a number between its neighbours.

    Numbers start far apart, so that renumbering the list is rare: 40 halvings fit into a gap.
    """
    index = bisect_left(entries, entry)
    entries.insert(index, entry)
    below = int(id_order[entries[index - 1][1]]) if index else None
    above = int(id_order[entries[index + 1][1]]) if index + 1 < len(entries) else None
    if below is not None and above is not None:
        number = (above + below) // 2
    elif above is not None:
        number = above - _GAP
    else:
        number = 0 if below is None else below + _GAP
    id_order[entry[1]] = number
    if number == below or abs(number) > _LARGEST:
        number_ids(entries, id_order)


def number_ids(entries: Sequence[tuple[str, int]], id_order: Int64s) -> None:
    """Set the id order of a sorted list of (id, slot), with numbers far apart."""
    id_order[[slot for _, slot in entries]] = np.arange(len(entries)) * _GAP


# Features of events that diverse windows choose by, shared by the cohorts that need the same.

_FIRST_FEATURES: Final = 64
_NO_ROWS: Final = SortedRows(
    starts=np.zeros(0, np.int64),
    ends=np.zeros(0, np.int64),
    keys=np.zeros(0, np.uint64),
    marks=np.zeros(0, np.uint64),
    weights=np.zeros(0),
    masks=np.zeros((0, 0), np.int64),
)
_NO_BANDS: Final = np.zeros((0, 0), np.uint64)
NO_FEATURES: Final = FeatureColumns(
    _NO_ROWS, np.zeros(0, np.int64), np.zeros(0, np.int64), _NO_BANDS
)


class HoldsSlots(Protocol):
    """Windows over an event table."""

    def mark_slots(self, alive: Int32s) -> None:
        """Mark the slots in use."""


class FeatureTable:
    """The features by event slot: a number that sorts as the id does, hashes, and LSH bands.

    Features stay until their slot gets another event, so they take no more room than the slots.
    Bands are large: their rows are reused once none of the `holders` has the event any more.
    """

    def __init__(self, part: Diversifier | Different, measured: bool) -> None:
        self._part = part
        # No snapshot has the hashes, so that those of the process do.
        self.hashes = EventHashes(part.distance, of_process=True) if measured else None
        self.id_order = np.zeros(_FIRST_FEATURES, np.int64)
        self._rows = np.full(_FIRST_FEATURES, -1)  # -1 is a slot without features
        self.holders = WeakSet[HoldsSlots]()
        self._band_row = np.full(_FIRST_FEATURES, -1, np.int64)
        self._free_bands: list[int] = []
        self._bands = _NO_BANDS
        if isinstance(part, MaxDivRelLsh):
            self._bands = np.zeros((0, part.shape[0]), np.uint64)
        self._events: list[Event | None] = [None] * _FIRST_FEATURES
        self._ids: list[tuple[str, int]] = []

    def add(self, events: EventTable, slots: Sequence[int]) -> None:
        """Add the features of distinct slots where they are missing; O(log n + tokens) each."""
        self._make_room(len(events.us))
        slot_events = {slot: events.event(slot) for slot in slots}
        new = {slot: e for slot, e in slot_events.items() if self._events[slot] is not e}
        if not new:
            return
        if isinstance(self._part, MaxDivRelLsh):
            self._reserve_bands(events, slots, len(new))
            for slot in new:
                if self._band_row[slot] < 0:
                    self._band_row[slot] = self._free_bands.pop()
            self._bands[self._band_row[[*new]]] = self._part.bands([*new.values()])
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
        return FeatureColumns(rows, self._rows, self._band_row, self._bands)

    @property
    def tables(self) -> int:
        """The number of LSH tables."""
        return self._bands.shape[1]

    def bands(self, slots: Int64s | Int32s) -> UInt64s:
        """Return the LSH bands of events."""
        return self._bands[self._band_row[slots]]

    def _reserve_bands(self, events: EventTable, slots: Sequence[int], count: int) -> None:
        """Free the rows of events that no window holds; grow if they are fewer than half."""
        if len(self._free_bands) >= count:
            return
        alive = events.pending.astype(np.int32)
        alive[slots] = 1
        for holder in self.holders:
            holder.mark_slots(alive)
        unused = np.flatnonzero((self._band_row >= 0) & (alive[: len(self._band_row)] == 0))
        self._free_bands += self._band_row[unused].tolist()
        self._band_row[unused] = -1
        for slot in unused.tolist():  # its features are computed again if it is offered again
            self._remove(slot)
            self._events[slot] = None
        old = len(self._bands)
        if len(self._free_bands) < max(count, old // 2):
            size = max(2 * old, old + count, _FIRST_FEATURES)
            room = np.zeros((size - old, self.tables), np.uint64)
            self._bands = np.concatenate([self._bands, room])
            self._free_bands += range(size - 1, old - 1, -1)

    def _make_room(self, size: int) -> None:
        more = size - len(self._events)
        if more > 0:
            self._events += [None] * more
            self.id_order = grown(self.id_order, size)
            for name in ("_rows", "_band_row"):
                setattr(self, name, np.concatenate([getattr(self, name), np.full(more, -1)]))


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
