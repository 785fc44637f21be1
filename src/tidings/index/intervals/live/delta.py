"""The delta of a live interval index: an appendable grid, and replaying changes into it."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tidings.compiled.array_types import Int64s
from tidings.index.intervals.kernels.btree_search import search_tree
from tidings.index.intervals.kernels.delta_grid import (
    BITS,
    BORN,
    BUSY,
    COPY,
    DIED,
    HEIGHT,
    ID,
    KEY,
    LIVING,
    NEVER,
    NO_KEY,
    SLOTS,
    TAKEN,
    USUAL,
    Grid,
    grid_gather,
)
from tidings.index.intervals.kernels.hash_table import HashTable, table_refill
from tidings.index.intervals.kernels.live import IntervalChanges, live_add_many, live_kill_many
from tidings.index.intervals.live.base_run import BaseRun, GridCuts, KeyedIntervals
from tidings.index.intervals.ranges import QueryBounds

CHUNKS: Final = 64
TABLE_SLOTS: Final = 256
"""The initial sizes of the chunk pool and of the id table."""


def empty_grid(cuts: GridCuts, chunks: int = CHUNKS) -> Grid:
    """Return a grid without entries."""
    nodes = (cuts.height + 1) << (BITS * cuts.height)
    pool = np.zeros(BUSY + cuts.height + 1, np.int64)
    pool[HEIGHT], pool[USUAL] = cuts.height, cuts.usual_key
    return Grid(
        search_tree(cuts.places),
        cuts.bands,
        np.zeros((nodes >> 5) + 1, np.int64),
        np.tile(np.array([-1, -1, NO_KEY]), (nodes, 1)),
        *empty_chunks(chunks),
        pool,
    )


def empty_chunks(count: int) -> tuple[Any, Any, Any, Any]:
    """Return the chunk, number, slot and twin columns of empty chunks.

    An unused slot contains no point and is never alive.
    """
    chunks, numbers = np.zeros((count, 2), np.int32), np.zeros((count, 3, SLOTS))
    chunks[:, 0] = -1
    numbers[:, 0], numbers[:, 1] = np.inf, -np.inf
    slots = np.zeros((count * SLOTS, 4), np.int64)
    slots[:, DIED], slots[:, BORN] = NEVER, NEVER
    return chunks, numbers.ravel(), slots, np.empty(count * SLOTS, np.int32)


def with_more_chunks(grid: Grid) -> Grid:
    """Return a copy with twice the chunks.

    All arrays that a change writes to are copied, so that a reader of the old grid never follows a
    link to a chunk that its arrays do not have.
    """
    wider = empty_chunks(2 * len(grid.chunks))
    columns: tuple[Any, ...] = grid.chunks, grid.numbers, grid.slots, grid.twins
    for new, old in zip(wider, columns, strict=True):
        new[: len(old)] = old
    used, nodes, pool = grid.used.copy(), grid.nodes.copy(), grid.pool.copy()
    return Grid(grid.cuts, grid.bands, used, nodes, *wider, pool)


def empty_table(slots: int = TABLE_SLOTS) -> HashTable:
    """Return an empty id table; `slots` is a power of two."""
    return HashTable(np.empty(slots, np.int64), np.full(slots, -1, np.int64))


def with_room(grid: Grid, table: HashTable) -> tuple[Grid, HashTable]:
    """Double the chunks or the id table, whichever is nearly full."""
    if grid.pool[TAKEN] + 2 > len(grid.chunks):
        grid = with_more_chunks(grid)
    if 2 * grid.pool[LIVING] + 2 > len(table.keys):
        wider = empty_table(2 * len(table.keys))
        table_refill(table, wider)
        table = wider
    return grid, table


def living_in(grid: Grid, version: int, since: int = -1) -> KeyedIntervals:
    """Return the intervals that live at a version and were born after version `since`."""
    slabs = int(grid.pool[TAKEN])
    slots = grid.slots[: slabs * SLOTS]
    born = slots[:, BORN]
    living = (since < born) & (born <= version) & (version < slots[:, DIED])
    living &= grid.twins[: slabs * SLOTS] != COPY
    numbers = grid.numbers.reshape(-1, 3, SLOTS)[:slabs]
    low, high = numbers[:, 0].ravel()[living], numbers[:, 1].ravel()[living]
    return KeyedIntervals(low, high, slots[living, KEY], slots[living, ID])


def entries_within(grid: Grid, window: QueryBounds, version: int) -> tuple[Int64s, Int64s]:
    """Return ids and keys of the entries within a window at a version, in order."""
    ids, keys = np.empty((2, int(grid.pool[TAKEN]) * SLOTS), np.int64)
    count = grid_gather(grid, *window, version, ids, keys)
    order = np.lexsort((ids[:count], keys[:count]))
    return ids[order], keys[order]


@dataclass(eq=False)
class NextVersion:
    """A new base and its delta before they are served; all their stamps are of version 0."""

    base: BaseRun
    grid: Grid
    table: HashTable

    @property
    def changes(self) -> int:
        """The number of changes since the base was built."""
        return self.base.dead + int(self.grid.pool[LIVING])

    def replay(self, killed: list[int], added: KeyedIntervals) -> None:
        """Repeat changes that were made while the base was built: deaths first, then births."""
        ids = np.array(killed, np.int64)
        _, dead = live_kill_many(self.base.entries, self.grid, self.table, ids, 0, True)
        self.base.dead += dead
        scores = (-added.keys).view(np.float64)
        new = IntervalChanges(np.stack([added.low, added.high, scores]), added.ids)
        done = 0
        while (done := live_add_many(self.grid, self.table, new, 0, done)) < len(added):
            self.grid, self.table = with_room(self.grid, self.table)


def next_version(base: BaseRun) -> NextVersion:
    """Return a base with an empty delta that fits it."""
    return NextVersion(base, empty_grid(base.cuts), empty_table())
