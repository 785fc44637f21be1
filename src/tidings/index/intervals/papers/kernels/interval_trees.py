"""Interval trees (RPS 2.1.1) over the sorted lows, without pointers.

                8                   the distinct lows are numbered from 1; the tree is that of
          4           12            binary numbers, in which the zeros at the end are the height
       2     6    10      14
      1 3   5 7  9  11  13  15

An interval hangs at the highest number that it contains, so all intervals of a node contain the
node's low, and those that contain q all hang on one path.
"""

from typing import Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.heaps import heap_offer, heap_sort, lists_pop, lists_push, lists_sink
from tidings.compiled.ints import int64
from tidings.compiled.jit import inner, kernel
from tidings.index.intervals.kernels.btree_search import SearchTree, count_until

NODES, LEAVES, INTERVALS, BEGUN, SIZE, LISTS = range(6)
STATE: Final = LISTS + 3 * 64
"""The state of a walk: counters, whether it has begun (or its next rank), a heap of lists."""


class Skeleton(NamedTuple):
    """The tree that both forms share; node i has the entries starts[i]:starts[i + 1]."""

    lows: SearchTree
    node_of: Int32s
    """The node of each number, or -1 where no interval hangs."""
    starts: Int32s


class ScoredTree(NamedTuple):
    """Entries by score within each node."""

    skeleton: Skeleton
    bounds: Float64s
    """A row (low, high) per entry."""
    ranks: Int32s
    extents: Float64s
    """A row (lowest low, highest high) per node."""
    ids: Int32s


class EndpointTree(NamedTuple):
    """Entries of each node by ascending low, and again by descending high; lows are negated."""

    skeleton: Skeleton
    lows: Float64s
    low_ranks: Int32s
    highs: Float64s
    high_ranks: Int32s
    ids: Int32s


class NodeList(NamedTuple):
    """One of the two lists of a node: bounds and ranks, from `first` to `end`."""

    bounds: Float64s
    ranks: Int32s
    first: int
    end: int


@inner
def path_node(node_of: Int32s, until: int, height: int) -> int:
    """Return the node at a height of the path to the gap after the first `until` lows, or -1."""
    # The higher bits of `until`, then a one and zeros: the only number of that height on the path.
    number = ((until >> (height + 1)) << (height + 1)) + (1 << height)
    return int64(node_of[number]) if number < len(node_of) else int64(-1)


@inner
def next_stabbed(bounds: Float64s, q: float, place: int, end: int) -> int:
    """Return the first entry from `place` on that q stabs, or the end."""
    while place < end and not bounds[place, 0] <= q <= bounds[place, 1]:
        place += 1
    return place


@inner
def scored_begin(tree: ScoredTree, q: float, state: Int64s) -> None:
    """Push the lists on q's path, each from its first stabbed interval on."""
    node_of, starts = tree.skeleton.node_of, tree.skeleton.starts
    bounds, extents = tree.bounds, tree.extents
    until = count_until(tree.skeleton.lows, q)
    state[BEGUN] = 1
    height = 0
    while (1 << height) < len(node_of):
        node = path_node(node_of, until, height)
        height += 1
        # Extents are two reads, the list may be long: most nodes of a path end here.
        if node < 0 or not extents[node, 0] <= q <= extents[node, 1]:
            continue
        state[NODES] += 1
        end = int64(starts[node + 1])
        place = next_stabbed(bounds, q, starts[node], end)
        state[INTERVALS] += min(place + 1, end) - starts[node]
        if place < end:
            state[SIZE] = lists_push(state, LISTS, state[SIZE], (tree.ranks[place], place, end))


@inner
def scored_walk(tree: ScoredTree, q: float, state: Int64s, out: Int64s) -> int:
    """Write the next best ids (RPS 2.2.2); also costs the unstabbed entries of the lists."""
    if state[BEGUN] == 0:
        scored_begin(tree, q, state)
    count = 0
    while count < len(out) and state[SIZE] > 0:
        out[count] = tree.ids[state[LISTS]]
        count += 1
        before, end = state[LISTS + 1], state[LISTS + 2]
        place = next_stabbed(tree.bounds, q, before + 1, end)
        state[INTERVALS] += min(place + 1, end) - before - 1
        if place < end:
            state[LISTS], state[LISTS + 1] = tree.ranks[place], place
            lists_sink(state, LISTS, state[SIZE])
        else:
            state[SIZE] = lists_pop(state, LISTS, state[SIZE])
    return count


@kernel
def scored_walk_many(tree: ScoredTree, qs: Float64s, out: Int64s, counts: Int64s) -> None:
    """Answer each query in its row of `out`."""
    state = np.zeros(STATE, np.int64)
    for row in range(len(qs)):
        state[:LISTS] = 0
        counts[row] = scored_walk(tree, qs[row], state, out[row])


@inner
def endpoint_offer(node: NodeList, q: float, floor: int, out: Int64s, size: int) -> tuple[int, int]:
    """Offer the ranks >= floor of a node up to the first bound below q; return size and place.

    Lows come negated, so that on both sides the first bound below q ends it.
    """
    place = node.first
    while place < node.end and node.bounds[place] >= q:
        if node.ranks[place] >= floor:
            size = heap_offer(out, size, int64(node.ranks[place]))
        place += 1
    return size, place


@inner
def endpoint_collect(tree: EndpointTree, q: float, state: Int64s, out: Int64s) -> int:
    """Keep the smallest ranks, from state[BEGUN] on, of all stabbed intervals."""
    node_of, starts = tree.skeleton.node_of, tree.skeleton.starts
    until = count_until(tree.skeleton.lows, q)
    size = 0
    for height in range(64):
        if (1 << height) >= len(node_of):
            break
        node = path_node(node_of, until, height)
        if node < 0:
            continue
        state[NODES] += 1
        first, end = int64(starts[node]), int64(starts[node + 1])
        # The bit of `until` says on which side of the node's low q lies: to the right, only highs
        # can exclude q; to the left, only lows.
        if until & (1 << height):
            entries = NodeList(tree.highs, tree.high_ranks, first, end)
            size, place = endpoint_offer(entries, q, state[BEGUN], out, size)
        else:
            entries = NodeList(tree.lows, tree.low_ranks, first, end)
            size, place = endpoint_offer(entries, -q, state[BEGUN], out, size)
        state[INTERVALS] += place - first
    return size


@inner
def endpoint_walk(tree: EndpointTree, q: float, state: Int64s, out: Int64s) -> int:
    """Write the next best ids; visits all m(q) stabbed intervals: O(m(q) log k) (RPS 2.2.2)."""
    ids = tree.ids
    size = endpoint_collect(tree, q, state, out)
    heap_sort(out, size)
    # A later call visits everything again, but offers only ranks behind those written.
    state[BEGUN] = out[size - 1] + 1 if size > 0 else len(ids)
    for position in range(size):
        out[position] = ids[out[position]]
    return size


@kernel
def endpoint_walk_many(tree: EndpointTree, qs: Float64s, out: Int64s, counts: Int64s) -> None:
    """Answer each query in its row of `out`."""
    state = np.zeros(STATE, np.int64)
    for row in range(len(qs)):
        state[:LISTS] = 0
        counts[row] = endpoint_walk(tree, qs[row], state, out[row])
