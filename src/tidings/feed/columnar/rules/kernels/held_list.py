"""The list of held events of one line, best first or as they came; see `layout` for its slab."""

from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined
from tidings.feed.columnar.kernels.layout import capacity_of, release_slab, take_slab
from tidings.feed.columnar.rules.kernels.layout import (
    ARRIVAL,
    CELL_WIDTH,
    EVENT,
    HELD,
    SLAB,
    SLAB_CLASS,
    HeldPool,
    RuleArrays,
)
from tidings.feed.columnar.rules.kernels.rings import larger_class


@inlined
def list_cell(arrays: RuleArrays, line: int, position: int) -> int:
    """Return the cell of the event at a position of a list."""
    start = int64(arrays.lists[line, SLAB])
    return start + arrays.held.nth[start + position]


@inlined
def copy_cell(pool: HeldPool, target: int, source: int) -> None:
    """Copy a held event to another cell."""
    for column in range(CELL_WIDTH):
        pool.cell[target, column] = pool.cell[source, column]
    pool.rank[target] = pool.rank[source]
    pool.score[target] = pool.score[source]


@inlined
def reserve_cells(arrays: RuleArrays, line: int, wanted: int) -> bool:
    """Make room for `wanted` events in the list of a line; return whether the pool had it."""
    pool, lists = arrays.held, arrays.lists
    size_class = lists[line, SLAB_CLASS]
    if wanted <= capacity_of(pool.slabs, size_class):
        return True
    larger = larger_class(pool.slabs, size_class, wanted)
    target = take_slab(pool.slabs, pool.value, larger)
    if target < 0:
        return False
    for i in range(pool.slabs.capacity[larger]):
        pool.nth[target + i] = i
    # Both slabs are in use until the copy is made: the release writes to the first cell.
    for i in range(lists[line, HELD]):
        pool.value[target + i] = pool.value[lists[line, SLAB] + i]
        copy_cell(pool, target + i, list_cell(arrays, line, i))
    release_slab(pool.slabs, pool.value, lists[line, SLAB], size_class)
    lists[line, SLAB], lists[line, SLAB_CLASS] = target, larger
    return True


@inlined
def empty_list(arrays: RuleArrays, line: int) -> None:
    """Drop all events of a list, and release its slab."""
    lists, pool = arrays.lists, arrays.held
    release_slab(pool.slabs, pool.value, lists[line, SLAB], lists[line, SLAB_CLASS])
    lists[line, HELD], lists[line, SLAB], lists[line, SLAB_CLASS] = 0, 0, -1


@inlined
def is_newer(arrays: RuleArrays, slot: int, other: int) -> bool:
    """Return whether an event precedes another of equal value: the newer, then the smaller id."""
    us, id_order = arrays.events.us, arrays.events.id_order
    return us[slot] > us[other] or (us[slot] == us[other] and id_order[slot] < id_order[other])


@inlined
def list_position(arrays: RuleArrays, line: int, value: float, slot: int) -> int:
    """Return how many of a list precede an event: higher value, then newer, then smaller id."""
    pool, start = arrays.held, int64(arrays.lists[line, SLAB])
    low, high = 0, arrays.lists[line, HELD] + 0
    while low < high:
        middle = (low + high) >> 1
        ahead = pool.value[start + middle] > value
        # Events are read for equal values only: each may be a miss of the cache.
        if pool.value[start + middle] == value:
            ahead = is_newer(arrays, pool.cell[list_cell(arrays, line, middle), EVENT], slot)
        if ahead:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def count_above(arrays: RuleArrays, line: int, value: float) -> int:
    """Return how many of a sorted list have a higher value."""
    start = arrays.lists[line, SLAB]
    low, high = 0, arrays.lists[line, HELD] + 0
    while low < high:
        middle = (low + high) >> 1
        if arrays.held.value[start + middle] > value:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def insert_cell(arrays: RuleArrays, line: int, position: int, source: int, value: float) -> None:
    """Insert a copy of a cell at a position; there must be room behind the last."""
    pool, start, held = arrays.held, int64(arrays.lists[line, SLAB]), arrays.lists[line, HELD]
    free = pool.nth[start + held]
    for i in range(start + held, start + position, -1):
        pool.value[i], pool.nth[i] = pool.value[i - 1], pool.nth[i - 1]
    pool.value[start + position], pool.nth[start + position] = value, free
    copy_cell(pool, start + free, source)
    # The list is sorted, but other rules, and diversifiers, take its events as they came.
    pool.arrivals[0] += 1
    pool.cell[start + free, ARRIVAL] = pool.arrivals[0]
    arrays.lists[line, HELD] += 1
