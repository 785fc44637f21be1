"""Room for the blocks of an IR-tree: made, enlarged, and given back."""

from typing import Any

import numpy as np

from tidings.index.intervals.kernels.ir_blocks import (
    BLOCKS,
    FREE_BLOCK,
    HEIGHTS,
    MOST,
    POOL,
    ROOTS,
    SLOTS,
    Store,
    table_refill,
)
from tidings.index.intervals.kernels.ir_tree import SPARE


def empty_store(size: int) -> Store:
    """Make room for about `size` intervals."""
    slots, blocks = size + size // 8 + 4 * SPARE * MOST, size // 32 + 4 * SPARE
    pool = np.zeros(POOL, np.int64)
    pool[FREE_BLOCK] = -1
    pool[ROOTS + 1 : HEIGHTS] = -1
    return (
        empty_bounds(slots),
        np.empty(slots, np.int64),
        np.empty(slots, np.int32),
        np.empty(slots, np.int32),
        np.empty((blocks, 4), np.int32),
        *empty_table(1024),
        pool,
    )


def empty_bounds(slots: int) -> Any:
    """Make a row of lows and a row of highs; 64 slots may be compared from any on."""
    return np.empty((2, slots + MOST))


def empty_table(places: int) -> tuple[Any, Any]:
    """Make a table of nodes; `places` is a power of two."""
    return np.empty(places, np.int64), np.full(places, -1, np.int32)


def ensure_room(store: Store) -> Store:
    """Enlarge what is nearly full by half, the table of nodes to double."""
    blocks, points, roots, pool = store[4:]
    slots = len(store[1])
    if pool[SLOTS] + SPARE * MOST > slots:
        store = with_slots(store, slots + slots // 2)
    if pool[BLOCKS] + SPARE > len(blocks):
        blocks = resized(blocks, 2 * len(blocks))
    if 2 * pool[ROOTS] + 2 > len(points):
        table = empty_table(2 * len(points))
        table_refill((points, roots), *table)
        points, roots = table
    return (*store[:4], blocks, points, roots, pool)


def compact_store(store: Store) -> Store:
    """Cut off what a load did not need, but for a sixteenth."""
    used = int(store[7][SLOTS])
    slots = used + used // 16 + 2 * SPARE * MOST
    return with_slots(store, slots) if slots < len(store[1]) else store


def with_slots(store: Store, slots: int) -> Store:
    """Give the store another number of slots, above those in use."""
    bounds = empty_bounds(slots)
    kept = min(slots, len(store[1]))
    bounds[:, :kept] = store[0][:, :kept]
    keys, ties, links = (resized(each, slots) for each in store[1:4])
    return (bounds, keys, ties, links, *store[4:])


def slots_in_use(store: Any) -> int:
    """Give how many slots were ever handed out."""
    return int(store[7][SLOTS])


def resized(old: Any, size: int) -> Any:
    """Copy an array to one with `size` rows, or with as many as fit."""
    new = np.empty((size, *old.shape[1:]), old.dtype)
    new[: min(size, len(old))] = old[:size]
    return new
