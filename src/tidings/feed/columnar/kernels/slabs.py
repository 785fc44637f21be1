"""Slab allocator: pools are handed out in slabs of a few size classes.

    pool    | slab of class 2 | slab of class 0 | free slab of class 2 | ... used | not cut yet |
                                                  first cell: start of the next free slab, or -1

Each class is a quarter larger than the one before, so at most a fifth of a full slab is empty, and
copying into larger slabs costs O(1) for each entry on average.
"""

from tidings.compiled.array_types import Float64s, Int32s
from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined
from tidings.feed.columnar.kernels.layout import Slabs


@inlined
def capacity_of(slabs: Slabs, size_class: int) -> int:
    """Return the capacity of a class; 0 for -1, the class of a row without a slab."""
    return int64(slabs.capacity[size_class]) if size_class >= 0 else int64(0)


@inlined
def take_slab(slabs: Slabs, links: Int32s | Float64s, size_class: int) -> int:
    """Return the start of a slab, or -1 if the pool is full.

    `links` is the column of the pool whose cells link the free slabs of a class. A float64 holds
    the start of every slab exactly.
    """
    start = slabs.free[size_class]
    if start >= 0:  # reused first, so that the pool is compacted rarely
        slabs.free[size_class] = links[start]
    elif slabs.used[0] + slabs.capacity[size_class] <= len(links):
        start = slabs.used[0]
        slabs.used[0] += slabs.capacity[size_class]
    return start


@inlined
def release_slab(slabs: Slabs, links: Int32s | Float64s, start: int, size_class: int) -> None:
    """Put a slab on the free list of its class; nothing happens for class -1."""
    if size_class >= 0:
        links[start] = slabs.free[size_class]
        slabs.free[size_class] = start
