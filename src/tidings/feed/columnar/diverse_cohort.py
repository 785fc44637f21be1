"""All subscribers with one policy that diversifies: their windows in one set of arrays.

A cohort keeps all matches of its windows, because one of low rank may win by its distance; and the
last choice, where the next one can start from it. Features of events are shared by all cohorts.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.arrays import run_indexes
from tidings.compiled.exact_sum import PARTS
from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.diversify.memory_limits import DENSE, check_dense, check_keys, is_dense
from tidings.feed.columnar import policy_codes as codes
from tidings.feed.columnar.cohort_arrays import (
    CohortOutput,
    DeliveryBuffer,
    run_kernel,
    take_last,
)
from tidings.feed.columnar.event_table import EventTable, FeatureCache
from tidings.feed.columnar.kernels import layout
from tidings.feed.columnar.kernels.compaction import (
    copy_diverse_sets,
    mark_diverse,
    release_diverse_row,
)
from tidings.feed.columnar.kernels.diverse_choose import RangeSize, peek
from tidings.feed.columnar.kernels.diverse_windows import (
    PARTIALS,
    advance_diverse,
    offer_diverse_history,
    offer_diverse_periodic,
    offer_diverse_sliding,
)
from tidings.feed.columnar.kernels.layout import (
    HELD,
    LAST,
    NEVER,
    SLAB,
    SLAB_CLASS,
    AxisRange,
    DiverseBuffer,
    DiverseWindows,
    EventColumns,
    LastChoice,
    Offers,
    Output,
    Scratch,
    SearchCodes,
)
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
    new_slabs,
    pool_size,
    reserve_slab,
    size_classes,
)
from tidings.feed.policy_key import counts_published
from tidings.policy import Policy
from tidings.window import Moment

COUNTERS: Final = [layout.SEEN, layout.SENT, layout.END, layout.HELD]
"""The columns of `head` that a snapshot keeps."""
EMPTY_ROW: Final = (0, 0, NEVER, 0, 0, -1, -1, 0)
POOLS: Final = {"mark": np.int64, "score": np.float64, "handle": np.int32, "slot": np.int32}
"""The columns of a window. `slot` is the last to grow, because kernels go by its length."""
KERNELS: Final[dict[int, Callable[[DiverseWindows, Output, Offers, SearchCodes | None], None]]] = {
    layout.SLIDING: offer_diverse_sliding,
    layout.CONTINUOUS: offer_diverse_sliding,
    layout.BEST: offer_diverse_sliding,
    layout.PERIODIC: offer_diverse_periodic,
    layout.JUMPING: offer_diverse_periodic,
    layout.HISTORY: offer_diverse_history,
}
_FIRST_SIZE: Final = 16
_SMALLEST_SLAB: Final = 4
_MATRIX: Final = 256
"""The largest history whose distances are all stored."""


class ChosenPlaces(NamedTuple):
    """Chosen places of a window and their fresh ranks, in the order of choice."""

    places: Int64s
    ranks: Float64s


class DiverseCohort:
    """Windows of one policy with a diversifier, in arrays; see `kernels.layout`."""

    def __init__(self, policy: Policy, features: FeatureCache, events: EventTable) -> None:
        self.policy, self.counts_published = policy, counts_published(policy)
        self.events = events
        self.codes, self.decay = codes.policy_codes(policy), codes.decay_codes(policy)
        self.diversity = codes.diversity_codes(policy, self.codes)
        self.search = codes.search_codes(policy)
        self.calendar, self._period_ends = calendar_of(policy.window), NO_PERIODS
        self.step_axis = codes.step_axis(self.codes)
        votes = self.diversity.rule == layout.VOTES
        history = self.codes.window == layout.HISTORY
        self.features = features.table(policy.diversify, history or not votes)
        self.features.holders.add(self)
        self._dense = is_dense(policy.diversify) and not history
        self._most = DENSE if self._dense else None
        if isinstance(policy.diversify, MaxDivRelLsh) and not history:
            self._most = max(1, policy.diversify.most_keys // self.features.tables)
        self.head = np.zeros((0, layout.DIVERSE_WIDTH), np.int64)
        self.subscriber = np.zeros(0, np.int32)
        self.mark, self.score, self.handle, self.slot = (
            np.zeros(0, kind) for kind in POOLS.values()
        )
        keeps = self.diversity.kept_width != 0
        self.votes = np.zeros(0, np.int32)
        self._width = self.diversity.kept_width if keeps and not votes else 0
        self.kept_place, self.kept_value = np.zeros(0, np.int32), np.zeros(0)
        # The matches, and the choices that are kept beside them.
        choices = ("kept_place", "kept_value") if self._width < 0 else ()
        votes_kept = ("votes",) if keeps and votes else ()
        self.pool = Pool(
            new_slabs(self._slab_sizes()),
            (*choices, *votes_kept, *POOLS),
            SlabColumns("head", HELD, SLAB, SLAB_CLASS),
        )
        self._buffer = DeliveryBuffer()
        self._free: list[int] = []
        self._without_features = np.zeros(0, np.bool_)
        self._scratch = self._new_scratch(_FIRST_SIZE)

    def _slab_sizes(self) -> list[int]:
        """Return the sizes of slabs; one of them is the limit on the events of a window."""
        sizes = size_classes(codes.longest(self.codes), _SMALLEST_SLAB)
        if self._most is not None and self._most not in sizes and sizes[-1] > self._most:
            sizes = sorted([*sizes, self._most])
        return sizes

    def __len__(self) -> int:
        return len(self.head) - len(self._free)

    @property
    def slabs(self) -> layout.Slabs:
        """The slabs of all windows."""
        return self.pool.slabs

    @property
    def buffer(self) -> DiverseBuffer:
        """The matches of all windows as the kernels take them."""
        return DiverseBuffer(self.head, self.slot, self.handle, self.score, self.mark, self.slabs)

    @property
    def nbytes(self) -> int:
        """The bytes that the arrays of the windows hold, without the features of events."""
        columns = (self.kept_place, self.kept_value, self.votes, self.subscriber)
        pools = (getattr(self, name) for name in POOLS)
        return sum(array.nbytes for array in (self.head, *pools, *self.slabs, *columns))

    @property
    def windows(self) -> DiverseWindows:
        """The arrays as the kernels take them."""
        events = self.events
        return DiverseWindows(
            self.buffer,
            LastChoice(self.kept_place, self.kept_value, self.votes),
            EventColumns(events.us, events.sequence, self.features.id_order, self._period_ends),
            self.features.columns,
            self.codes,
            self.decay,
            self.diversity,
            self._scratch,
        )

    def _new_scratch(self, size: int) -> Scratch:
        side = min(size, _MATRIX) if self.codes.window == layout.HISTORY else 0
        return Scratch(
            us=np.zeros(size, np.int64),
            rank=np.zeros(size),
            link=np.zeros(size),
            features=np.zeros(size, np.int64),
            linked=np.zeros(size, np.int64),
            chosen=np.zeros(size + 1, np.int32),
            value=np.zeros(size + 1),
            partials=np.zeros((PARTIALS, PARTS)),
            distances=np.zeros((side, side)),
            winners=np.zeros(self.features.tables, np.int64),
        )

    def enrol(self, number: int, name: str) -> int:
        """Return the row of a new, empty window for a subscriber's number."""
        return int(self.enrol_many(np.array([number]), [name])[0])

    def enrol_many(self, numbers: Int64s, _: Sequence[str]) -> Int32s:
        """Return the rows of new, empty windows."""
        if len(self._free) < len(numbers):
            self._add_rows(max(len(numbers), _FIRST_SIZE, len(self.head) // 4))
        rows = take_last(self._free, len(numbers))
        self.head[rows], self.subscriber[rows] = EMPTY_ROW, numbers
        return rows

    def _add_rows(self, more: int) -> None:
        """Add free rows; `head`, by whose length rows are counted, grows last."""
        old, size = len(self.head), len(self.head) + more
        free, width = range(size - 1, old - 1, -1), max(self._width, 0)
        lengthen(self, ("kept_place", "kept_value"), size * width)
        lengthen(self, ("subscriber", "_without_features", "head"), size)
        self.head[old:] = EMPTY_ROW
        self._free += free

    def drop(self, row: int) -> None:
        """Empty the window of a row, and free the row."""
        self.reset(row)
        self._free.append(row)

    def reset(self, row: int) -> None:
        """Empty the window of a row."""
        release_diverse_row(self.buffer, row)
        self.head[row], self._without_features[row] = EMPTY_ROW, False

    def prepare(self, rows: Int32s, slots: Int32s) -> None:
        """Compute the features of events that are offered next to some rows."""
        self._add_missing_features(rows)
        self.features.add(self.events, np.unique(slots).tolist())

    def offer(self, offers: Offers) -> CohortOutput:
        """Offer matches whose events are prepared."""
        kernel = KERNELS[self.codes.window]
        self._period_ends = ends_for(self.calendar, self.events.us[offers.slot])
        output = run_kernel(
            self._buffer,
            offers.row,
            lambda output: kernel(self.windows, output, offers, self.search),
            self,
        )
        set_starts(self.calendar, output.rows.columns)
        return output

    def advance(self, rows: Int32s, now: Moment) -> CohortOutput:
        """Move the clock of some rows to `now`."""
        self._add_missing_features(rows)
        output = run_kernel(
            self._buffer,
            rows,
            lambda output: advance_diverse(self.windows, output, rows, now, self.search),
            self,
        )
        set_starts(self.calendar, output.rows.columns)
        return output

    def peek(
        self, row: int, low: int, high: int, now_us: int, least: int
    ) -> tuple[ChosenPlaces, RangeSize]:
        """Choose from a range of the axis without changing the window.

        Nothing is chosen from fewer than `least` candidates.
        """
        self._add_missing_features(np.array([row]))
        within = AxisRange(self.codes.axis, low, high)
        size, *measured = peek(self.windows, row, within, now_us, least, self.search)
        places = self._scratch.chosen[:size].astype(np.int64)
        scores = self.window(row, "score")[places]
        times = self.events.us[self.window(row, "slot")[places]]
        ranks = [
            self.policy.decay.fresh(score, us, now_us)
            for score, us in zip(scores.tolist(), times.tolist(), strict=True)
        ]
        return ChosenPlaces(places, np.array(ranks, np.float64)), RangeSize(*measured)

    def window(self, row: int, column: str) -> npt.NDArray[Any]:
        """Return a column of the places of a window: slot, handle, score or mark."""
        start, size_class = int(self.head[row, SLAB]), int(self.head[row, SLAB_CLASS])
        size = int(self.slabs.capacity[size_class]) if size_class >= 0 else 0
        pool: npt.NDArray[Any] = getattr(self, column)
        return pool[start : start + size]

    def make_room(self, row: int, used: int) -> None:
        """Make room for at least one more offer to this row."""
        self._buffer.make_room(used, int(self.head[row, HELD]) + 1)
        largest = len(self.slabs.capacity) - 1
        size_class = min(int(self.head[row, SLAB_CLASS]) + 1, largest)
        capacity = int(self.slabs.capacity[size_class])
        self._check_size(row)
        candidates = min(capacity, DENSE) if self._dense else capacity
        if len(self._scratch.rank) < candidates:
            self._scratch = self._new_scratch(candidates)
        reserve_slab(self, self.pool, row)

    def _check_size(self, row: int) -> None:
        """Refuse to let a window grow beyond the limit on its events."""
        held, size_class = int(self.head[row, HELD]), int(self.head[row, SLAB_CLASS])
        capacity = int(self.slabs.capacity[size_class]) if size_class >= 0 else 0
        if self._most is None or (capacity <= self._most and not held >= capacity == self._most):
            return
        count, part = max(held, self._most) + 1, self.policy.diversify
        if isinstance(part, MaxDivRelLsh):
            check_keys(count, self.features.tables, part.most_keys)
        else:
            check_dense(part.name, count)

    def columns(self, rows: Int64s) -> dict[str, npt.NDArray[Any]]:
        """Return the state of some rows without free places, in order of arrival."""
        cells, owners = self._entries(rows)
        cells = cells[np.lexsort((self.mark[cells], owners))]
        pools = {name: getattr(self, name)[cells] for name in POOLS}
        return {"head": self.head[rows][:, COUNTERS], **pools}

    def _entries(self, rows: Int64s) -> tuple[Int64s, Int64s]:
        """Return the cells of all matches of some rows, and the index of the row of each."""
        classes = self.head[rows, SLAB_CLASS]
        capacities = np.where(classes >= 0, self.slabs.capacity[classes], 0)
        cells = run_indexes(self.head[rows, SLAB], capacities)
        in_use = self.mark[cells] > 0
        return cells[in_use], np.repeat(np.arange(len(rows)), capacities)[in_use]

    def fill(self, state: dict[str, npt.NDArray[Any]], handles: Int32s) -> None:
        """Restore the state of all rows, which are enrolled in its order and still empty.

        Features of a window's events are computed when the window is used for the first time.
        """
        rows, held = np.arange(len(state["head"])), state["head"][:, 3]
        self.head[rows[:, None], COUNTERS] = state["head"]
        self.head[rows, LAST] = held - 1
        assign_slabs(self, self.pool, rows)
        lengthen(self, self.pool.arrays, pool_size(int(self.slabs.used[0])))
        classes = self.head[rows, SLAB_CLASS]
        largest = int(self.slabs.capacity[classes.max()]) if held.any() else 0
        if len(self._scratch.rank) < largest:
            self._scratch = self._new_scratch(largest)
        cells = run_indexes(self.head[rows, SLAB], held)
        self.slot[cells], self.handle[cells] = state["slot"], handles
        self.score[cells], self.mark[cells] = state["score"], state["mark"]
        self._without_features[rows] = True

    def _add_missing_features(self, rows: npt.NDArray[Any]) -> None:
        """Compute the features of restored windows that are about to be used."""
        if not self._without_features.any():
            return
        missing = np.unique(rows[self._without_features[rows]])
        self._without_features[missing] = False
        head = self.head[missing]
        slots = self.slot[run_indexes(head[:, SLAB], head[:, HELD])]
        self.features.add(self.events, np.unique(slots).tolist())

    def mark_slots(self, alive: Int32s) -> None:
        """Mark the event slots in use."""
        mark_diverse(self.buffer, alive)

    def handles(self) -> Int32s:
        """Return the handles of all matches."""
        return self.handle[self._entries(np.arange(len(self.head)))[0]]

    def copy_sets(self, old: Int32s, new: Int32s, used: int) -> int:
        """Copy the sets of matched subscriptions in use; return how much of `new` is used."""
        return int(copy_diverse_sets(self.buffer, old, new, used))
