"""Interval trees (RPS 2.1.1) over the sorted lows, without pointers.

The lows are numbered from 1, and the tree is that of binary numbers: 8 is above 4 and 12, these are
above 2, 6, 10, 14, and so on. An interval is kept at the highest number it contains, its first ones
in both senses: every interval of a node contains the node's point.
"""

from typing import Final

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.heaps import heap_offer, heap_sort, lists_pop, lists_push, lists_sink
from tidings.compiled.ints import int64
from tidings.compiled.jit import inner, kernel
from tidings.index.intervals.kernels.btree_search import count_until

Skeleton = tuple[Float64s, Int64s, Int32s, Int32s]
"""Keys and levels of the lows; the node kept for each number, or -1; the nodes' starts."""
Entries = tuple[Float64s, Int32s]
"""One row (low, high) and one rank per entry, node by node."""
Scored = tuple[Float64s, Int64s, Int32s, Int32s, Float64s, Int32s, Float64s, Int32s]
"""Skeleton; entries by score; one row (lowest low, highest high) per node; ids by rank."""
Ended = tuple[Float64s, Int64s, Int32s, Int32s, Float64s, Int32s, Float64s, Int32s, Int32s]
"""Skeleton; lows ascending with their ranks; highs descending with theirs; ids by rank."""

NODES, LEAVES, INTERVALS, BEGUN, SIZE, LISTS = range(6)
STATE: Final = LISTS + 3 * 64
"""The state of a walk: counters, whether it has begun (or its next rank), a heap of lists."""


@inner
def path_node(node_of: Int32s, until: int, height: int) -> int:
    """Give the node at a height of the path to the gap after the first `until` lows, or -1."""
    number = ((until >> (height + 1)) << (height + 1)) + (1 << height)
    return int64(node_of[number]) if number < len(node_of) else int64(-1)


@inner
def next_stabbed(entries: Entries, q: float, place: int, end: int) -> int:
    """Give the first entry from `place` on that q stabs, or the end."""
    bounds, _ = entries
    while place < end and not bounds[place, 0] <= q <= bounds[place, 1]:
        place += 1
    return place


@inner
def scored_begin(tree: Scored, q: float, state: Int64s) -> None:
    """Gather the lists on q's path, each from its first stabbed interval on."""
    keys, levels, node_of, starts, bounds, ranks, extents, _ = tree
    until = count_until(keys, levels, q)
    state[BEGUN] = 1
    height = 0
    while (1 << height) < len(node_of):
        node = path_node(node_of, until, height)
        height += 1
        if node < 0 or not extents[node, 0] <= q <= extents[node, 1]:
            continue
        state[NODES] += 1
        end = int64(starts[node + 1])
        place = next_stabbed((bounds, ranks), q, starts[node], end)
        state[INTERVALS] += min(place + 1, end) - starts[node]
        if place < end:
            state[SIZE] = lists_push(state, LISTS, state[SIZE], (ranks[place], place, end))


@inner
def scored_walk(tree: Scored, q: float, state: Int64s, out: Int64s) -> int:
    """Write the next best ids (RPS 2.2.2); costs what the lists hold beside the stabbed."""
    _, _, _, _, bounds, ranks, _, ids = tree
    if state[BEGUN] == 0:
        scored_begin(tree, q, state)
    found = 0
    while found < len(out) and state[SIZE] > 0:
        out[found] = ids[state[LISTS]]
        found += 1
        before, end = state[LISTS + 1], state[LISTS + 2]
        place = next_stabbed((bounds, ranks), q, before + 1, end)
        state[INTERVALS] += min(place + 1, end) - before - 1
        if place < end:
            state[LISTS], state[LISTS + 1] = ranks[place], place
            lists_sink(state, LISTS, state[SIZE])
        else:
            state[SIZE] = lists_pop(state, LISTS, state[SIZE])
    return found


@kernel
def scored_walk_many(tree: Scored, qs: Float64s, out: Int64s, counts: Int64s) -> None:
    """Answer each query in its row of `out`, from the start."""
    state = np.zeros(STATE, np.int64)
    for row in range(len(qs)):
        state[:LISTS] = 0
        counts[row] = scored_walk(tree, qs[row], state, out[row])


@inner
def ended_offer(
    entries: Entries, q: float, span: tuple[int, int, int], out: Int64s, size: int
) -> tuple[int, int]:
    """Offer the ranks of one node until the first that does not contain q; give size and place.

    `span` is where the node begins and ends, and the least rank wanted. Lows come negated, so that
    on both sides the first bound below q ends it.
    """
    bounds, ranks = entries
    place, end, floor = span
    while place < end and bounds[place] >= q:
        if ranks[place] >= floor:
            size = heap_offer(out, size, int64(ranks[place]))
        place += 1
    return size, place


@inner
def ended_collect(tree: Ended, q: float, state: Int64s, out: Int64s) -> int:
    """Keep the smallest ranks, from that in the state on, of all that q stabs."""
    keys, levels, node_of, starts, lows, low_ranks, highs, high_ranks, _ = tree
    until = count_until(keys, levels, q)
    size = 0
    for height in range(64):
        if (1 << height) >= len(node_of):
            break
        node = path_node(node_of, until, height)
        if node < 0:
            continue
        state[NODES] += 1
        span = (int64(starts[node]), int64(starts[node + 1]), state[BEGUN])
        if until & (1 << height):
            size, place = ended_offer((highs, high_ranks), q, span, out, size)
        else:
            size, place = ended_offer((lows, low_ranks), -q, span, out, size)
        state[INTERVALS] += place - span[0]
    return size


@inner
def ended_walk(tree: Ended, q: float, state: Int64s, out: Int64s) -> int:
    """Write the next best ids; looks at all that q stabs: O(m(q) log k) (RPS 2.2.2)."""
    ids = tree[8]
    size = ended_collect(tree, q, state, out)
    heap_sort(out, size)
    state[BEGUN] = out[size - 1] + 1 if size > 0 else len(ids)
    for each in range(size):
        out[each] = ids[out[each]]
    return size


@kernel
def ended_walk_many(tree: Ended, qs: Float64s, out: Int64s, counts: Int64s) -> None:
    """Answer each query in its row of `out`, from the start."""
    state = np.zeros(STATE, np.int64)
    for row in range(len(qs)):
        state[:LISTS] = 0
        counts[row] = ended_walk(tree, qs[row], state, out[row])
