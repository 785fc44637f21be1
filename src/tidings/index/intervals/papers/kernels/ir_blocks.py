"""The memory of an IR-tree: blocks of entries, and a table from a node's point to its root.

    slots     bounds (low, high) | key | tie | link          one entry a slot
    block     (first slot, entries, capacity, level)         4, 8, .. 64 consecutive slots
    roots     point -> block                                 one B-tree by (key, tie) a point

Entries of a block are consecutive and in order, so that 64 bounds are compared at once. Above the
leaves, an entry has the extent and the best key of the block that it links to. Only the root of a
node may have fewer than 64 slots: most nodes are small. Freed slots and blocks form free lists.
"""

from typing import Final, NamedTuple

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.ints import int64
from tidings.compiled.jit import inner
from tidings.compiled.simd import lowest_bit
from tidings.index.intervals.kernels.hash_table import HashTable

FIRST, SIZE, CAPACITY, LEVEL = range(4)
"""The columns of a block: its first slot (or the next free block), entries, slots, and level."""

SLOTS, BLOCKS, FREE_BLOCK, ROOTS, FREE_SLOTS = range(5)
HEIGHTS: Final = FREE_SLOTS + 5
POOL: Final = HEIGHTS + 64
"""The pool: slots, blocks and roots in use; heads of the free lists; roots by height."""

LEAST: Final = 4
MOST: Final = 64


class IrStore(NamedTuple):
    """The arrays of an IR-tree; see the drawing above."""

    bounds: Float64s
    """A row of lows and a row of highs, with 64 spare columns."""
    keys: Int64s
    ties: Int32s
    links: Int32s
    blocks: Int32s
    roots: HashTable
    pool: Int64s


@inner
def allocate_slots(store: IrStore, capacity: int) -> int:
    """Return the first of `capacity` free consecutive slots."""
    pool = store.pool
    # One free list per capacity 4, 8, .. 64: freed slots fit the next block without a search.
    free = FREE_SLOTS + lowest_bit(capacity) - 2
    first = pool[free]
    if first >= 0:
        pool[free] = store.links[first]
        return first
    first = pool[SLOTS]
    pool[SLOTS] += capacity
    return first


@inner
def free_slots(store: IrStore, first: int, capacity: int) -> None:
    """Put slots on the free list of their capacity."""
    free = FREE_SLOTS + lowest_bit(capacity) - 2
    store.links[first] = store.pool[free]
    store.pool[free] = first


@inner
def make_block(store: IrStore, capacity: int, level: int) -> int:
    """Return a new, empty block."""
    blocks, pool = store.blocks, store.pool
    block = pool[FREE_BLOCK]
    if block >= 0:
        pool[FREE_BLOCK] = blocks[block, FIRST]
    else:
        block = pool[BLOCKS]
        pool[BLOCKS] += 1
    blocks[block, FIRST] = allocate_slots(store, capacity)
    blocks[block, SIZE] = 0
    blocks[block, CAPACITY] = capacity
    blocks[block, LEVEL] = level
    return block


@inner
def free_block(store: IrStore, block: int) -> None:
    """Free a block and its slots."""
    blocks, pool = store.blocks, store.pool
    free_slots(store, int64(blocks[block, FIRST]), int64(blocks[block, CAPACITY]))
    blocks[block, FIRST] = pool[FREE_BLOCK]
    pool[FREE_BLOCK] = block


@inner
def copy_entry(store: IrStore, source: int, target: int) -> None:
    """Copy one slot to another."""
    bounds, keys, ties, links = store.bounds, store.keys, store.ties, store.links
    bounds[0, target], bounds[1, target] = bounds[0, source], bounds[1, source]
    keys[target], ties[target], links[target] = keys[source], ties[source], links[source]


@inner
def resize_block(store: IrStore, block: int, capacity: int) -> None:
    """Move a block to slots of another capacity."""
    blocks = store.blocks
    first = allocate_slots(store, capacity)
    for entry in range(blocks[block, SIZE]):
        copy_entry(store, blocks[block, FIRST] + entry, first + entry)
    free_slots(store, int64(blocks[block, FIRST]), int64(blocks[block, CAPACITY]))
    blocks[block, FIRST], blocks[block, CAPACITY] = first, capacity


@inner
def open_gap(store: IrStore, block: int, entry: int) -> int:
    """Shift entries to make room in a block that has a slot left; return the slot."""
    blocks = store.blocks
    slot = blocks[block, FIRST] + entry
    # Sorted blocks cost a shift of at most 64 slots, and let 64 bounds be compared at once.
    for target in range(blocks[block, FIRST] + blocks[block, SIZE], slot, -1):
        copy_entry(store, target - 1, target)
    blocks[block, SIZE] += 1
    return int64(slot)


@inner
def close_gap(store: IrStore, block: int, entry: int) -> None:
    """Remove an entry from a block."""
    blocks = store.blocks
    end = blocks[block, FIRST] + blocks[block, SIZE]
    for source in range(blocks[block, FIRST] + entry + 1, end):
        copy_entry(store, source, source - 1)
    blocks[block, SIZE] -= 1


@inner
def move_entries(store: IrStore, source: int, start: int, target: int) -> None:
    """Move the entries of a block from `start` on to the end of another."""
    blocks = store.blocks
    for entry in range(start, blocks[source, SIZE]):
        slot = blocks[target, FIRST] + blocks[target, SIZE]
        copy_entry(store, blocks[source, FIRST] + entry, int64(slot))
        blocks[target, SIZE] += 1
    blocks[source, SIZE] = start


@inner
def summarise(store: IrStore, slot: int, block: int) -> None:
    """Write the entry of a block: its extent and its best key and tie."""
    bounds, keys, ties = store.bounds, store.keys, store.ties
    first = int64(store.blocks[block, FIRST])
    low, high = bounds[0, first], bounds[1, first]
    for entry in range(first + 1, first + store.blocks[block, SIZE]):
        low, high = min(low, bounds[0, entry]), max(high, bounds[1, entry])
    bounds[0, slot], bounds[1, slot] = low, high
    # Entries are in order: the first has the best key.
    keys[slot], ties[slot], store.links[slot] = keys[first], ties[first], block


@inner
def find_entry(store: IrStore, block: int, key: int, tie: int) -> int:
    """Return the last entry that does not come after (key, tie), or -1; O(log b)."""
    keys, ties = store.keys, store.ties
    first = int64(store.blocks[block, FIRST])
    below, above = int64(-1), int64(store.blocks[block, SIZE])
    while above - below > 1:
        middle = (below + above) >> 1
        slot = first + middle
        if keys[slot] < key or (keys[slot] == key and ties[slot] <= tie):
            below = middle
        else:
            above = middle
    return below
