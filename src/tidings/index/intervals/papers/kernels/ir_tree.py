"""The IR-tree (RPS 3.1), with inserts and deletes that never rebuild it.

Its interval tree is the binary tree of all float64, read as integers of the same order and halved
again and again. An interval belongs to the node of the first halving point that it contains: all
intervals of a node share a point, and no path is longer than 64. A node is a B-tree by score whose
entries have extents, which is an R-tree without holes:

    query q -> up to 64 nodes on its path -> a cursor in each -> heap of (key, tie, cursor)
"""

from typing import Final, NamedTuple

import numpy as np
from numba import types

from tidings.compiled.array_types import Bools, Float64s, Int64s
from tidings.compiled.heaps import lists_pop, lists_push, lists_sink
from tidings.compiled.ints import int64
from tidings.compiled.jit import inner, kernel, wide_vectors
from tidings.compiled.simd import compare_bounds, highest_bit, lowest_bit
from tidings.index.intervals.kernels.hash_table import table_remove, table_slot
from tidings.index.intervals.kernels.merge_by_key import key_of
from tidings.index.intervals.papers.kernels.ir_blocks import (
    BLOCKS,
    CAPACITY,
    FIRST,
    HEIGHTS,
    LEAST,
    LEVEL,
    MOST,
    ROOTS,
    SIZE,
    SLOTS,
    IrStore,
    close_gap,
    find_entry,
    free_block,
    make_block,
    move_entries,
    open_gap,
    resize_block,
    summarise,
)

NODES, LEAVES, INTERVALS, HOLES, BEGUN, HEAP = range(6)
LISTS: Final = 6
CURSORS: Final = LISTS + 3 * 64
STRIDE: Final = 2 + 2 * 8
STATE: Final = CURSORS + 64 * STRIDE
"""The state of a walk: counters, blocks entered in vain, a heap of (key, tie, cursor), and for each
node on the path a cursor: its level, its root's level, and per level the block and next entry."""

SPARE: Final = 8
"""The most new blocks that an insert takes."""


class IntervalsById(NamedTuple):
    """Low, high and key by id, and whether the interval exists."""

    low: Float64s
    high: Float64s
    keys: Int64s
    alive: Bools


@inner
def ordered(number: float) -> int:
    """Return the bits of a number as an integer of the same order."""
    bits: int = int64(np.float64(number + 0.0).view(np.int64))
    # Negative floats order the wrong way round: all bits but the sign are inverted.
    return bits if bits >= 0 else bits ^ int64(0x7FFFFFFFFFFFFFFF)


@inner
def halving_point(low: float, high: float) -> tuple[int, int]:
    """Return the first halving point in [low, high], and its height: its number of final zeros."""
    above = ordered(high)
    # The highest bit in which low - 1 and high differ: the number with zeros below it lies between.
    height = highest_bit((ordered(low) - 1) ^ above)
    if height == 63:
        return int64(0), 63
    return (above >> height) << height, height


@inner
def split_entry(store: IrStore, parent: int, entry: int, key: int, tie: int) -> None:
    """Split the full block of an entry: evenly, or near its end if (key, tie) is appended there.

    Ascending inserts thus leave nearly full blocks behind instead of half-full ones.
    """
    keys, ties, links, blocks = store.keys, store.ties, store.links, store.blocks
    slot = blocks[parent, FIRST] + entry
    full = int64(links[slot])
    last = blocks[full, FIRST] + blocks[full, SIZE] - 1
    at_end = keys[last] < key or (keys[last] == key and ties[last] < tie)
    new = make_block(store, MOST, int64(blocks[full, LEVEL]))
    move_entries(store, full, MOST - 4 if at_end else MOST // 2, new)
    summarise(store, open_gap(store, parent, entry + 1), new)
    summarise(store, int64(slot), full)


@inner
def grow_root(store: IrStore, place: int) -> None:
    """Double the slots of a full root, or, at 64, put a new root above it."""
    blocks, roots = store.blocks, store.roots.values
    root = int64(roots[place])
    if blocks[root, SIZE] < blocks[root, CAPACITY]:
        return
    if blocks[root, CAPACITY] < MOST:
        resize_block(store, root, int64(2 * blocks[root, CAPACITY]))
        return
    above = make_block(store, MOST, int64(blocks[root, LEVEL] + 1))
    summarise(store, open_gap(store, above, 0), root)
    roots[place] = above


@inner
def put_entry(store: IrStore, block: int, low: float, high: float, key: int, tie: int) -> None:
    """Insert an interval below a block that is not full, splitting full blocks on the way down."""
    bounds, keys, ties, links, blocks = (
        store.bounds,
        store.keys,
        store.ties,
        store.links,
        store.blocks,
    )
    while blocks[block, LEVEL] > 0:
        entry = max(find_entry(store, block, key, tie), 0)
        child = links[blocks[block, FIRST] + entry]
        # Split on the way down: no insert has to climb back up.
        if blocks[child, SIZE] == MOST:
            split_entry(store, block, entry, key, tie)
            entry = max(find_entry(store, block, key, tie), 0)
        slot = blocks[block, FIRST] + entry
        # Extents grow on the way down; only removals have to summarise a block again.
        bounds[0, slot], bounds[1, slot] = min(bounds[0, slot], low), max(bounds[1, slot], high)
        if key < keys[slot] or (key == keys[slot] and tie < ties[slot]):
            keys[slot], ties[slot] = key, tie
        block = int64(links[slot])
    slot = open_gap(store, block, find_entry(store, block, key, tie) + 1)
    bounds[0, slot], bounds[1, slot] = low, high
    keys[slot], ties[slot], links[slot] = key, tie, -1


@inner
def ir_insert(store: IrStore, low: float, high: float, key: int, tie: int) -> None:
    """Insert an interval, for which there is room; O(b log_b n)."""
    roots, pool = store.roots, store.pool
    point, height = halving_point(low, high)
    place = table_slot(roots, point)
    if roots.values[place] < 0:
        roots.keys[place], roots.values[place] = point, make_block(store, LEAST, 0)
        pool[ROOTS] += 1
        pool[HEIGHTS + height] += 1
    grow_root(store, place)
    put_entry(store, int64(roots.values[place]), low, high, key, tie)


@inner
def has_room(store: IrStore) -> bool:
    """Return whether one more interval certainly fits."""
    bounds, blocks, pool = store.bounds, store.blocks, store.pool
    # 64 columns stay unused, so that a comparison from the last slot on reads within the array.
    if pool[SLOTS] + SPARE * MOST > bounds.shape[1] - MOST or pool[BLOCKS] + SPARE > len(blocks):
        return False
    return 2 * pool[ROOTS] + 2 <= len(store.roots.keys)


@kernel
def ir_insert_many(store: IrStore, by_id: IntervalsById, ids: Int64s, done: int) -> int:
    """Insert intervals from position `done` on until the store is full; return how many."""
    while done < len(ids) and has_room(store):
        id = ids[done]
        ir_insert(store, by_id.low[id], by_id.high[id], by_id.keys[id], id)
        by_id.alive[id] = True
        done += 1
    return done


@kernel
def ir_add(
    store: IrStore, by_id: IntervalsById, id: int, low: float, high: float, score: float
) -> bool:
    """Record an interval by id and insert it; return False, with nothing done, if full."""
    if not has_room(store):
        return False
    by_id.low[id], by_id.high[id] = low, high
    by_id.keys[id], by_id.alive[id] = key_of(score), True
    ir_insert(store, low, high, by_id.keys[id], id)
    return True


@inner
def merge_next(store: IrStore, parent: int, entry: int) -> None:
    """Merge the block of an entry with the next one, if together they are not nearly full."""
    links, blocks = store.links, store.blocks
    if entry < 0 or entry + 1 >= blocks[parent, SIZE]:
        return
    slot = int64(blocks[parent, FIRST] + entry)
    block, other = int64(links[slot]), int64(links[slot + 1])
    # A quarter stays free, or the next insert would split what was just merged.
    if blocks[block, SIZE] + blocks[other, SIZE] <= MOST - MOST // 4:
        move_entries(store, other, 0, block)
        free_block(store, other)
        close_gap(store, parent, entry + 1)
        summarise(store, slot, block)


@inner
def update_parent(store: IrStore, parent: int, entry: int) -> None:
    """Update the entry of a block that lost an entry; remove it if the block is empty."""
    links, blocks = store.links, store.blocks
    slot = int64(blocks[parent, FIRST] + entry)
    block = int64(links[slot])
    if blocks[block, SIZE] == 0:
        free_block(store, block)
        close_gap(store, parent, entry)
        return
    summarise(store, slot, block)
    if blocks[block, SIZE] <= MOST // 4:
        merge_next(store, parent, entry)
        merge_next(store, parent, entry - 1)


@inner
def shrink_root(store: IrStore, place: int, height: int) -> None:
    """Remove roots with a single child, unneeded slots, and an empty node."""
    links, blocks, roots, pool = store.links, store.blocks, store.roots, store.pool
    root = int64(roots.values[place])
    while blocks[root, LEVEL] > 0 and blocks[root, SIZE] == 1:
        below = int64(links[blocks[root, FIRST]])
        free_block(store, root)
        root = below
        roots.values[place] = root
    if blocks[root, SIZE] == 0:
        free_block(store, root)
        table_remove(roots, place)
        pool[ROOTS] -= 1
        pool[HEIGHTS + height] -= 1
    # At a quarter, not at a half: a root at the border would be moved again and again.
    elif blocks[root, LEVEL] == 0 and LEAST < blocks[root, CAPACITY] >= 4 * blocks[root, SIZE]:
        resize_block(store, root, int64(blocks[root, CAPACITY] // 2))


@inner
def ir_remove(store: IrStore, by_id: IntervalsById, id: int, path: Int64s) -> bool:
    """Delete an interval; return False if it does not exist. O(b log_b n).

    `path` is scratch space for a block and an entry per level.
    """
    links, blocks, keys = store.links, store.blocks, by_id.keys
    if not by_id.alive[id]:
        return False
    point, height = halving_point(by_id.low[id], by_id.high[id])
    place = table_slot(store.roots, point)
    block, depth = int64(store.roots.values[place]), 0
    while blocks[block, LEVEL] > 0:
        entry = find_entry(store, block, keys[id], id)
        path[2 * depth], path[2 * depth + 1] = block, entry
        block, depth = int64(links[blocks[block, FIRST] + entry]), depth + 1
    close_gap(store, block, find_entry(store, block, keys[id], id))
    # From the leaf upwards: the extent of a block needs those below it.
    for above in range(depth - 1, -1, -1):
        update_parent(store, path[2 * above], path[2 * above + 1])
    shrink_root(store, place, height)
    by_id.alive[id] = False
    return True


@kernel
def ir_remove_many(store: IrStore, by_id: IntervalsById, ids: Int64s, path: Int64s) -> int:
    """Delete intervals up to the first that does not exist; return how many."""
    for done in range(len(ids)):
        if not ir_remove(store, by_id, ids[done], path):
            return done
    return len(ids)


def slots_plain(bounds: Float64s, first: int, q: float) -> int:
    """Return the mask of those of the 64 slots from `first` on that contain q."""
    mask = int64(0)
    for lane in range(MOST):
        if bounds[0, first + lane] <= q <= bounds[1, first + lane]:
            mask |= int64(1) << int64(lane)
    return mask


compare_slots = compare_bounds("<=", types.float64)


@inner
def slots_fast(bounds: Float64s, first: int, q: float) -> int:
    """Return the mask of those of the 64 slots from `first` on that contain q."""
    mask: int = compare_slots(bounds, first, first + bounds.shape[1], q, q)
    return mask


slots_stabbed = slots_fast if wide_vectors() else inner(slots_plain)


@inner
def first_stabbed(bounds: Float64s, q: float, slot: int, end: int) -> int:
    """Return the first of at most 64 slots that q stabs, or the end."""
    if slot == end:
        return end
    mask = slots_stabbed(bounds, slot, q)
    return min(slot + lowest_bit(mask), end) if mask != 0 else end


@inner
def cursor_next(store: IrStore, q: float, state: Int64s, cursor: int) -> int:
    """Move a cursor to the next stabbed interval of its node; return its slot, or -1."""
    bounds, links, blocks = store.bounds, store.links, store.blocks
    level = state[cursor]
    if level == state[cursor + 1] and state[cursor + 3 + 2 * level] == 0:
        state[NODES] += 1
        state[LEAVES] += level == 0
    while level <= state[cursor + 1]:
        at = cursor + 2 + 2 * level
        first = int64(blocks[state[at], FIRST])
        entry, end = state[at + 1], first + int64(blocks[state[at], SIZE])
        slot = first_stabbed(bounds, q, first + entry, end)
        state[INTERVALS] += min(slot + 1, end) - first - entry if level == 0 else 0
        if slot == end:
            state[HOLES] += entry == 0 and level < state[cursor + 1]
            level += 1
            continue
        state[at + 1] = slot + 1 - first
        if level == 0:
            state[cursor] = 0
            return slot
        level -= 1
        state[at - 2], state[at - 1] = links[slot], 0
        state[NODES] += 1
        state[LEAVES] += level == 0
    state[cursor] = level
    return int64(-1)


@inner
def ir_begin(store: IrStore, q: float, state: Int64s) -> None:
    """Put a cursor on each node of the path to q, and its best key on the heap.

    A node of one block is searched at once. For a larger one the best key of all its entries is
    pushed, with a negated cursor: it must move before it counts, and many are never opened.
    """
    keys, ties, blocks, pool = store.keys, store.ties, store.blocks, store.pool
    number, cursor = ordered(q), int64(CURSORS)
    state[BEGUN] = 1
    for height in range(64):
        # Few of the 64 heights have nodes: the counts spare a probe of the table each.
        if pool[HEIGHTS + height] == 0:
            continue
        point = int64(0)
        if height < 63:
            point = ((number >> (height + 1)) << (height + 1)) | (int64(1) << height)
        root = int64(store.roots.values[table_slot(store.roots, point)])
        if root < 0:
            continue
        level = int64(blocks[root, LEVEL])
        state[cursor], state[cursor + 1] = level, level
        state[cursor + 2 + 2 * level], state[cursor + 3 + 2 * level] = root, 0
        slot, sign = int64(blocks[root, FIRST]), int64(-1)
        if level == 0:
            slot, sign = cursor_next(store, q, state, cursor), int64(1)
        if slot >= 0:
            row = (keys[slot], int64(ties[slot]), sign * cursor)
            state[HEAP] = lists_push(state, LISTS, state[HEAP], row)
            cursor += STRIDE


@inner
def ir_walk(store: IrStore, q: float, state: Int64s, out: Int64s) -> int:
    """Write the next best ids; O((k + log n) b log_b n) (RPS Theorem 3.1)."""
    keys, ties = store.keys, store.ties
    if state[BEGUN] == 0:
        ir_begin(store, q, state)
    count = 0
    while count < len(out) and state[HEAP] > 0:
        cursor = state[LISTS + 2]
        # Positive: the row is an answer. It stays on the heap, negated, until its cursor is moved.
        if cursor > 0:
            out[count] = state[LISTS + 1]
            count += 1
            state[LISTS + 2] = -cursor
            continue
        slot = cursor_next(store, q, state, -cursor)
        if slot >= 0:
            state[LISTS], state[LISTS + 1], state[LISTS + 2] = keys[slot], ties[slot], -cursor
            lists_sink(state, LISTS, state[HEAP])
        else:
            state[HEAP] = lists_pop(state, LISTS, state[HEAP])
    return count


@kernel
def ir_walk_many(store: IrStore, qs: Float64s, out: Int64s, counts: Int64s) -> None:
    """Answer each query in its row of `out`."""
    state = np.zeros(STATE, np.int64)
    for row in range(len(qs)):
        state[:LISTS] = 0
        counts[row] = ir_walk(store, qs[row], state, out[row])


@kernel
def halving_points(low: Float64s, high: Float64s, points: Int64s) -> None:
    """Write the halving points of many intervals."""
    for row in range(len(points)):
        points[row] = halving_point(low[row], high[row])[0]
