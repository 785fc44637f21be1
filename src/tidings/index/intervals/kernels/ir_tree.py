"""The IR-tree (RPS 3.1), with inserts and deletes that never rebuild it.

Its interval tree is the binary tree of all numbers: float64, read as integers of the same order,
halved again and again. An interval belongs to the node of the first half-way point that it
contains, so that all intervals of a node share a point, and no path is longer than 64. A node is a
B-tree by score whose entries know their extents: an R-tree without holes.
"""

from typing import Final

import numpy as np
import numpy.typing as npt
from numba import types

from tidings.compiled.array_types import Float64s, Int64s
from tidings.compiled.bits import highest_bit, lowest_bit
from tidings.compiled.heaps import lists_pop, lists_push, lists_sink
from tidings.compiled.ints import int64
from tidings.compiled.jit import inner, kernel, wide_vectors
from tidings.compiled.simd import compare_bounds
from tidings.index.intervals.kernels.ir_blocks import (
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
    Store,
    close_gap,
    drop_block,
    find_entry,
    make_block,
    move_entries,
    open_gap,
    resize_block,
    summarise,
    table_drop,
    table_place,
)

Known = tuple[Float64s, Float64s, Int64s, npt.NDArray[np.bool_]]
"""Low, high and key by id, and whether it is there."""

NODES, LEAVES, INTERVALS, HOLES, BEGUN, HEAP = range(6)
LISTS: Final = 6
CURSORS: Final = LISTS + 3 * 64
STRIDE: Final = 2 + 2 * 8
STATE: Final = CURSORS + 64 * STRIDE
"""The state of a walk: counters, blocks entered for nothing, a heap of (key, tie, cursor), and per
node on the path a cursor: its level, its root's level, and per level the block and next entry."""

SPARE: Final = 8
"""An insert takes at most so many new blocks."""


@inner
def ordered(number: float) -> int:
    """Read a number as an integer of the same order."""
    bits: int = int64(np.float64(number + 0.0).view(np.int64))
    return bits if bits >= 0 else bits ^ int64(0x7FFFFFFFFFFFFFFF)


@inner
def halving_point(low: float, high: float) -> tuple[int, int]:
    """Give the first half-way point in [low, high], and its height: the zeros it ends with."""
    above = ordered(high)
    height = highest_bit((ordered(low) - 1) ^ above)
    if height == 63:
        return int64(0), 63
    return (above >> height) << height, height


@inner
def split_entry(store: Store, parent: int, entry: int, key: int, tie: int) -> None:
    """Split the full block of an entry, evenly, or nearly at its end if (key, tie) goes there."""
    keys, ties, links, blocks = store[1], store[2], store[3], store[4]
    slot = blocks[parent, FIRST] + entry
    full = int64(links[slot])
    last = blocks[full, FIRST] + blocks[full, SIZE] - 1
    at_end = keys[last] < key or (keys[last] == key and ties[last] < tie)
    new = make_block(store, MOST, int64(blocks[full, LEVEL]))
    move_entries(store, full, MOST - 4 if at_end else MOST // 2, new)
    summarise(store, open_gap(store, parent, entry + 1), new)
    summarise(store, int64(slot), full)


@inner
def grow_root(store: Store, place: int) -> None:
    """Give a full root more slots, or, if it has all, a root above it."""
    blocks, roots = store[4], store[6]
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
def put_entry(store: Store, block: int, bounds_of: tuple[float, float], key: int, tie: int) -> None:
    """Insert an interval below a block that is not full; full ones on the way down are split."""
    bounds, keys, ties, links, blocks = store[0], store[1], store[2], store[3], store[4]
    low, high = bounds_of
    while blocks[block, LEVEL] > 0:
        entry = max(find_entry(store, block, key, tie), 0)
        child = links[blocks[block, FIRST] + entry]
        if blocks[child, SIZE] == MOST:
            split_entry(store, block, entry, key, tie)
            entry = max(find_entry(store, block, key, tie), 0)
        slot = blocks[block, FIRST] + entry
        bounds[0, slot], bounds[1, slot] = min(bounds[0, slot], low), max(bounds[1, slot], high)
        if key < keys[slot] or (key == keys[slot] and tie < ties[slot]):
            keys[slot], ties[slot] = key, tie
        block = int64(links[slot])
    slot = open_gap(store, block, find_entry(store, block, key, tie) + 1)
    bounds[0, slot], bounds[1, slot] = low, high
    keys[slot], ties[slot], links[slot] = key, tie, -1


@inner
def ir_insert(store: Store, bounds_of: tuple[float, float], key: int, tie: int) -> None:
    """Insert one interval; O(b log_b n), once there is room."""
    points, roots, pool = store[5], store[6], store[7]
    point, height = halving_point(bounds_of[0], bounds_of[1])
    place = table_place(points, roots, point)
    if roots[place] < 0:
        points[place], roots[place] = point, make_block(store, LEAST, 0)
        pool[ROOTS] += 1
        pool[HEIGHTS + height] += 1
    grow_root(store, place)
    put_entry(store, int64(roots[place]), bounds_of, key, tie)


@inner
def has_room(store: Store) -> bool:
    """Say whether one more interval surely finds room."""
    bounds, blocks, points, pool = store[0], store[4], store[5], store[7]
    if pool[SLOTS] + SPARE * MOST > bounds.shape[1] - MOST or pool[BLOCKS] + SPARE > len(blocks):
        return False
    return 2 * pool[ROOTS] + 2 <= len(points)


@kernel
def ir_insert_many(store: Store, known: Known, ids: Int64s, done: int) -> int:
    """Insert known intervals from the `done`-th id on, until all are there or room runs out."""
    low, high, key, alive = known
    while done < len(ids) and has_room(store):
        each = ids[done]
        ir_insert(store, (low[each], high[each]), key[each], each)
        alive[each] = True
        done += 1
    return done


@kernel
def ir_add(
    store: Store, known: Known, id: int, bounds_of: tuple[float, float], score: float
) -> bool:
    """Note an interval under its id and insert it; without room do nothing and give False."""
    low, high, keys, alive = known
    if not has_room(store):
        return False
    low[id], high[id] = bounds_of
    keys[id], alive[id] = -ordered(score), True
    ir_insert(store, bounds_of, keys[id], id)
    return True


@inner
def merge_next(store: Store, parent: int, entry: int) -> None:
    """Unite the block of an entry with the next one, if both together leave some room."""
    links, blocks = store[3], store[4]
    if entry < 0 or entry + 1 >= blocks[parent, SIZE]:
        return
    slot = int64(blocks[parent, FIRST] + entry)
    block, other = int64(links[slot]), int64(links[slot + 1])
    if blocks[block, SIZE] + blocks[other, SIZE] <= MOST - MOST // 4:
        move_entries(store, other, 0, block)
        drop_block(store, other)
        close_gap(store, parent, entry + 1)
        summarise(store, slot, block)


@inner
def mend_parent(store: Store, parent: int, entry: int) -> None:
    """Put the entry of a block that has lost something right, or remove it with its empty block."""
    links, blocks = store[3], store[4]
    slot = int64(blocks[parent, FIRST] + entry)
    block = int64(links[slot])
    if blocks[block, SIZE] == 0:
        drop_block(store, block)
        close_gap(store, parent, entry)
        return
    summarise(store, slot, block)
    if blocks[block, SIZE] <= MOST // 4:
        merge_next(store, parent, entry)
        merge_next(store, parent, entry - 1)


@inner
def shrink_root(store: Store, place: int, height: int) -> None:
    """Drop roots with a single block below them, slots that are not needed, and an empty node."""
    links, blocks, points, roots, pool = store[3], store[4], store[5], store[6], store[7]
    root = int64(roots[place])
    while blocks[root, LEVEL] > 0 and blocks[root, SIZE] == 1:
        below = int64(links[blocks[root, FIRST]])
        drop_block(store, root)
        root = below
        roots[place] = root
    if blocks[root, SIZE] == 0:
        drop_block(store, root)
        table_drop(points, roots, place)
        pool[ROOTS] -= 1
        pool[HEIGHTS + height] -= 1
    elif blocks[root, LEVEL] == 0 and LEAST < blocks[root, CAPACITY] >= 4 * blocks[root, SIZE]:
        resize_block(store, root, int64(blocks[root, CAPACITY] // 2))


@inner
def ir_remove(store: Store, known: Known, id: int, path: Int64s) -> bool:
    """Delete a known interval; False if it is gone already. O(b log_b n).

    `path` is room for a block and an entry per level.
    """
    links, blocks, roots = store[3], store[4], store[6]
    low, high, keys, alive = known
    if not alive[id]:
        return False
    point, height = halving_point(low[id], high[id])
    place = table_place(store[5], roots, point)
    block, depth = int64(roots[place]), 0
    while blocks[block, LEVEL] > 0:
        entry = find_entry(store, block, keys[id], id)
        path[2 * depth], path[2 * depth + 1] = block, entry
        block, depth = int64(links[blocks[block, FIRST] + entry]), depth + 1
    close_gap(store, block, find_entry(store, block, keys[id], id))
    for above in range(depth - 1, -1, -1):
        mend_parent(store, path[2 * above], path[2 * above + 1])
    shrink_root(store, place, height)
    alive[id] = False
    return True


@kernel
def ir_remove_many(store: Store, known: Known, ids: Int64s, path: Int64s) -> int:
    """Delete known intervals; give how many, which ends at the first that is gone already."""
    for done in range(len(ids)):
        if not ir_remove(store, known, ids[done], path):
            return done
    return len(ids)


def slots_plain(bounds: Float64s, first: int, q: float) -> int:
    """Give which of the 64 slots from `first` on contain q, as a mask."""
    mask = int64(0)
    for each in range(MOST):
        if bounds[0, first + each] <= q <= bounds[1, first + each]:
            mask |= int64(1) << int64(each)
    return mask


compare_slots = compare_bounds("<=", types.float64)


@inner
def slots_fast(bounds: Float64s, first: int, q: float) -> int:
    """Give which of the 64 slots from `first` on contain q, as a mask."""
    mask: int = compare_slots(bounds, first, first + bounds.shape[1], q, q)
    return mask


slots_stabbed = slots_fast if wide_vectors() else inner(slots_plain)


@inner
def first_stabbed(bounds: Float64s, q: float, slot: int, end: int) -> int:
    """Give the first slot that q stabs, of at most 64, or the end."""
    if slot == end:
        return end
    mask = slots_stabbed(bounds, slot, q)
    return min(slot + lowest_bit(mask), end) if mask != 0 else end


@inner
def cursor_next(store: Store, q: float, state: Int64s, cursor: int) -> int:
    """Move a cursor to the next stabbed interval of its node; give its slot, or -1."""
    bounds, links, blocks = store[0], store[3], store[4]
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
def ir_begin(store: Store, q: float, state: Int64s) -> None:
    """Put a cursor on each node of the path to q, and on the heap its best key.

    A node of one block is searched at once. Of a larger one it is the best key of all: the sign of
    its cursor says that it must move before it counts, and many of these are never opened.
    """
    keys, ties, blocks, points, roots, pool = (
        store[1],
        store[2],
        store[4],
        store[5],
        store[6],
        store[7],
    )
    number, cursor = ordered(q), int64(CURSORS)
    state[BEGUN] = 1
    for height in range(64):
        if pool[HEIGHTS + height] == 0:
            continue
        point = int64(0)
        if height < 63:
            point = ((number >> (height + 1)) << (height + 1)) | (int64(1) << height)
        root = int64(roots[table_place(points, roots, point)])
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
def ir_walk(store: Store, q: float, state: Int64s, out: Int64s) -> int:
    """Write the next best ids; O((k + log n) b log_b n) (RPS Theorem 3.1)."""
    keys, ties = store[1], store[2]
    if state[BEGUN] == 0:
        ir_begin(store, q, state)
    found = 0
    while found < len(out) and state[HEAP] > 0:
        cursor = state[LISTS + 2]
        if cursor > 0:
            out[found] = state[LISTS + 1]
            found += 1
            state[LISTS + 2] = -cursor
            continue
        slot = cursor_next(store, q, state, -cursor)
        if slot >= 0:
            state[LISTS], state[LISTS + 1], state[LISTS + 2] = keys[slot], ties[slot], -cursor
            lists_sink(state, LISTS, state[HEAP])
        else:
            state[HEAP] = lists_pop(state, LISTS, state[HEAP])
    return found


@kernel
def ir_walk_many(store: Store, qs: Float64s, out: Int64s, counts: Int64s) -> None:
    """Answer each query in its row of `out`, from the start."""
    state = np.zeros(STATE, np.int64)
    for row in range(len(qs)):
        state[:LISTS] = 0
        counts[row] = ir_walk(store, qs[row], state, out[row])


@kernel
def halving_points(low: Float64s, high: Float64s, points: Int64s) -> None:
    """Find the nodes of many intervals."""
    for each in range(len(points)):
        points[each] = halving_point(low[each], high[each])[0]
