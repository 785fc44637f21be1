"""The list of held events of one line: cells in a slab, best first or as they came."""

from tidings.compiled.jit import inlined
from tidings.feed.columnar.kernels.slabs import capacity_of, release_slab, take_slab
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
def copy_cell(pool: HeldPool, target: int, source: int) -> None:
    """Copy a held event to another cell."""
    for column in range(CELL_WIDTH):
        pool.cell[target, column] = pool.cell[source, column]
    pool.value[target] = pool.value[source]
    pool.rank[target] = pool.rank[source]
    pool.score[target] = pool.score[source]


@inlined
def reserve_cells(arrays: RuleArrays, line: int, more: int) -> bool:
    """Make room for more events in the list of a line; return whether the pool had it."""
    pool, span, count = arrays.held, arrays.span, arrays.counts
    size_class, wanted = count[line, SLAB_CLASS], count[line, HELD] + more
    if wanted <= capacity_of(pool.slabs, size_class):
        return True
    larger = larger_class(pool.slabs, size_class, wanted)
    target = take_slab(pool.slabs, pool.value, larger)
    if target < 0:
        return False
    # Both slabs are in use until the copy is made: the release writes to the first cell.
    for i in range(count[line, HELD]):
        copy_cell(pool, target + i, span[line, SLAB] + i)
    release_slab(pool.slabs, pool.value, span[line, SLAB], size_class)
    span[line, SLAB], count[line, SLAB_CLASS] = target, larger
    return True


@inlined
def empty_list(arrays: RuleArrays, line: int) -> None:
    """Drop all events of a list, and release its slab."""
    span, count, pool = arrays.span, arrays.counts, arrays.held
    release_slab(pool.slabs, pool.value, span[line, SLAB], count[line, SLAB_CLASS])
    count[line, HELD], span[line, SLAB], count[line, SLAB_CLASS] = 0, 0, -1


@inlined
def list_position(arrays: RuleArrays, line: int, value: float, slot: int) -> int:
    """Return how many of a list precede an event: higher value, then newer, then smaller id."""
    pool, us, id_order = arrays.held, arrays.events.us, arrays.events.id_order
    start = arrays.span[line, SLAB]
    low, high = 0, arrays.counts[line, HELD] + 0
    while low < high:
        middle = (low + high) >> 1
        other, rival = pool.value[start + middle], pool.cell[start + middle, EVENT]
        ahead = other > value or (
            other == value
            and (
                us[rival] > us[slot] or (us[rival] == us[slot] and id_order[rival] < id_order[slot])
            )
        )
        if ahead:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def count_above(arrays: RuleArrays, line: int, value: float) -> int:
    """Return how many of a sorted list have a higher value."""
    start = arrays.span[line, SLAB]
    low, high = 0, arrays.counts[line, HELD] + 0
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
    pool, start = arrays.held, arrays.span[line, SLAB]
    for i in range(arrays.counts[line, HELD], position, -1):
        copy_cell(pool, start + i, start + i - 1)
    copy_cell(pool, start + position, source)
    pool.value[start + position] = value
    # The list is sorted, but other rules, and diversifiers, take its events as they came.
    pool.arrivals[0] += 1
    pool.cell[start + position, ARRIVAL] = pool.arrivals[0]
    arrays.counts[line, HELD] += 1
