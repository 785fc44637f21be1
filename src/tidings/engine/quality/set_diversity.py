"""Running set diversity (PREF Def. 8) of the last deliveries to each subscriber."""

from collections import deque
from typing import Final, Protocol

import numpy as np

from tidings.diversify import Distance, EventHashes
from tidings.diversify.event_tokens import has_kernel
from tidings.engine.quality.kernels import DeliveryRings, measure_deliveries
from tidings.model import validate
from tidings.model.records import Event

SPAN: Final = 10
"""How many deliveries of a subscriber count as one set."""
FLUSH: Final = 4096
"""Deliveries that are measured in one call of the kernel."""
FREE: Final = -1
"""The reference count of a slot without an event."""


class SetDiversity(Protocol):
    """The distances of all pairs of deliveries to one subscriber that are less than a span apart.

    Their mean is div(L) of Def. 8 if L is all that a subscriber received, and no more than a span;
    otherwise it is the mean over the sliding sets of its last deliveries.
    """

    def add(self, subscriber: str, event: Event) -> None:
        """Add a delivery."""

    def forget(self, subscriber: str) -> None:
        """Forget the deliveries of a subscriber that left; measured distances stay."""

    def total(self) -> tuple[float, int]:
        """Return the sum of the distances, and the number of pairs."""


def make_set_diversity(distance: Distance, span: int = SPAN) -> SetDiversity:
    """Return a running set diversity, compiled if kernels implement the distance."""
    validate.count("span", span, low=2)
    return (
        CompiledSetDiversity(distance, span)
        if has_kernel(distance)
        else PlainSetDiversity(distance, span)
    )


class PlainSetDiversity:
    """Set diversity as defined: any distance, pair by pair."""

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


class CompiledSetDiversity:
    """Set diversity by a kernel, some thousand deliveries per call.

    A subscriber takes 4 bytes for each delivery of a span; an event takes its hashes, once, while
    it is among the last deliveries of any subscriber.
    """

    def __init__(self, distance: Distance, span: int = SPAN) -> None:
        self._hashes = EventHashes(distance)
        self._slots: dict[str, int] = {}
        self._event_ids: dict[int, str] = {}
        self._rows: dict[str, int] = {}
        self._free_rows: list[int] = []
        self._pending_rows: list[int] = []
        self._pending_slots: list[int] = []
        self._rings = DeliveryRings(np.zeros((0, span - 1), np.int32), np.zeros(0, np.int64))
        self._references = np.zeros(0, np.int64)
        self._sums = np.zeros(2)

    def add(self, subscriber: str, event: Event) -> None:
        row = self._rows.get(subscriber)
        if row is None:
            row = self._free_rows.pop() if self._free_rows else len(self._rows)
            self._rows[subscriber] = row
        slot = self._slots.get(event.id)
        if slot is None:
            slot = self._add_event(event)
        self._pending_rows.append(row)
        self._pending_slots.append(slot)
        if len(self._pending_rows) >= FLUSH:
            self._flush()

    def forget(self, subscriber: str) -> None:
        row = self._rows.get(subscriber)
        if row is None:
            return
        self._flush()
        ring, counts = self._rings
        self._references[ring[row, : min(int(counts[row]), ring.shape[1])]] -= 1
        counts[row] = 0
        self._free_rows.append(self._rows.pop(subscriber))

    def total(self) -> tuple[float, int]:
        self._flush()
        return float(self._sums[0]), int(self._sums[1])

    def _flush(self) -> None:
        """Measure the pending deliveries, then remove events that no ring refers to."""
        if not self._pending_rows:
            return
        self._reserve_rows()
        measure_deliveries(
            self._hashes.rows,
            np.array(self._pending_rows, np.int64),
            np.array(self._pending_slots, np.int64),
            self._rings,
            self._references,
            self._sums,
        )
        self._pending_rows, self._pending_slots = [], []
        for slot in np.flatnonzero(self._references == 0).tolist():
            self._hashes.remove(slot)
            self._references[slot] = FREE
            del self._slots[self._event_ids.pop(slot)]

    def _add_event(self, event: Event) -> int:
        slot = self._slots[event.id] = self._hashes.add(event)
        self._event_ids[slot] = event.id
        more = self._hashes.capacity - len(self._references)
        if more:
            self._references = np.pad(self._references, (0, more), constant_values=FREE)
        self._references[slot] = 0
        return slot

    def _reserve_rows(self) -> None:
        ring, counts = self._rings
        more = len(self._rows) + len(self._free_rows) - len(ring)
        if more > 0:
            more = max(more, len(ring))
            self._rings = DeliveryRings(
                np.pad(ring, ((0, more), (0, 0))), np.pad(counts, (0, more))
            )
