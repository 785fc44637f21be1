"""The events that windows hold, once each: a slot, and what the kernels need of it in arrays."""

from bisect import bisect_left
from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from tidings.model import Event

Ids = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]
UNNUMBERED: Final = -1
_STEP: Final = 1 << 40
_FARTHEST: Final = 1 << 61
_FIRST: Final = 64


class EventTable:
    """Slots of events. Those that no window holds any more are given again when room runs out.

    Kernels order events of the same time by `tie`, which goes as their ids do. Events come in order
    of publication, so only the newest time can get more of them.
    """

    def __init__(self) -> None:
        self.us = np.zeros(_FIRST, np.int64)
        self.sequence = np.zeros(_FIRST, np.int64)
        self.tie = np.zeros(_FIRST, np.int64)
        self.young = np.zeros(_FIRST, np.bool_)
        self.objects: list[Event | None] = [None] * _FIRST
        self.generation = 0
        self._slots: dict[str, int] = {}
        self._free = list(range(_FIRST - 1, -1, -1))
        self._newest_us: int | None = None
        self._together: list[tuple[str, int]] = []

    def __len__(self) -> int:
        return len(self._slots)

    def slot(self, event: Event, mark: Callable[[Ids], None]) -> int:
        """Give the slot of an event; `mark` marks the slots in use where room has to be found.

        A new slot is kept until the event has been offered, or until time goes on.
        """
        found = self._slots.get(event.id)
        if found is not None:
            return found
        if not self._free:
            self._sweep(mark)
        slot = self._free.pop()
        self._slots[event.id], self.objects[slot] = slot, event
        self.us[slot] = event.published_us
        self.sequence[slot] = UNNUMBERED if event.sequence is None else event.sequence
        self.young[slot] = True
        self._place(event, slot)
        return slot

    def slot_of(self, event: str) -> int:
        """Give the slot of an event that is here, by its id."""
        return self._slots[event]

    def event(self, slot: int) -> Event:
        """Give the event in a slot."""
        event = self.objects[slot]
        if event is None:
            raise LookupError(f"slot {slot} holds no event")
        return event

    def _place(self, event: Event, slot: int) -> None:
        """Give the event its tie among those of its time: between the ids around it."""
        if event.published_us != self._newest_us:
            self._newest_us, self._together = event.published_us, []
        insert_id(self._together, (event.id, slot), self.tie)

    def _sweep(self, mark: Callable[[Ids], None]) -> None:
        """Free the slots that nothing refers to; if they are fewer than half, make more."""
        size = len(self.objects)
        alive = self.young.astype(np.int32)
        mark(alive)
        for slot in np.flatnonzero(alive == 0).tolist():
            del self._slots[self.event(slot).id]
            self.objects[slot] = None
            self._free.append(slot)
        self._together = [each for each in self._together if alive[each[1]]]
        self.generation += 1
        if 2 * len(self._free) < size:
            self._grow(2 * size)

    def _grow(self, size: int) -> None:
        old = len(self.objects)
        for name in ("us", "sequence", "tie", "young"):
            column = getattr(self, name)
            setattr(self, name, np.concatenate([column, np.zeros(size - old, column.dtype)]))
        self.objects += [None] * (size - old)
        self._free += range(size - 1, old - 1, -1)


def insert_id(group: list[tuple[str, int]], entry: tuple[str, int], numbers: Ints) -> None:
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
