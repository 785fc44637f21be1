"""MatchScratch buffers of one reader: its own stamps and epochs, and room for answers."""

from typing import Any, Final

import numpy as np

from tidings.compiled.array_types import AnyArray
from tidings.index.access.kernels.match import MatchScratch
from tidings.index.access.kernels.partial_match import TouchScratch
from tidings.index.access.kernels.postings import LEVELS, WIDE
from tidings.index.access.kernels.records import EncodedEvents, Stamps
from tidings.index.access.snapshot import Snapshot

LAST_EPOCH: Final = 2_000_000_000
TOGETHER: Final = 32  # rows whose records are tested together


class ScratchBuffers:
    """Arrays that are allocated once and grow; one query uses them at a time."""

    def __init__(self) -> None:
        self._arrays: dict[str, AnyArray] = {}
        self._epoch = np.zeros(2, np.int32)
        self._rows = np.zeros(TOGETHER, np.int32)
        self.counters = np.zeros(3, np.int64)  # see `MatchScratch`

    @property
    def exhausted(self) -> bool:
        """Whether the epochs are about to overflow."""
        return bool(self._epoch[0] > LAST_EPOCH)

    def stamps(self, snapshot: Snapshot, events: EncodedEvents, most_terms: int) -> Stamps:
        """Return stamps for events that stamp at most `most_terms` terms each."""
        terms, slots = snapshot.vocabulary.terms, snapshot.vocabulary.slots
        spans = events.spans.reshape(-1, 4)
        values = int((spans[:, 3] - spans[:, 2] + spans[:, 1] - spans[:, 0]).max(initial=0))
        uncertain = len(events.probabilities) > 0
        stamp = self._buffer("stamp", terms + 1 + slots, np.int32)
        return Stamps(
            self._epoch,
            stamp,
            terms,
            stamp[terms + 1 :],
            self._buffer("slot_span", 2 * slots, np.int32),
            self._buffer("term_probability", terms, np.float64) if uncertain else np.empty(0),
            self._buffer("slot_probability", slots, np.float64) if uncertain else np.empty(0),
            self._buffer("terms", most_terms, np.int32),
            self._buffer("slots", values, np.int32),
            self._buffer("upper", values, np.int64),
            self._buffer("lower", values, np.int64),
        )

    def scratch(
        self, snapshot: Snapshot, events: EncodedEvents, stamps: Stamps, k: int
    ) -> MatchScratch:
        """Return buffers to match, with a heap of k."""
        lists = len(stamps.terms) + LEVELS * len(stamps.slots)
        if events.upper is not events.lower or _has_several_values(events):
            # A hull may lead to all nodes of a tree: fewer than two per cell.
            lists += sum(int(one.postings.cells.sum()) for one in snapshot.segments) * 2
        return MatchScratch(
            stamps,
            self._buffer("taken", len(snapshot.table.subscriptions), np.int32),
            self._buffer("lists", WIDE * lists, np.int32),
            np.empty(k, np.int64),
            self._buffer("ranks", snapshot.memtable.count, np.int32),
            self._rows,
            self.counters,
        )

    def touch(self, ranks: int, checks: int) -> TouchScratch:
        """Return buffers to collect the checks that hold."""
        return TouchScratch(
            self._buffer("seen", ranks, np.int32),
            self._buffer("place", ranks, np.int32),
            self._buffer("touched", ranks, np.int32),
            self._buffer("counts", ranks, np.int32),
            self._buffer("bounds", ranks, np.float64),
            self._buffer("held", 2 * checks + 2, np.int32),
            self._buffer("partials", checks + 1, np.float64),
        )

    def _buffer(self, name: str, size: int, dtype: Any) -> AnyArray:
        buffer = self._arrays.get(name)
        if buffer is None or len(buffer) < size:
            buffer = self._arrays[name] = np.zeros(max(64, size + size // 4), dtype)
        return buffer


def _has_several_values(events: EncodedEvents) -> bool:
    """Return whether some slot may have several values in one event."""
    return bool(np.any(events.slots[1:] == events.slots[:-1]))
