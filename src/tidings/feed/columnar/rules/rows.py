"""The state of the rules of many subscribers with one policy, in arrays; see `kernels.layout`.

Each subscriber has a row, and each rule of it a line. Lists of held events and rings are in pools,
which are cut into slabs, compacted when they are full, and lengthened when that is not enough.
"""

from typing import Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import AnyArray, Float64s, Int32s, Int64s
from tidings.compiled.arrays import run_indexes
from tidings.feed.columnar.cohort_arrays import take_last
from tidings.feed.columnar.deliveries import IdTables
from tidings.feed.columnar.kernels.layout import FAR, Slabs
from tidings.feed.columnar.kernels.timing import order_keys
from tidings.feed.columnar.rules import codes
from tidings.feed.columnar.rules.codes import RuleSet
from tidings.feed.columnar.rules.kernels import layout
from tidings.feed.columnar.rules.kernels.layout import (
    EVENT,
    FRONT,
    HANDLE,
    HELD,
    RING,
    RING_CLASS,
    SIZE,
    SLAB,
    SLAB_CLASS,
    GotPool,
    HeldPool,
    RankPool,
)
from tidings.feed.columnar.rules.packed_ranks import PackedRanks
from tidings.feed.columnar.slab_pools import Pool, SlabColumns, assign_slabs, compact, lengthen

_FIRST_SIZE: Final = 16


class ReceivedEvents(NamedTuple):
    """The slots of events that subscribers got, and when."""

    slot: Int32s
    us: Int64s


class ListOrder(NamedTuple):
    """The order of a list of held events, and what it is sorted by, in that order."""

    places: Int64s
    values: Float64s


class RuleRows:
    """Rows of rules, and the pools of what they hold and remember."""

    def __init__(self, rules: RuleSet, tables: IdTables) -> None:
        self.rules, self._tables, self.places = rules, tables, len(rules.codes.kind)
        self.ringed = rules.chain.ringed
        self.heads = np.zeros((0, layout.HEAD_WIDTH), np.int64)
        self.paused, self.subscriber = np.zeros(0, np.int8), np.zeros(0, np.int32)
        self.end, self.lists = np.zeros(0, np.int64), np.zeros((0, layout.LIST_WIDTH), np.int32)
        self.rings = np.zeros((0, layout.RING_WIDTH), np.int32)
        self.held_cell = np.zeros((1, layout.CELL_WIDTH), np.int64)
        self.held_value, self.held_rank, self.held_score = (np.zeros(1) for _ in range(3))
        self.held_nth = np.zeros(1, np.int32)
        self.got_us, self.got_slot = np.zeros(0, np.int64), np.zeros(0, np.int32)
        self.packed = PackedRanks()
        ring = SlabColumns("rings", SIZE, RING, RING_CLASS)
        self.held = Pool(
            codes.held_slabs(),
            ("held_cell", "held_nth", "held_rank", "held_score", "held_value"),
            SlabColumns("lists", HELD, SLAB, SLAB_CLASS),
        )
        self.ranks = Pool(codes.rank_slabs(), (), ring)
        self.got = Pool(codes.got_slabs(), ("got_us", "got_slot"), ring)
        self.soonest = FAR
        """No deadline is before this."""
        self.is_restored = np.zeros(0, np.bool_)
        """Whether the features of the events of a row must be computed when they are used."""
        self.any_restored = False
        self._arrivals = np.zeros(1, np.int64)
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self.heads) - len(self._free)

    @property
    def sent(self) -> Int64s:
        """How many deliveries each row has had: a view."""
        return self.heads[:, layout.SENT]

    @property
    def deadline(self) -> Int64s:
        """When something is due for each row: a view."""
        return self.heads[:, layout.DEADLINE]

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays."""
        rows = (self.heads, self.paused, self.subscriber, self.is_restored)
        pools = (getattr(self, name) for pool in self._pools for name in pool.arrays)
        return sum(
            array.nbytes for array in (*rows, self.end, self.lists, self.rings, *pools, self.packed)
        )

    @property
    def _pools(self) -> tuple[Pool, ...]:
        return (self.held, self.ranks, self.got)

    def held_pool(self) -> HeldPool:
        """Return the held events as the kernels take them."""
        arrays = (self.held_cell, self.held_value, self.held_nth, self.held_rank, self.held_score)
        return HeldPool(*arrays, self.held.slabs, self._arrivals)

    def rank_pool(self) -> RankPool:
        """Return the remembered ranks as the kernels take them."""
        return self.packed.columns(self.ranks.slabs)

    def got_pool(self) -> GotPool:
        """Return the received events as the kernels take them."""
        return GotPool(self.got_us, self.got_slot, self.got.slabs)

    def enrol_many(self, numbers: Int64s) -> Int32s:
        """Return the rows of new rules for the numbers of subscribers."""
        if len(self._free) < len(numbers):
            self._add_rows(max(len(numbers), _FIRST_SIZE, len(self.heads) // 8))
        rows = take_last(self._free, len(numbers))
        self.subscriber[rows] = numbers
        return rows

    def _add_rows(self, more: int) -> None:
        """Add free rows; `heads`, by whose length rows are counted, grow last."""
        old = len(self.heads)
        size = old + more
        free = range(size - 1, old - 1, -1)
        lengthen(self, ("end", "lists"), size * self.places)
        lengthen(self, ("rings",), size * self.ringed)
        lengthen(self, ("subscriber", "paused", "is_restored", "heads"), size)
        self.deadline[old:] = FAR
        self.end[old * self.places :] = -FAR
        self.lists[old * self.places :, SLAB_CLASS] = -1
        self.rings[old * self.ringed :, RING_CLASS] = -1
        self._free += free

    def free(self, row: int) -> None:
        """Free a row that is empty."""
        self._free.append(row)

    def note_restored(self, rows: AnyArray) -> None:
        """Note that the features of the events of some rows must be computed."""
        self.is_restored[rows] = self.any_restored = True

    def note_deadlines(self, ends: Int64s) -> None:
        """Note that some rows have these deadlines from now on."""
        self.soonest = min(self.soonest, int(ends.min(initial=FAR)))

    def find_soonest(self) -> None:
        """Find the first deadline of all rows, after some have passed."""
        self.soonest = int(self.deadline.min(initial=FAR))

    def lines(self, rows: Int64s | Int32s) -> Int64s:
        """Return the lines of some rows, in order."""
        return _of_rows(rows, self.places)

    def ring_numbers(self, rows: Int64s | Int32s) -> Int64s:
        """Return the rings of some rows, in order."""
        return _of_rows(rows, self.ringed)

    def starts(self, lines: Int64s) -> Int64s:
        """Return when open periods of quotas began, and since when `different` compares events."""
        kinds, ends = self.rules.codes.kind[lines % self.places], self.end[lines]
        starts = np.where(kinds == layout.DIFFERENT, ends, -FAR)
        for place in np.flatnonzero(self.rules.codes.kind == layout.QUOTA).tolist():
            begun = (lines % self.places == place) & (ends != -FAR)
            calendar = self.rules.calendars[place]
            if calendar is None:
                starts[begun] = ends[begun] - self.rules.codes.length[place]
                continue
            distinct, inverse = np.unique(ends[begun], return_inverse=True)
            known = [calendar.between(end - 1, end)[0].start for end in distinct.tolist()]
            starts[begun] = np.array(known, np.int64)[inverse]
        return starts

    def held_cells(self, lines: Int64s) -> Int64s:
        """Return the cells of the held events of some lines, in their order."""
        starts, held = self.lists[lines, SLAB].astype(np.int64), self.lists[lines, HELD]
        nth = self.held_nth[run_indexes(starts, held)]
        return np.asarray(np.repeat(starts, held) + nth)

    def received(self, cells: Int64s) -> ReceivedEvents:
        """Return the received events of some cells."""
        slots = self.got_slot[cells]
        is_later = slots < 0
        slots = np.where(is_later, ~slots, slots)
        return ReceivedEvents(
            slots, np.where(is_later, self.got_us[cells], self._tables.events.us[slots])
        )

    def put_received(self, cells: Int64s, received: ReceivedEvents) -> None:
        """Write received events to some cells."""
        slots, us = received.slot.astype(np.int32), received.us
        self.got_slot[cells] = np.where(us == self._tables.events.us[slots], slots, ~slots)
        self.got_us[cells] = us

    def got_cells(self, rings: Int64s) -> Int64s:
        """Return the cells of the events in some rings of `different`, oldest first."""
        return self._ring_cells(self.got.slabs, rings)

    def rank_cells(self, rings: Int64s) -> Int64s:
        """Return the cells of the ranks in some rings of a quota, oldest first."""
        return self._ring_cells(self.ranks.slabs, rings)

    def _ring_cells(self, slabs: Slabs, rings: Int64s) -> Int64s:
        columns = self.rings[rings].astype(np.int64)
        size = columns[:, SIZE]
        capacities = np.repeat(slabs.capacity[columns[:, RING_CLASS]], size)
        offsets = run_indexes(columns[:, FRONT], size) % capacities
        return np.asarray(np.repeat(columns[:, RING], size) + offsets)

    def handles(self) -> Int32s:
        """Return the handles of all held events."""
        cells = self.held_cells(np.arange(len(self.lists)))
        handles: Int32s = self.held_cell[cells, HANDLE].astype(np.int32)
        return handles

    def make_room(self, row: int, more: int) -> None:
        """Make room in the pools for more events in all lines of a row."""
        rows = np.array([row])
        held = self.lists[self.lines(rows), HELD].astype(np.int64)
        sizes = self.rings[self.ring_numbers(rows), SIZE].astype(np.int64)
        is_quota = self.rules.codes.kind[: self.ringed] == layout.QUOTA
        self._reserve(self.held, held + more)
        self._reserve(self.ranks, np.minimum(sizes[is_quota] + 1, layout.REMEMBERED))
        self._reserve(self.got, sizes[~is_quota] + more)

    def _reserve(self, pool: Pool, sizes: Int64s) -> None:
        """Compact and lengthen a pool so that slabs for these sizes are left."""
        slabs = pool.slabs
        classes = np.minimum(np.searchsorted(slabs.capacity, sizes), len(slabs.capacity) - 1)
        cells = int(slabs.capacity[classes].sum())
        if slabs.used[0] + cells > self._cells(pool):
            self._compact(pool)
            self._lengthen(pool, int(slabs.used[0]) + cells)

    def _cells(self, pool: Pool) -> int:
        return len(self.packed if pool is self.ranks else getattr(self, pool.arrays[0]))

    def _compact(self, pool: Pool) -> None:
        """Move the slabs of a pool together, in the order in which they lie."""
        if pool is self.held:
            compact(self, pool, first_cell=codes.FIRST_CELL)
            return
        # Two pools have rings, and each ring is in one of them.
        rings = np.flatnonzero(self.rings[:, RING_CLASS] >= 0)
        is_got = self.rules.codes.kind[rings % self.ringed] == layout.DIFFERENT
        moves = compact(self, pool, rings[is_got == (pool is self.got)])
        if pool is self.ranks:
            self.packed.move(moves)

    def _lengthen(self, pool: Pool, least: int) -> None:
        size = least + least // 4  # lists and rings grow together, in the first days
        if pool is self.ranks:
            # A full ring never grows again, so when all of them are full, nothing is left over.
            quotas = int((self.rules.codes.kind == layout.QUOTA).sum())
            size = max(least, min(size, layout.REMEMBERED * quotas * len(self)))
            self.packed.lengthen(size)
        if least > layout.MOST_CELLS:
            raise MemoryError(f"a policy holds or remembers {least} events; the most are 2^31 - 1")
        lengthen(self, pool.arrays, size)

    def take_slab(self, pool: Pool, owner: int, size: int) -> int:
        """Assign a slab for a size to a line or ring, which has none; return its start."""
        slabs, size_class = pool.slabs, -1
        start = int(slabs.used[0])
        if size:
            size_class = int(np.searchsorted(slabs.capacity, size))
            slabs.used[0] += slabs.capacity[size_class]
            self._lengthen(pool, int(slabs.used[0]))
            if pool is self.held:
                self.held_nth[start : int(slabs.used[0])] = np.arange(slabs.capacity[size_class])
        name, *columns = pool.columns
        getattr(self, name)[owner, columns] = size, start, size_class
        return start

    def give_slabs(self, pool: Pool, owners: Int64s) -> None:
        """Assign slabs to lines or rings by the sizes that they have."""
        slabs, first = pool.slabs, int(pool.slabs.used[0])
        assign_slabs(self, pool, owners, spare=1)  # most lists and rings grow soon
        self._lengthen(pool, int(slabs.used[0]))
        if pool is self.held:
            classes = self.lists[owners, SLAB_CLASS]
            lengths = slabs.capacity[classes[classes >= 0]]
            nth = run_indexes(np.zeros(len(lengths), np.int64), lengths)
            self.held_nth[first : int(slabs.used[0])] = nth

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


def _of_rows(rows: Int64s | Int32s, width: int) -> Int64s:
    return (np.asarray(rows, np.int64)[:, None] * width + np.arange(width)).ravel()
