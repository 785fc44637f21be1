"""The events that windows hold, once each: a slot, and what the kernels need of it in arrays."""

import json
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.compiled.array_types import Int32s, Int64s
from tidings.formats.binary import reading
from tidings.model.records import Event
from tidings.window.snapshot_fields import read_event

UNNUMBERED: Final = -1
"""The sequence of an event that has none."""
_STEP: Final = 1 << 40
_FARTHEST: Final = 1 << 61
_FIRST: Final = 64
_READ: Final = 1 << 12
"""Events that a process keeps as objects besides those in tables; with five attributes and what is
derived from them, one takes some 9 KB."""


class EventTable:
    """Slots of events. Those that no window holds any more are given again when room runs out.

    Kernels order events of the same time by `tie`, which goes as their ids do. Events come in order
    of publication, so only the newest time can get more of them. Of an event that nobody compares
    with others, its id is enough: an object, or the JSON text of one, is there where it was given.
    """

    def __init__(self) -> None:
        self.us = np.zeros(_FIRST, np.int64)
        self.sequence = np.zeros(_FIRST, np.int64)
        self.tie = np.zeros(_FIRST, np.int64)
        self.young = np.zeros(_FIRST, np.bool_)
        self.ids: list[str | None] = [None] * _FIRST
        self.objects: list[Event | None] = [None] * _FIRST
        self.forms: list[str] = [""] * _FIRST
        self.generation = 0
        self._slots: dict[str, int] = {}
        self._free = list(range(_FIRST - 1, -1, -1))
        self._newest_us: int | None = None
        self._together: list[tuple[str, int]] = []

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, event: str) -> bool:
        return event in self._slots

    def slot(self, event: Event, mark: Callable[[Int32s], None]) -> int:
        """Give the slot of an event; `mark` marks the slots in use where room has to be found.

        A new slot is kept until the event has been offered, or until time goes on.
        """
        found = self._slots.get(event.id)
        if found is not None:
            if self.objects[found] is None and not self.forms[found]:
                self.objects[found] = event
            return found
        self._find_room(1, mark)
        slot = self._free.pop()
        self._slots[event.id], self.ids[slot], self.objects[slot] = slot, event.id, event
        self.us[slot] = event.published_us
        self.sequence[slot] = UNNUMBERED if event.sequence is None else event.sequence
        self.young[slot] = True
        self._place(event.published_us, [(event.id, slot)])
        return slot

    def slots(
        self, ids: Sequence[str], us: Int64s, sequence: Int64s, mark: Callable[[Int32s], None]
    ) -> Int32s:
        """Give the slots of different events in order of publication, as `slot` does."""
        found = np.fromiter(map(self._slots.get, ids, repeat(-1)), np.int32, len(ids))
        new = np.flatnonzero(found < 0)
        if len(new):
            self.young[found[found >= 0]] = True
            self._find_room(len(new), mark)
            slots = self._free[-len(new) :]
            del self._free[-len(new) :]
            names = list(ids) if len(new) == len(ids) else [ids[place] for place in new.tolist()]
            self._slots.update(zip(names, slots, strict=True))
            for slot, name in zip(slots, names, strict=True):
                self.ids[slot] = name
            found[new] = slots
            self.us[slots], self.sequence[slots] = us[new], sequence[new]
            self.young[slots] = True
            self._place_many(names, us[new], found[new])
        return found

    def describe(self, slot: int, form: str) -> None:
        """Note the JSON text of an event."""
        self.forms[slot] = form

    def form(self, slot: int) -> str:
        """Give the JSON text of an event that was given as such, or as an object."""
        return self.forms[slot] or json.dumps(self.event(slot).to_dict())

    def slot_of(self, event: str) -> int:
        """Give the slot of an event that is here, by its id."""
        return self._slots[event]

    def id(self, slot: int) -> str:
        """Give the id of the event in a slot."""
        name = self.ids[slot]
        if name is None:
            raise LookupError(f"slot {slot} holds no event")
        return name

    def event(self, slot: int) -> Event:
        """Give the event in a slot, of which more than the id is there."""
        event = self.objects[slot]
        if event is None and self.forms[slot]:
            event = self.objects[slot] = read_form(self.forms[slot])
        if event is None:
            raise LookupError(f"of slot {slot} there is no event")
        return event

    def _place(self, us: int, entries: Sequence[tuple[str, int]]) -> None:
        """Give new events of one time their ties: each lies between the ids around it."""
        if us != self._newest_us:
            self._newest_us, self._together = us, []
        for entry in entries:
            insert_id(self._together, entry, self.tie)

    def _place_many(self, ids: Sequence[str], us: Int64s, slots: Int32s) -> None:
        """The same for events of many times; only the first of these may have some already."""
        first = int(np.searchsorted(us, us[0], side="right"))
        self._place(int(us[0]), list(zip(ids[:first], slots[:first].tolist(), strict=True)))
        ids, us, slots = ids[first:], us[first:], slots[first:]
        if not len(us):
            return
        starts = np.flatnonzero(np.diff(us, prepend=us[0] - 1))
        order = _in_order(ids, us) if len(starts) < len(us) else np.arange(len(us))
        ranks = np.arange(len(us)) - np.repeat(starts, np.diff(starts, append=len(us)))
        self.tie[slots[order]] = ranks * _STEP
        newest = order[starts[-1] :].tolist()
        self._newest_us = int(us[-1])
        self._together = [(ids[place], int(slots[place])) for place in newest]

    def _find_room(self, wanted: int, mark: Callable[[Int32s], None]) -> None:
        """Free the slots that nothing refers to; if they are fewer than half, make more."""
        if len(self._free) >= wanted:
            return
        size = len(self.ids)
        alive = self.young.astype(np.int32)
        mark(alive)
        alive[self._free] = 1
        for slot in np.flatnonzero(alive == 0).tolist():
            del self._slots[self.id(slot)]
            self.ids[slot], self.objects[slot], self.forms[slot] = None, None, ""
            self._free.append(slot)
        self._together = [each for each in self._together if alive[each[1]]]
        self.generation += 1
        least = wanted + len(self._slots)
        if 2 * len(self._free) < size or least > size:
            self._grow(max(2 * size, least + least // 8))

    def _grow(self, size: int) -> None:
        old = len(self.ids)
        for name in ("us", "sequence", "tie", "young"):
            column = getattr(self, name)
            setattr(self, name, np.concatenate([column, np.zeros(size - old, column.dtype)]))
        self.ids += [None] * (size - old)
        self.objects += [None] * (size - old)
        self.forms += [""] * (size - old)
        self._free += range(size - 1, old - 1, -1)


@lru_cache(maxsize=_READ)
def read_form(form: str) -> Event:
    """Give the event of a JSON text; the tables of a process hold the same ones again and again."""
    with reading("an event in the state of feeds"):
        return read_event(json.loads(form))


def _in_order(ids: Sequence[str], us: Int64s) -> Int64s:
    """Give the places of events by time, then by id."""
    table = pa.table({"us": us, "id": pa.array(ids, pa.large_string())})
    found = pc.sort_indices(table, sort_keys=[("us", "ascending"), ("id", "ascending")])
    return np.asarray(found.to_numpy().astype(np.int64))


def insert_id(group: list[tuple[str, int]], entry: tuple[str, int], numbers: Int64s) -> None:
    """Insert an id with its slot in order, and give the slot a number between those around it."""
    at = bisect_left(group, entry)
    group.insert(at, entry)
    below = int(numbers[group[at - 1][1]]) if at else None
    above = int(numbers[group[at + 1][1]]) if at + 1 < len(group) else None
    if below is None or above is None:
        number = above - _STEP if above is not None else 0 if below is None else below + _STEP
    else:
        number = (above + below) // 2
    numbers[entry[1]] = number
    if number == below or abs(number) > _FARTHEST:
        for nth, (_, each) in enumerate(group):
            numbers[each] = nth * _STEP
