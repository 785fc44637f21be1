"""What an IR-tree is made of: blocks of entries, and a table that finds a node's root by its point.

An entry is its bounds, its key and tie (what comes first: the negated score, then the id) and,
above the leaves, the block below it. Entries of a block lie next to each other, in order, in a
place of 4, 8, .. 64 slots; only the root of a node may have fewer than 64. Freed places wait in
lists.
"""

from typing import Final

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.bits import lowest_bit
from tidings.compiled.ints import int64
from tidings.compiled.jit import inner, kernel

Store = tuple[Float64s, Int64s, Int32s, Int32s, Int32s, Int64s, Int32s, Int64s]
"""Entries: bounds (a row of lows, a row of highs, 64 spare), keys, ties, links; blocks; table:
points and roots; and the pool's numbers."""

FIRST, SIZE, CAPACITY, LEVEL = range(4)
"""A block: its first slot (or the next free block), entries, slots, and height above the leaves."""

SLOTS, BLOCKS, FREE_BLOCK, ROOTS, FREE_SLOTS = range(5)
HEIGHTS: Final = FREE_SLOTS + 5
POOL: Final = HEIGHTS + 64
"""The pool: slots, blocks, roots in use; heads of the free lists; roots by height of the point."""

LEAST: Final = 4
MOST: Final = 64


@inner
def take_slots(store: Store, capacity: int) -> int:
    """Give the first of `capacity` slots that nobody uses."""
    links, pool = store[3], store[7]
    free = FREE_SLOTS + lowest_bit(capacity) - 2
    first = pool[free]
    if first >= 0:
        pool[free] = links[first]
        return first
    first = pool[SLOTS]
    pool[SLOTS] += capacity
    return first


@inner
def give_slots(store: Store, first: int, capacity: int) -> None:
    """Give slots back."""
    links, pool = store[3], store[7]
    free = FREE_SLOTS + lowest_bit(capacity) - 2
    links[first] = pool[free]
    pool[free] = first


@inner
def make_block(store: Store, capacity: int, level: int) -> int:
    """Make an empty block."""
    blocks, pool = store[4], store[7]
    block = pool[FREE_BLOCK]
    if block >= 0:
        pool[FREE_BLOCK] = blocks[block, FIRST]
    else:
        block = pool[BLOCKS]
        pool[BLOCKS] += 1
    blocks[block, FIRST] = take_slots(store, capacity)
    blocks[block, SIZE] = 0
    blocks[block, CAPACITY] = capacity
    blocks[block, LEVEL] = level
    return block


@inner
def drop_block(store: Store, block: int) -> None:
    """Give a block and its slots back."""
    blocks, pool = store[4], store[7]
    give_slots(store, int64(blocks[block, FIRST]), int64(blocks[block, CAPACITY]))
    blocks[block, FIRST] = pool[FREE_BLOCK]
    pool[FREE_BLOCK] = block


@inner
def copy_entry(store: Store, source: int, target: int) -> None:
    """Copy one slot to another."""
    bounds, keys, ties, links = store[0], store[1], store[2], store[3]
    bounds[0, target], bounds[1, target] = bounds[0, source], bounds[1, source]
    keys[target], ties[target], links[target] = keys[source], ties[source], links[source]


@inner
def resize_block(store: Store, block: int, capacity: int) -> None:
    """Move a block to a place of another capacity."""
    blocks = store[4]
    first = take_slots(store, capacity)
    for entry in range(blocks[block, SIZE]):
        copy_entry(store, blocks[block, FIRST] + entry, first + entry)
    give_slots(store, int64(blocks[block, FIRST]), int64(blocks[block, CAPACITY]))
    blocks[block, FIRST], blocks[block, CAPACITY] = first, capacity


@inner
def open_gap(store: Store, block: int, entry: int) -> int:
    """Make room for an entry in a block that has a slot left; give its slot."""
    blocks = store[4]
    slot = blocks[block, FIRST] + entry
    for each in range(blocks[block, FIRST] + blocks[block, SIZE], slot, -1):
        copy_entry(store, each - 1, each)
    blocks[block, SIZE] += 1
    return int64(slot)


@inner
def close_gap(store: Store, block: int, entry: int) -> None:
    """Remove an entry from a block."""
    blocks = store[4]
    for each in range(blocks[block, FIRST] + entry + 1, blocks[block, FIRST] + blocks[block, SIZE]):
        copy_entry(store, each, each - 1)
    blocks[block, SIZE] -= 1


@inner
def move_entries(store: Store, source: int, start: int, target: int) -> None:
    """Move the entries of a block from `start` on to the end of another."""
    blocks = store[4]
    for entry in range(start, blocks[source, SIZE]):
        to = blocks[target, FIRST] + blocks[target, SIZE]
        copy_entry(store, blocks[source, FIRST] + entry, int64(to))
        blocks[target, SIZE] += 1
    blocks[source, SIZE] = start


@inner
def summarise(store: Store, slot: int, block: int) -> None:
    """Make the entry in `slot` that of a block: its extent and its best entry's key and tie."""
    bounds, keys, ties, links, blocks = store[0], store[1], store[2], store[3], store[4]
    first = int64(blocks[block, FIRST])
    low, high = bounds[0, first], bounds[1, first]
    for each in range(first + 1, first + blocks[block, SIZE]):
        low, high = min(low, bounds[0, each]), max(high, bounds[1, each])
    bounds[0, slot], bounds[1, slot] = low, high
    keys[slot], ties[slot], links[slot] = keys[first], ties[first], block


@inner
def find_entry(store: Store, block: int, key: int, tie: int) -> int:
    """Give the last entry that does not come after (key, tie), or -1; O(log b)."""
    keys, ties, blocks = store[1], store[2], store[4]
    first = int64(blocks[block, FIRST])
    below, above = int64(-1), int64(blocks[block, SIZE])
    while above - below > 1:
        middle = (below + above) >> 1
        slot = first + middle
        if keys[slot] < key or (keys[slot] == key and ties[slot] <= tie):
            below = middle
        else:
            above = middle
    return below


@inner
def table_place(points: Int64s, roots: Int32s, point: int) -> int:
    """Give the place of a point in the table, or the free place where it would be."""
    last = len(points) - 1
    lower, upper = point & 0xFFFFFFFF, (point >> 32) & 0xFFFFFFFF
    place = (((lower * 0x61C88647) >> 15) ^ ((upper * 0x45D9F3B5) >> 17)) & last
    while roots[place] >= 0 and points[place] != point:
        place = (place + 1) & last
    return place


@inner
def table_drop(points: Int64s, roots: Int32s, place: int) -> None:
    """Free a place; what was pushed beyond it moves up."""
    last = len(points) - 1
    roots[place] = -1
    after = (place + 1) & last
    while roots[after] >= 0:
        point, root = points[after], roots[after]
        roots[after] = -1
        better = table_place(points, roots, point)
        points[better], roots[better] = point, root
        after = (after + 1) & last


@kernel
def table_refill(old: tuple[Int64s, Int32s], points: Int64s, roots: Int32s) -> None:
    """Put everything into a larger table, all free."""
    for place in range(len(old[0])):
        if old[1][place] >= 0:
            better = table_place(points, roots, old[0][place])
            points[better], roots[better] = old[0][place], old[1][place]
