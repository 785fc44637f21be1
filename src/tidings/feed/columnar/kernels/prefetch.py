"""Prefetching: the rows of the next offers are requested early, so that cache misses overlap.

At a million windows nearly every access misses the cache. The head of a row is requested FAR
offers ahead and tells where its entries are, which are requested NEAR offers ahead.
"""

from typing import Final

from tidings.compiled.array_types import Int32s
from tidings.compiled.jit import inlined
from tidings.compiled.prefetch import prefetch
from tidings.feed.columnar.kernels.layout import (
    FRONT,
    HELD,
    RANKED_WIDTH,
    RING,
    RING_CLASS,
    SIZE,
    RankedWindows,
)
from tidings.feed.columnar.kernels.ranked_list import list_start

NEAR: Final = 6
FAR: Final = 12


@inlined
def prefetch_head(windows: RankedWindows, row: int) -> None:
    """Request the counters of a row, which may lie on two cache lines."""
    start = row * RANKED_WIDTH
    prefetch(windows.head, start)
    prefetch(windows.head, start + RANKED_WIDTH - 1)


@inlined
def prefetch_entries(windows: RankedWindows, row: int) -> None:
    """Request the entries of a row and both ends of its ring; its head should be in the cache."""
    head, ring = windows.head, windows.ring
    start, size = list_start(windows, row), head[row, SIZE]
    for i in range(0, size, 8):  # keys of 8 bytes, lines of 64
        prefetch(windows.key, start + i)
    for i in range(0, size, 5):  # entries of 12 bytes
        prefetch(windows.entry, 3 * (start + i))
    if head[row, RING_CLASS] >= 0:
        back = head[row, FRONT] + head[row, HELD]
        capacity = windows.ring_slabs.capacity[head[row, RING_CLASS]]
        prefetch(ring, head[row, RING] + head[row, FRONT])
        prefetch(ring, head[row, RING] + (back if back < capacity else back - capacity))


@inlined
def prefetch_ahead(windows: RankedWindows, rows: Int32s, index: int) -> None:
    """Request what the offers a little ahead of `index` will need."""
    if index + FAR < len(rows):
        prefetch_head(windows, rows[index + FAR])
        prefetch_entries(windows, rows[index + NEAR])
