"""The part of a live index that is new: a grid that takes entries, its room, and what is there."""

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
    NOTHING,
    SLOTS,
    TAKEN,
    USUAL,
    Grid,
    Young,
)
from tidings.index.intervals.kernels.delta_query import Window, grid_gather
from tidings.index.intervals.kernels.ir_blocks import table_refill
from tidings.index.intervals.live.base_run import Cuts, Entries

CHUNKS: Final = 64
PLACES: Final = 256
"""The least room: chunks, and places in the table of ids."""


def empty_grid(cuts: Cuts, chunks: int = CHUNKS) -> Grid:
    """Make a grid without entries, with room for some chunks."""
    nodes = (cuts.height + 1) << (BITS * cuts.height)
    pool = np.zeros(BUSY + cuts.height + 1, np.int64)
    pool[HEIGHT], pool[USUAL] = cuts.height, cuts.usual
    return (
        *search_tree(cuts.places),
        cuts.bands,
        np.zeros((nodes >> 5) + 1, np.int64),
        np.tile(np.array([-1, -1, NOTHING]), (nodes, 1)),
        *empty_chunks(chunks),
        pool,
    )


def empty_chunks(count: int) -> tuple[Any, Any, Any, Any]:
    """Make chunks: the next and how many are used, their numbers, slots, and their other slots.

    A slot that is not used contains nothing and is never there.
    """
    chunks, bounds = np.zeros((count, 2), np.int32), np.zeros((count, 3, SLOTS))
    chunks[:, 0] = -1
    bounds[:, 0], bounds[:, 1] = np.inf, -np.inf
    notes = np.zeros((count * SLOTS, 4), np.int64)
    notes[:, DIED], notes[:, BORN] = NEVER, NEVER
    return chunks, bounds.ravel(), notes, np.empty(count * SLOTS, np.int32)


def grown(grid: Grid) -> Grid:
    """Give a copy with twice the room.

    All that a change writes to is copied, so that whoever reads the old grid never sees a chunk
    that it does not have.
    """
    words, nodes, pool = grid[3].copy(), grid[4].copy(), grid[9].copy()
    wider = empty_chunks(2 * len(grid[5]))
    kept: tuple[Any, ...] = grid[5:9]
    for new, old in zip(wider, kept, strict=True):
        new[: len(old)] = old
    return (*grid[:3], words, nodes, *wider, pool)


def empty_young(places: int = PLACES) -> Young:
    """Make a table of ids, which may be half full; `places` is a power of two."""
    return np.empty(places, np.int64), np.full(places, -1, np.int64)


def with_room(grid: Grid, young: Young) -> tuple[Grid, Young]:
    """Enlarge what is nearly full: the chunks or the table."""
    if grid[9][TAKEN] + 2 > len(grid[5]):
        grid = grown(grid)
    if 2 * grid[9][LIVING] + 2 > len(young[0]):
        wider = empty_young(2 * len(young[0]))
        table_refill(young, *wider)  # type: ignore[arg-type]
        young = wider
    return grid, young


def living_in(grid: Grid, version: int, since: int = -1) -> Entries:
    """Give what is there at a version and was not yet at an earlier one."""
    taken = int(grid[9][TAKEN])
    notes = grid[7][: taken * SLOTS]
    born = notes[:, BORN]
    there = (since < born) & (born <= version) & (version < notes[:, DIED])
    there &= grid[8][: taken * SLOTS] != COPY
    bounds = grid[6].reshape(-1, 3, SLOTS)[:taken]
    low, high = bounds[:, 0].ravel()[there], bounds[:, 1].ravel()[there]
    return Entries(low, high, notes[there, KEY], notes[there, ID])


def gathered(grid: Grid, window: Window, version: int) -> tuple[Int64s, Int64s]:
    """Give ids and keys of what is within a window at a version, in order; looks at all."""
    taken = int(grid[9][TAKEN])
    ids, keys = np.empty((2, taken * SLOTS), np.int64)
    count = grid_gather(grid, window, version, taken, (ids, keys))
    order = np.lexsort((ids[:count], keys[:count]))
    return ids[order], keys[order]
