"""All subscribers with one policy without diversity: their windows in one set of arrays."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_types import Int32s, Int64s
from tidings.compiled.arrays import run_indexes
from tidings.compiled.exact_sum import PARTS
from tidings.feed.columnar import policy_codes as codes
from tidings.feed.columnar.cohort_arrays import (
    CohortOutput,
    DeliveryBuffer,
    run_kernel,
    take_last,
)
from tidings.feed.columnar.event_table import EventTable
from tidings.feed.columnar.kernels import layout
from tidings.feed.columnar.kernels.compaction import (
    copy_ranked_sets,
    mark_ranked,
    release_row,
)
from tidings.feed.columnar.kernels.layout import (
    END,
    FIRST,
    FRONT,
    HELD,
    NEVER,
    RING,
    RING_CLASS,
    SIZE,
    SLAB,
    SLAB_CLASS,
    EventColumns,
    Offers,
    Output,
    RankedWindows,
)
from tidings.feed.columnar.kernels.ranked_windows import (
    advance_periodic,
    offer_history,
    offer_periodic,
    offer_sliding,
)
from tidings.feed.columnar.kernels.timing import NONE, order_keys
from tidings.feed.columnar.period_ends import (
    NO_PERIODS,
    calendar_of,
    ends_for,
    set_starts,
)
from tidings.feed.columnar.slab_pools import (
    Pool,
    SlabColumns,
    assign_slabs,
    lengthen,
    pool_size,
    reserve_slab,
)
from tidings.feed.policy_key import counts_published
from tidings.policy import Policy
from tidings.window import Moment

KERNELS: Final[dict[int, Callable[[RankedWindows, Output, Offers], None]]] = {
    layout.SLIDING: offer_sliding,
    layout.CONTINUOUS: offer_sliding,
    layout.BEST: offer_sliding,
    layout.PERIODIC: offer_periodic,
    layout.JUMPING: offer_periodic,
    layout.HISTORY: offer_history,
}
COUNTERS: Final = [
    layout.SEEN,
    layout.SENT,
    layout.END,
    layout.SIZE,
    layout.HELD,
    layout.OLDEST_US,
    layout.NEWEST_US,
]
"""The columns of `head` that a snapshot keeps."""
_FIRST_SIZE: Final = 16


class RankedCohort:
    """Windows of one policy without diversity, in arrays; see `kernels.layout`."""

    def __init__(self, policy: Policy, buffer: DeliveryBuffer, events: EventTable) -> None:
        self.policy, self.counts_published = policy, counts_published(policy)
        self.events = events
        self._buffer = buffer
        self.codes, self.decay = codes.policy_codes(policy), codes.decay_codes(policy)
        self.calendar, self._period_ends = calendar_of(policy.window), NO_PERIODS
        self.has_rings = codes.has_ring(self.codes)
        self.step_axis = codes.step_axis(self.codes)
        self.head = np.zeros((0, layout.RANKED_WIDTH), np.int64)
        self.subscriber = np.zeros(0, np.int32)
        self.key = np.zeros(_FIRST_SIZE, np.float64)
        self.score = self.key if self.decay.kind == NONE else np.zeros(_FIRST_SIZE, np.float64)
        self.entry = np.zeros((_FIRST_SIZE, 3), np.int32)
        self.ring = np.zeros(_FIRST_SIZE if self.has_rings else 0, np.int32)
        self.lists = Pool(
            codes.list_slabs(self.codes),
            ("key", "score", "entry"),
            SlabColumns("head", SIZE, SLAB, SLAB_CLASS),
        )
        self.rings = Pool(
            codes.ring_slabs(self.codes), ("ring",), SlabColumns("head", HELD, RING, RING_CLASS)
        )
        self.disorder = np.zeros(1, np.int64)
        self._ranks, self._partials = np.zeros(_FIRST_SIZE + 1), np.zeros(PARTS)
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self.head) - len(self._free)

    @property
    def windows(self) -> RankedWindows:
        """The arrays as the kernels take them."""
        return RankedWindows(
            self.head,
            self.key,
            self.score,
            self.entry,
            self.ring,
            self.lists.slabs,
            self.rings.slabs,
            self.disorder,
            self._event_columns(),
            self.codes,
            self.decay,
            self._ranks,
            self._partials,
        )

    def _event_columns(self) -> EventColumns:
        events = self.events
        return EventColumns(events.us, events.sequence, events.id_order, self._period_ends)

    @property
    def nbytes(self) -> int:
        """The bytes that the arrays of the windows hold."""
        scores = () if self.score is self.key else (self.score,)
        pools = (self.head, self.key, *scores, self.entry, self.ring, self.subscriber)
        return sum(array.nbytes for array in (*pools, *self.lists.slabs, *self.rings.slabs))

    def enrol(self, number: int, _: str) -> int:
        """Return the row of a new, empty window for a subscriber's number."""
        self._reserve_rows(1)
        row = self._free.pop()
        self.subscriber[row] = number
        return row

    def enrol_many(self, numbers: Int64s, _: Sequence[str]) -> Int32s:
        """Return the rows of new, empty windows."""
        self._reserve_rows(len(numbers))
        rows = take_last(self._free, len(numbers))
        self.subscriber[rows] = numbers
        return rows

    def drop(self, row: int) -> None:
        """Empty the window of a row, and free the row."""
        self.reset(row)
        self._free.append(row)

    def reset(self, row: int) -> None:
        """Empty the window of a row."""
        release_row(self.windows, row)
        self._clear(slice(row, row + 1))
        if len(self) == 1:
            self.disorder[0] = 0

    def _reserve_rows(self, count: int) -> None:
        """Make sure that `count` rows are free.

        If memory runs out on the way, nothing has changed: `head`, by whose length rows are
        counted, grows last.
        """
        if len(self._free) >= count:
            return
        old = len(self.head)
        size = old + max(count, _FIRST_SIZE, old // 4)
        free = range(size - 1, old - 1, -1)
        lengthen(self, ("subscriber", "head"), size)
        self._clear(slice(old, size))
        self._free += free

    def _clear(self, rows: slice) -> None:
        self.head[rows] = 0
        self.head[rows, [SLAB_CLASS, RING_CLASS]] = -1
        self.head[rows, END] = NEVER

    def offer(self, offers: Offers) -> CohortOutput:
        """Offer matches."""
        kernel = KERNELS[self.codes.window]
        self._period_ends = ends_for(self.calendar, self.events.us[offers.slot])
        output = run_kernel(
            self._buffer, offers.row, lambda output: kernel(self.windows, output, offers), self
        )
        set_starts(self.calendar, output.rows.columns)
        return output

    def advance(self, rows: Int32s, now: Moment) -> CohortOutput:
        """Move the clock of some rows to `now`."""
        output = run_kernel(
            self._buffer,
            rows,
            lambda output: advance_periodic(self.windows, output, rows, now),
            self,
        )
        set_starts(self.calendar, output.rows.columns)
        return output

    def columns(self, rows: Int64s) -> dict[str, npt.NDArray[Any]]:
        """Return the state of some rows without unused cells."""
        head, cells = self.head[rows[:, None], COUNTERS], self.entries(rows)
        if self.has_rings:
            head[:, [5, 6]] = 0  # where a ring is kept, these are not times
        return {
            "head": head,
            "score": self.score[cells],
            "mark": self.entry[cells, layout.MARK],
            "slot": self.entry[cells, layout.SLOT],
            "handle": self.entry[cells, layout.MATCHED],
            "ring": self.ring[self.cells(rows)] if self.has_rings else self.ring[:0],
            "disorder": self.disorder.copy(),
        }

    def fill(self, state: dict[str, Any], handles: Int32s) -> None:
        """Restore the state of all rows, which are enrolled in its order and still empty."""
        rows = np.arange(len(state["head"]))
        self.head[rows[:, None], COUNTERS] = state["head"]
        self.disorder[0] = state["disorder"].max()
        self._assign_slabs(self.lists, rows)
        cells = self.entries(rows)
        self.entry[cells] = np.stack([state["slot"], handles, state["mark"]], axis=1)
        self.score[cells] = state["score"]
        keys = np.empty(len(cells), np.float64)
        order_keys(self.decay, state["score"].copy(), self.events.us[state["slot"]], keys)
        self.key[cells] = keys
        if self.has_rings:
            self._assign_slabs(self.rings, rows)
            self.head[rows, FRONT] = 0
            self.ring[self.cells(rows)] = state["ring"]

    def _assign_slabs(self, pool: Pool, rows: Int64s) -> None:
        assign_slabs(self, pool, rows)
        lengthen(self, pool.arrays, pool_size(int(pool.slabs.used[0])))

    def entries(self, rows: Int64s) -> Int64s:
        """Return the cells of the lists of some rows, best first."""
        head = self.head[rows]
        return run_indexes(head[:, SLAB] + head[:, FIRST], head[:, SIZE])

    def cells(self, rows: Int64s) -> Int64s:
        """Return the cells of the rings of some rows, oldest first."""
        head = self.head[rows]
        held = head[:, HELD]
        capacities = np.repeat(self.rings.slabs.capacity[head[:, RING_CLASS]], held)
        offsets = run_indexes(head[:, FRONT], held) % capacities
        return np.asarray(np.repeat(head[:, RING], held) + offsets)

    def mark_slots(self, alive: Int32s) -> None:
        """Mark the event slots in use."""
        mark_ranked(self.windows, self.has_rings, alive)

    def handles(self) -> Int32s:
        """Return the handles of all entries."""
        handles: Int32s = self.entry[self.entries(np.arange(len(self.head))), layout.MATCHED]
        return handles

    def copy_sets(self, old: Int32s, new: Int32s, used: int) -> int:
        """Copy the sets of matched subscriptions in use; return how much of `new` is used."""
        return int(copy_ranked_sets(self.windows, old, new, used))

    def make_room(self, row: int, used: int) -> None:
        """Make room for at least one more offer to this row."""
        size = int(self.head[row, SIZE])
        self._buffer.make_room(used, size + 1)
        if self.codes.window == layout.HISTORY and len(self._ranks) <= size:
            self._ranks = np.zeros(size + size // 4 + 1)
        reserve_slab(self, self.lists, row)
        if self.has_rings:
            reserve_slab(self, self.rings, row)
