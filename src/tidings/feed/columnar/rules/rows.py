"""The state of the rules of many subscribers with one policy, in arrays; see `kernels.layout`.

Each subscriber has a row, and each rule of it a line. Lists of held events and rings are in pools,
which are cut into slabs, compacted when they are full, and lengthened when that is not enough.
"""

from typing import Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.feed.columnar.delivery_batch import IdTables
from tidings.feed.columnar.kernels.decay import order_keys
from tidings.feed.columnar.kernels.layout import FAR, Slabs
from tidings.feed.columnar.ranked_cohort import concatenated_ranges, lengthened, take_last
from tidings.feed.columnar.rules import codes
from tidings.feed.columnar.rules.codes import RuleSet
from tidings.feed.columnar.rules.kernels import layout
from tidings.feed.columnar.rules.kernels.layout import (
    END,
    EVENT,
    FRONT,
    HANDLE,
    HELD,
    RING,
    RING_CLASS,
    SIZE,
    SLAB,
    SLAB_CLASS,
    START,
    GotPool,
    HeldPool,
    RankPool,
)
from tidings.feed.columnar.rules.kernels.upkeep import move_cells

_FIRST_SIZE: Final = 16


class SlabColumns(NamedTuple):
    """The columns of a pool whose slabs belong to lines: of the size, the start and the class."""

    size: int
    start: int
    slab_class: int


class Pool(NamedTuple):
    """A pool: its slabs, the arrays that are cut alike, and where lines keep their slabs."""

    slabs: Slabs
    arrays: tuple[str, ...]
    columns: SlabColumns


class ListOrder(NamedTuple):
    """The order of a list of held events, and what it is sorted by, in that order."""

    places: Int64s
    values: Float64s


class RuleRows:
    """Rows of rules, and the pools of what they hold and remember."""

    def __init__(self, rules: RuleSet, tables: IdTables) -> None:
        self.rules, self._tables, self.places = rules, tables, len(rules.codes.kind)
        self.sent, self.deadline = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.paused, self.subscriber = np.zeros(0, np.int8), np.zeros(0, np.int32)
        self.span = np.zeros((0, layout.SPAN_WIDTH), np.int64)
        self.count = np.zeros((0, layout.COUNT_WIDTH), np.int32)
        self.held_cell = np.zeros((1, layout.CELL_WIDTH), np.int64)
        self.held_value, self.held_rank, self.held_score = (np.zeros(1) for _ in range(3))
        self.got_us, self.got_slot = np.zeros(0, np.int64), np.zeros(0, np.int32)
        self.rank = np.zeros(0)
        ring = SlabColumns(SIZE, RING, RING_CLASS)
        self.held = Pool(
            codes.held_slabs(),
            ("held_cell", "held_rank", "held_score", "held_value"),
            SlabColumns(HELD, SLAB, SLAB_CLASS),
        )
        self.ranks = Pool(codes.rank_slabs(), ("rank",), ring)
        self.got = Pool(codes.got_slabs(), ("got_us", "got_slot"), ring)
        self.soonest = FAR
        """No deadline is before this."""
        self.is_restored = np.zeros(0, np.bool_)
        """Whether the features of the events of a row must be computed when they are used."""
        self._arrivals = np.zeros(1, np.int64)
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self.sent) - len(self._free)

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays."""
        rows = (self.sent, self.deadline, self.paused, self.subscriber, self.is_restored)
        pools = (getattr(self, name) for pool in self._pools for name in pool.arrays)
        return sum(array.nbytes for array in (*rows, self.span, self.count, *pools))

    @property
    def _pools(self) -> tuple[Pool, ...]:
        return (self.held, self.ranks, self.got)

    def held_pool(self) -> HeldPool:
        """Return the held events as the kernels take them."""
        arrays = (self.held_cell, self.held_value, self.held_rank, self.held_score)
        return HeldPool(*arrays, self.held.slabs, self._arrivals)

    def rank_pool(self) -> RankPool:
        """Return the remembered ranks as the kernels take them."""
        return RankPool(self.rank, self.ranks.slabs)

    def got_pool(self) -> GotPool:
        """Return what subscribers got as the kernels take it."""
        return GotPool(self.got_us, self.got_slot, self.got.slabs)

    def enrol_many(self, numbers: Int64s) -> Int32s:
        """Return the rows of new rules for the numbers of subscribers."""
        if len(self._free) < len(numbers):
            self._add_rows(max(len(numbers), _FIRST_SIZE, len(self.sent) // 8))
        rows = take_last(self._free, len(numbers))
        self.subscriber[rows] = numbers
        return rows

    def _add_rows(self, more: int) -> None:
        """Add free rows; `sent`, by whose length rows are counted, grows last."""
        old = len(self.sent)
        size, lines = old + more, (old + more) * self.places
        free = range(size - 1, old - 1, -1)
        self.span, self.count = lengthened(self.span, lines), lengthened(self.count, lines)
        for name in ("subscriber", "paused", "is_restored", "deadline", "sent"):
            setattr(self, name, lengthened(getattr(self, name), size))
        self.deadline[old:] = FAR
        self.span[old * self.places :, [START, END]] = -FAR
        self.count[old * self.places :, [SLAB_CLASS, RING_CLASS]] = -1
        self._free += free

    def free(self, row: int) -> None:
        """Free a row that is empty."""
        self._free.append(row)

    def note_deadlines(self, ends: Int64s) -> None:
        """Note that some rows have these deadlines from now on."""
        self.soonest = min(self.soonest, int(ends.min(initial=FAR)))

    def find_soonest(self) -> None:
        """Find the first deadline of all rows, after some have passed."""
        self.soonest = int(self.deadline.min(initial=FAR))

    def lines(self, rows: Int64s | Int32s) -> Int64s:
        """Return the lines of some rows, in order."""
        places = np.arange(self.places)
        return (np.asarray(rows, np.int64)[:, None] * self.places + places).ravel()

    def held_cells(self, line: int) -> list[int]:
        """Return the cells of the held events of a line, in their order."""
        start = int(self.span[line, SLAB])
        return [*range(start, start + int(self.count[line, HELD]))]

    def got_cells(self, lines: Int64s) -> Int64s:
        """Return the cells of the events that were got by some lines, oldest first."""
        return self._ring_cells(self.got.slabs, lines)

    def rank_cells(self, lines: Int64s) -> Int64s:
        """Return the cells of the ranks of some lines, oldest first."""
        return self._ring_cells(self.ranks.slabs, lines)

    def _ring_cells(self, slabs: Slabs, lines: Int64s) -> Int64s:
        count = self.count[lines].astype(np.int64)
        size = count[:, SIZE]
        capacities = np.repeat(slabs.capacity[count[:, RING_CLASS]], size)
        offsets = concatenated_ranges(count[:, FRONT], size) % capacities
        return np.asarray(np.repeat(self.span[lines, RING], size) + offsets)

    def handles(self) -> Int32s:
        """Return the handles of all held events."""
        held = self.count[:, HELD].astype(np.int64)
        cells = concatenated_ranges(self.span[:, SLAB], held)
        handles: Int32s = self.held_cell[cells, HANDLE].astype(np.int32)
        return handles

    def make_room(self, row: int, more: int) -> None:
        """Make room in the pools for more events in all lines of a row."""
        count = self.count[row * self.places : (row + 1) * self.places].astype(np.int64)
        self._reserve(self.held, count[:, HELD] + more)
        self._reserve(self.ranks, np.minimum(count[:, SIZE] + 1, layout.REMEMBERED))
        if layout.DIFFERENT in self.rules.codes.kind:
            self._reserve(self.got, count[:, SIZE] + more)

    def _reserve(self, pool: Pool, sizes: Int64s) -> None:
        """Compact and lengthen a pool so that slabs for these sizes are left."""
        slabs = pool.slabs
        classes = np.minimum(np.searchsorted(slabs.capacity, sizes), len(slabs.capacity) - 1)
        wanted = int(slabs.capacity[classes].sum())
        if slabs.used[0] + wanted > len(getattr(self, pool.arrays[0])):
            self._compact(pool)
            self._lengthen(pool, int(slabs.used[0]) + wanted)

    def _compact(self, pool: Pool) -> None:
        """Move the slabs of a pool together, in the order in which they lie."""
        slabs, (_, start, slab_class) = pool.slabs, pool.columns
        lines = np.flatnonzero(self.count[:, slab_class] >= 0)
        if pool is not self.held:  # two pools have rings; each line has one of them
            is_got = self.rules.codes.kind[lines % self.places] == layout.DIFFERENT
            lines = lines[is_got == (pool is self.got)]
        lines = lines[np.argsort(self.span[lines, start], kind="stable")]
        lengths = slabs.capacity[self.count[lines, slab_class]]
        first = codes.FIRST_CELL if pool is self.held else 0
        targets = first + np.cumsum(lengths) - lengths
        for name in pool.arrays:
            move_cells(getattr(self, name), self.span[lines, start], targets, lengths)
        self.span[lines, start] = targets
        slabs.used[0] = first + lengths.sum()
        slabs.free[:] = -1

    def _lengthen(self, pool: Pool, least: int) -> None:
        size = least + least // 4  # lists and rings grow together, in the first days
        for name in pool.arrays:
            if size > len(getattr(self, name)):
                setattr(self, name, lengthened(getattr(self, name), size))

    def take_slab(self, pool: Pool, line: int, size: int) -> int:
        """Assign a slab for a size to a line, which has none; return its start."""
        slabs, size_class = pool.slabs, -1
        start = int(slabs.used[0])
        if size:
            size_class = int(np.searchsorted(slabs.capacity, size))
            slabs.used[0] += slabs.capacity[size_class]
            self._lengthen(pool, int(slabs.used[0]))
        columns = pool.columns
        self.span[line, columns.start], self.count[line, columns.slab_class] = start, size_class
        self.count[line, columns.size] = size
        return start

    def give_slabs(self, pool: Pool, lines: Int64s) -> None:
        """Assign slabs to lines by the sizes that they have."""
        slabs, (size, start, slab_class) = pool.slabs, pool.columns
        sizes = self.count[lines, size].astype(np.int64)
        # With room for one more, since most lists and rings grow soon.
        roomy = np.minimum(sizes + 1, slabs.capacity[-1])
        classes = np.where(sizes > 0, np.searchsorted(slabs.capacity, roomy), -1)
        lengths = np.where(sizes > 0, slabs.capacity[classes], 0)
        self.span[lines, start] = int(slabs.used[0]) + np.cumsum(lengths) - lengths
        self.count[lines, slab_class] = classes
        slabs.used[0] += lengths.sum()
        self._lengthen(pool, int(slabs.used[0]))

    def arrivals(self, count: int) -> Int64s:
        """Return numbers for events that are held from now on."""
        self._arrivals[0] += count
        return int(self._arrivals[0]) - count + 1 + np.arange(count)

    def list_order(
        self, lines: Int64s, cells: Int64s, ranks: Float64s, scores: Float64s
    ) -> ListOrder:
        """Return the order of held events of some lines, given line by line as they arrived."""
        events, slots, chain = self._tables.events, cells[:, EVENT], self.rules.chain
        us, kinds = events.us[slots], self.rules.codes.kind[lines % self.places]
        values = np.empty(len(slots))
        order_keys(chain.decay, scores.copy(), us, values)
        values = np.where(kinds == layout.QUIET, values, ranks)
        as_they_came = kinds == layout.OWED
        if not chain.best_only:
            as_they_came |= kinds == layout.QUIET
        by_id = np.where(as_they_came, np.arange(len(slots)), events.id_order[slots])
        by_time, by_value = np.where(as_they_came, 0, -us), np.where(as_they_came, 0.0, -values)
        places = np.lexsort((by_id, by_time, by_value, lines))
        return ListOrder(places, values[places])
