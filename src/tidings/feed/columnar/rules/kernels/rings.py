"""Rings: the last ranks of a quota, and what a subscriber got for `different`.

    slab of a ring   RING                                 RING + capacity
                     | newest ..  | free | FRONT: oldest .. |
                                           SIZE entries, wrapping around

A ring that is too small moves to a slab of a larger class, where it begins at the front again.
"""

from tidings.compiled.array_types import Float64s
from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined
from tidings.feed.columnar.kernels.layout import Slabs, capacity_of
from tidings.feed.columnar.rules.kernels.layout import (
    FRONT,
    NIBBLE,
    PAIR,
    REMEMBERED,
    RING,
    RING_CLASS,
    SIZE,
    WHOLE,
    RankPool,
    RuleArrays,
)


@inlined
def ring_capacity(arrays: RuleArrays, slabs: Slabs, ring: int) -> int:
    """Return the number of cells of the slab of a ring, which must have one."""
    return int64(slabs.capacity[arrays.rings[ring, RING_CLASS]])


@inlined
def ring_cell(arrays: RuleArrays, slabs: Slabs, ring: int, place: int) -> int:
    """Return the cell of an entry of a ring, at a place from the oldest on."""
    capacity = ring_capacity(arrays, slabs, ring)
    place += arrays.rings[ring, FRONT]
    return int64(arrays.rings[ring, RING]) + (place if place < capacity else place - capacity)


@inlined
def larger_class(slabs: Slabs, size_class: int, wanted: int) -> int:
    """Return the first class above another that holds a number of entries."""
    larger = size_class + 1
    while slabs.capacity[larger] < wanted:
        larger += 1
    return larger


@inlined
def take_ring(slabs: Slabs, size_class: int, cells: int) -> int:
    """Return the start of a slab of a pool with a number of cells, or -1 if it is full.

    A ring that moves leaves its old slab behind, and compaction reclaims it: cells may be too small
    for the links of a free list.
    """
    start = int64(slabs.used[0])
    if start + slabs.capacity[size_class] > cells:
        return int64(-1)
    slabs.used[0] = start + slabs.capacity[size_class]
    return start


@inlined
def move_ring(arrays: RuleArrays, ring: int, target: int, size_class: int) -> None:
    """Note that a ring begins at the front of another slab."""
    arrays.rings[ring, RING] = target
    arrays.rings[ring, RING_CLASS], arrays.rings[ring, FRONT] = size_class, 0


@inlined
def place_of(values: Float64s, rank: float) -> int:
    """Return how many of the values are below a rank."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < rank:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def is_writable(pool: RankPool, rank: float) -> bool:
    """Return whether cells can have a rank: whole ones have any, and others one of the values."""
    if pool.bits[0] == WHOLE:
        return True
    place = place_of(pool.values, rank)
    return place < len(pool.values) and pool.values[place] == rank


@inlined
def read_cell(pool: RankPool, cell: int) -> int:
    """Return the code of the rank of a cell that is not whole."""
    if pool.bits[0] == NIBBLE:
        return (int64(pool.packed[cell >> 1]) >> ((cell & 1) << 2)) & 15
    if pool.bits[0] == PAIR:
        return int64(pool.paired[cell])
    return int64(pool.packed[cell])


@inlined
def write_cell(pool: RankPool, cell: int, code: int) -> None:
    """Write the code of a rank to a cell that is not whole."""
    if pool.bits[0] == NIBBLE:
        shift, byte = (cell & 1) << 2, cell >> 1
        kept = int64(pool.packed[byte]) & (0xF0 >> shift)
        pool.packed[byte] = kept | (code << shift)
    elif pool.bits[0] == PAIR:
        pool.paired[cell] = code
    else:
        pool.packed[cell] = code


@inlined
def reserve_rank(arrays: RuleArrays, ring: int) -> bool:
    """Make room for one more rank; return whether the pool had it."""
    pool, rings = arrays.ranks, arrays.rings
    size, size_class = rings[ring, SIZE], rings[ring, RING_CLASS]
    # A full ring of REMEMBERED ranks overwrites its oldest, and never moves again.
    if size == REMEMBERED or size < capacity_of(pool.slabs, size_class):
        return True
    larger = larger_class(pool.slabs, size_class, size + 1)
    target = take_ring(pool.slabs, larger, 64 * len(pool.whole) // pool.bits[0])
    if target < 0:
        return False
    for i in range(size):
        source = ring_cell(arrays, pool.slabs, ring, i)
        if pool.bits[0] == WHOLE:
            pool.whole[target + i] = pool.whole[source]
        else:
            write_cell(pool, target + i, read_cell(pool, source))
    move_ring(arrays, ring, target, larger)
    return True


@inlined
def push_rank(arrays: RuleArrays, ring: int, rank: float) -> None:
    """Add a rank, which must be writable; the oldest leaves a full ring."""
    rings, pool = arrays.rings, arrays.ranks
    if rings[ring, SIZE] < REMEMBERED:
        rings[ring, SIZE] += 1
    else:
        front = rings[ring, FRONT] + 1
        rings[ring, FRONT] = front if front < REMEMBERED else 0
    cell = ring_cell(arrays, pool.slabs, ring, rings[ring, SIZE] - 1)
    if pool.bits[0] == WHOLE:
        pool.whole[cell] = rank
    else:
        write_cell(pool, cell, pool.codes[place_of(pool.values, rank)])


@inlined
def count_codes(pool: RankPool, start: int, size: int, least: int) -> int:
    """Return how many cells from one on have at least a code."""
    above = 0
    if pool.bits[0] == NIBBLE:
        # Slabs begin with a whole byte; the last one may be half used.
        for byte in range(start >> 1, (start + size) >> 1):
            above += 1 if pool.packed[byte] & 15 >= least else 0
            above += 1 if pool.packed[byte] >> 4 >= least else 0
        if size & 1:
            above += 1 if pool.packed[(start + size) >> 1] & 15 >= least else 0
    elif pool.bits[0] == PAIR:
        for cell in range(start, start + size):
            above += 1 if pool.paired[cell] >= least else 0
    else:
        for cell in range(start, start + size):
            above += 1 if pool.packed[cell] >= least else 0
    return above


@inlined
def count_ranks_above(arrays: RuleArrays, ring: int, rank: float) -> int:
    """Return how many of the remembered ranks are higher."""
    # A ring has no gaps, and its order does not matter here.
    pool, start, above = arrays.ranks, int64(arrays.rings[ring, RING]), 0
    if arrays.rings[ring, FRONT] > 0:
        size = ring_capacity(arrays, pool.slabs, ring)
    else:
        size = int64(arrays.rings[ring, SIZE])
    if pool.bits[0] == WHOLE:
        for cell in range(start, start + size):
            above += 1 if pool.whole[cell] > rank else 0
        return above
    # Codes are in the order of ranks, so that they are compared instead of floats.
    place, values = place_of(pool.values, rank), len(pool.values)
    if place < values and pool.values[place] == rank:
        place += 1
    return count_codes(pool, start, size, pool.codes[place]) if place < values else above


@inlined
def reserve_got(arrays: RuleArrays, ring: int, more: int) -> bool:
    """Make room for more received events; return whether the pool had it."""
    pool, rings = arrays.got, arrays.rings
    size, size_class = rings[ring, SIZE], rings[ring, RING_CLASS]
    if size + more <= capacity_of(pool.slabs, size_class):
        return True
    larger = larger_class(pool.slabs, size_class, size + more)
    target = take_ring(pool.slabs, larger, len(pool.slot))
    if target < 0:
        return False
    # Unrolled from the oldest on, so that the larger ring begins at its front.
    for i in range(size):
        source = ring_cell(arrays, pool.slabs, ring, i)
        pool.us[target + i], pool.slot[target + i] = pool.us[source], pool.slot[source]
    move_ring(arrays, ring, target, larger)
    return True


@inlined
def got_slot(arrays: RuleArrays, cell: int) -> int:
    """Return the slot of a received event."""
    slot = int64(arrays.got.slot[cell])
    return slot if slot >= 0 else ~slot


@inlined
def got_us(arrays: RuleArrays, cell: int) -> int:
    """Return when an event was received."""
    slot = int64(arrays.got.slot[cell])
    return int64(arrays.events.us[slot] if slot >= 0 else arrays.got.us[cell])


@inlined
def push_got(arrays: RuleArrays, ring: int, us: int, slot: int) -> None:
    """Add a received event."""
    pool = arrays.got
    arrays.rings[ring, SIZE] += 1
    cell = ring_cell(arrays, pool.slabs, ring, arrays.rings[ring, SIZE] - 1)
    if us == arrays.events.us[slot]:
        pool.slot[cell] = slot
    else:
        pool.us[cell], pool.slot[cell] = us, ~slot


@inlined
def expire_got(arrays: RuleArrays, ring: int, oldest: int) -> None:
    """Remove the events that were received by an instant."""
    rings, slabs = arrays.rings, arrays.got.slabs
    # Events are received in order of time, so the expired ones are the oldest.
    while rings[ring, SIZE] > 0 and got_us(arrays, ring_cell(arrays, slabs, ring, 0)) <= oldest:
        capacity = ring_capacity(arrays, slabs, ring)
        rings[ring, FRONT] += 1
        if rings[ring, FRONT] == capacity:
            rings[ring, FRONT] = 0
        rings[ring, SIZE] -= 1
