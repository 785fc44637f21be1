"""Rings of lines: the last ranks of a quota, and what a subscriber got for `different`.

    slab of a line   RING                                 RING + capacity
                     | newest ..  | free | FRONT: oldest .. |
                                           SIZE entries, wrapping around

A ring that is too small moves to a slab of a larger class, where it begins at the front again.
"""

from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined
from tidings.feed.columnar.kernels.layout import Slabs
from tidings.feed.columnar.kernels.slabs import capacity_of, release_slab, take_slab
from tidings.feed.columnar.rules.kernels.layout import (
    FRONT,
    REMEMBERED,
    RING,
    RING_CLASS,
    SIZE,
    RuleArrays,
)


@inlined
def ring_cell(arrays: RuleArrays, slabs: Slabs, line: int, place: int) -> int:
    """Return the cell of an entry of a ring, at a place from the oldest on."""
    count = arrays.counts
    capacity = slabs.capacity[count[line, RING_CLASS]]
    place += count[line, FRONT]
    return int64(arrays.span[line, RING]) + (place if place < capacity else place - capacity)


@inlined
def larger_class(slabs: Slabs, size_class: int, wanted: int) -> int:
    """Return the first class above another that holds so many entries."""
    larger = size_class + 1
    while slabs.capacity[larger] < wanted:
        larger += 1
    return larger


@inlined
def reserve_rank(arrays: RuleArrays, line: int) -> bool:
    """Make room for one more rank; return whether the pool had it."""
    pool, span, count = arrays.ranks, arrays.span, arrays.counts
    size, size_class = count[line, SIZE], count[line, RING_CLASS]
    if size == REMEMBERED or size < capacity_of(pool.slabs, size_class):
        return True
    larger = larger_class(pool.slabs, size_class, size + 1)
    target = take_slab(pool.slabs, pool.rank, larger)
    if target < 0:
        return False
    for i in range(size):
        pool.rank[target + i] = pool.rank[ring_cell(arrays, pool.slabs, line, i)]
    release_slab(pool.slabs, pool.rank, span[line, RING], size_class)
    span[line, RING], count[line, RING_CLASS], count[line, FRONT] = target, larger, 0
    return True


@inlined
def push_rank(arrays: RuleArrays, line: int, rank: float) -> None:
    """Add a rank; the oldest leaves a full ring."""
    count, pool = arrays.counts, arrays.ranks
    if count[line, SIZE] < REMEMBERED:
        count[line, SIZE] += 1
    else:
        front = count[line, FRONT] + 1
        count[line, FRONT] = front if front < REMEMBERED else 0
    pool.rank[ring_cell(arrays, pool.slabs, line, count[line, SIZE] - 1)] = rank


@inlined
def count_ranks_above(arrays: RuleArrays, line: int, rank: float) -> int:
    """Return how many of the remembered ranks are higher."""
    # A ring has no gaps, and its order does not matter here.
    ranks, start, above = arrays.ranks.rank, int64(arrays.span[line, RING]), 0
    if arrays.counts[line, FRONT] > 0:
        size = arrays.ranks.slabs.capacity[arrays.counts[line, RING_CLASS]]
    else:
        size = int64(arrays.counts[line, SIZE])
    for cell in range(start, start + size):
        above += 1 if ranks[cell] > rank else 0
    return above


@inlined
def reserve_got(arrays: RuleArrays, line: int, more: int) -> bool:
    """Make room for more events that are got; return whether the pool had it."""
    pool, span, count = arrays.got, arrays.span, arrays.counts
    size, size_class = count[line, SIZE], count[line, RING_CLASS]
    if size + more <= capacity_of(pool.slabs, size_class):
        return True
    larger = larger_class(pool.slabs, size_class, size + more)
    target = take_slab(pool.slabs, pool.slot, larger)
    if target < 0:
        return False
    for i in range(size):
        source = ring_cell(arrays, pool.slabs, line, i)
        pool.us[target + i], pool.slot[target + i] = pool.us[source], pool.slot[source]
    release_slab(pool.slabs, pool.slot, span[line, RING], size_class)
    span[line, RING], count[line, RING_CLASS], count[line, FRONT] = target, larger, 0
    return True


@inlined
def push_got(arrays: RuleArrays, line: int, us: int, slot: int) -> None:
    """Add an event that was got."""
    pool = arrays.got
    arrays.counts[line, SIZE] += 1
    cell = ring_cell(arrays, pool.slabs, line, arrays.counts[line, SIZE] - 1)
    pool.us[cell], pool.slot[cell] = us, slot


@inlined
def expire_got(arrays: RuleArrays, line: int, oldest: int) -> None:
    """Remove the events that were got by an instant."""
    count, pool = arrays.counts, arrays.got
    while count[line, SIZE] > 0 and pool.us[ring_cell(arrays, pool.slabs, line, 0)] <= oldest:
        capacity = pool.slabs.capacity[count[line, RING_CLASS]]
        count[line, FRONT] += 1
        if count[line, FRONT] == capacity:
            count[line, FRONT] = 0
        count[line, SIZE] -= 1
