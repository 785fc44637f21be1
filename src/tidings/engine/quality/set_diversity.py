"""Set diversity as deliveries go by (PREF Def. 8), of the last ones that each subscriber got."""

from collections import deque
from typing import Final, Protocol

import numpy as np

from tidings.diversify import Crowd, Distance
from tidings.diversify.event_tokens import known
from tidings.engine.quality.kernels import follow
from tidings.model import validate
from tidings.model.records import Event

SPAN: Final = 10
"""How many deliveries of a subscriber are looked at as one set."""
FLUSH: Final = 4096
GONE: Final = -1


class SetDiversity(Protocol):
    """The distances of all pairs of deliveries to one subscriber that are less than a span apart.

    Their mean is div(L) of Def. 8 where L is all that a subscriber got, and no more than a span;
    else it is the mean over the sets of its last deliveries, as they moved on.
    """

    def add(self, subscriber: str, event: Event) -> None:
        """Take one more delivery in."""

    def forget(self, subscriber: str) -> None:
        """Forget the deliveries of somebody who left; what was measured stays."""

    def total(self) -> tuple[float, int]:
        """Give the sum of the distances, and of how many pairs they are."""


def set_diversity(distance: Distance, span: int = SPAN) -> SetDiversity:
    """Give what measures: by kernels where they know the distance."""
    validate.count("span", span, low=2)
    return Sets(distance, span) if known(distance) else PlainSets(distance, span)


class PlainSets:
    """As the definition has it: any distance, pair by pair."""

    def __init__(self, distance: Distance, span: int = SPAN) -> None:
        self._distance, self._span = distance, span
        self._last: dict[str, deque[Event]] = {}
        self._sum, self._pairs = 0.0, 0

    def add(self, subscriber: str, event: Event) -> None:
        last = self._last.setdefault(subscriber, deque(maxlen=self._span - 1))
        for other in last:
            self._sum += self._distance.between(event, other)
            self._pairs += 1
        last.append(event)

    def forget(self, subscriber: str) -> None:
        self._last.pop(subscriber, None)

    def total(self) -> tuple[float, int]:
        return self._sum, self._pairs


class Sets:
    """The same by kernels, some thousand deliveries at once.

    A subscriber takes 4 bytes for each delivery of a span, and an event that is the last of
    anybody's its hashes, once.
    """

    def __init__(self, distance: Distance, span: int = SPAN) -> None:
        self._crowd = Crowd(distance)
        self._slots: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._people: dict[str, int] = {}
        self._free: list[int] = []
        self._got: tuple[list[int], list[int]] = ([], [])
        self._rings = (np.zeros((0, span - 1), np.int32), np.zeros(0, np.int64))
        self._held = np.zeros(0, np.int64)
        self._sums = np.zeros(2)

    def add(self, subscriber: str, event: Event) -> None:
        person = self._people.get(subscriber)
        if person is None:
            person = self._free.pop() if self._free else len(self._people)
            self._people[subscriber] = person
        slot = self._slots.get(event.id)
        if slot is None:
            slot = self._admit(event)
        self._got[0].append(person)
        self._got[1].append(slot)
        if len(self._got[0]) >= FLUSH:
            self._flush()

    def forget(self, subscriber: str) -> None:
        person = self._people.get(subscriber)
        if person is None:
            return
        self._flush()
        ring, sizes = self._rings
        self._held[ring[person, : min(int(sizes[person]), ring.shape[1])]] -= 1
        sizes[person] = 0
        self._free.append(self._people.pop(subscriber))

    def total(self) -> tuple[float, int]:
        self._flush()
        return float(self._sums[0]), int(self._sums[1])

    def _flush(self) -> None:
        """Measure what has gathered, and let events go that are nobody's last any more."""
        if not self._got[0]:
            return
        self._make_room()
        got = (np.array(self._got[0], np.int64), np.array(self._got[1], np.int64))
        follow(self._crowd.rows, got, self._rings, self._held, self._sums)
        self._got = ([], [])
        for slot in np.flatnonzero(self._held == 0).tolist():
            self._crowd.remove(slot)
            self._held[slot] = GONE
            del self._slots[self._names.pop(slot)]

    def _admit(self, event: Event) -> int:
        slot = self._slots[event.id] = self._crowd.add(event)
        self._names[slot] = event.id
        more = self._crowd.room - len(self._held)
        if more:
            self._held = np.pad(self._held, (0, more), constant_values=GONE)
        self._held[slot] = 0
        return slot

    def _make_room(self) -> None:
        ring, sizes = self._rings
        more = len(self._people) + len(self._free) - len(ring)
        if more > 0:
            more = max(more, len(ring))
            self._rings = (np.pad(ring, ((0, more), (0, 0))), np.pad(sizes, (0, more)))
