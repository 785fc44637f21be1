"""The scored segment tree (RPS 2.2.1) over elementary cells, without pointers.

                1               node i has the children 2i and 2i + 1;
            2       3           cell c is the leaf cells + c
          4   5   6   7         ranks of node i, best first: ranks[starts[i]:starts[i + 1]]

An interval is stored at the O(log n) highest nodes within it, so every rank on the path from a
leaf to the root is stabbed: a query merges the lists on its path.
"""

from typing import Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.heaps import lists_pop, lists_push, lists_sink
from tidings.compiled.jit import inner, kernel
from tidings.index.intervals.kernels.btree_search import SearchTree, count_until

NODES, LEAVES, INTERVALS, BEGUN, SIZE, LISTS = range(6)
STATE: Final = LISTS + 3 * 64
"""The state of a walk: counters, whether it has begun, and a heap of the lists on its path."""


class SegmentTree(NamedTuple):
    """The starts of the cells; the starts and ranks of the nodes; ids by rank."""

    cells: SearchTree
    starts: Int64s
    ranks: Int32s
    ids: Int32s


@kernel
def segment_count(first: Int32s, last: Int32s, starts: Int64s) -> None:
    """Fill `starts` with the first rank of each node, shifted by one entry; O(n log n)."""
    cells = len(starts) // 2 - 1
    for rank in range(len(first)):
        left, right = first[rank] + cells, last[rank] + cells + 1
        while left < right:
            # A left border that is a right child cannot be covered from above; nor a right one,
            # mirrored.
            if left & 1:
                # Shifted by one more than a usual prefix sum: `segment_fill` moves the starts back
                # as it writes.
                starts[left + 2] += 1
                left += 1
            if right & 1:
                right -= 1
                starts[right + 2] += 1
            left, right = left >> 1, right >> 1
    for node in range(1, len(starts)):
        starts[node] += starts[node - 1]


@kernel
def segment_fill(first: Int32s, last: Int32s, starts: Int64s, ranks: Int32s) -> None:
    """Store each rank at the highest nodes within its interval.

    Ranks ascend, so lists are sorted. Each write advances a shifted start into its final place.
    """
    cells = len(starts) // 2 - 1
    for rank in range(len(first)):
        left, right = first[rank] + cells, last[rank] + cells + 1
        while left < right:
            if left & 1:
                ranks[starts[left + 1]] = rank
                starts[left + 1] += 1
                left += 1
            if right & 1:
                right -= 1
                ranks[starts[right + 1]] = rank
                starts[right + 1] += 1
            left, right = left >> 1, right >> 1


@inner
def segment_begin(tree: SegmentTree, q: float, state: Int64s) -> None:
    """Push the lists on the path from q's cell to the root; all their ranks are stabbed."""
    starts = tree.starts
    node = len(starts) // 2 - 1 + count_until(tree.cells, q)
    state[BEGUN], state[LEAVES] = 1, 1
    while node > 0:
        state[NODES] += 1
        place, end = starts[node], starts[node + 1]
        if place < end:
            state[SIZE] = lists_push(state, LISTS, state[SIZE], (tree.ranks[place], place, end))
        node >>= 1


@inner
def segment_walk(tree: SegmentTree, q: float, state: Int64s, out: Int64s) -> int:
    """Write the next best ids; O(log n) to begin, then O(log log n) each."""
    if state[BEGUN] == 0:
        segment_begin(tree, q, state)
    count = 0
    while count < len(out) and state[SIZE] > 0:
        out[count] = tree.ids[state[LISTS]]
        count += 1
        place = state[LISTS + 1] + 1
        if place < state[LISTS + 2]:
            state[LISTS], state[LISTS + 1] = tree.ranks[place], place
            lists_sink(state, LISTS, state[SIZE])
        else:
            state[SIZE] = lists_pop(state, LISTS, state[SIZE])
    state[INTERVALS] += count
    return count


@kernel
def segment_walk_many(tree: SegmentTree, qs: Float64s, out: Int64s, counts: Int64s) -> None:
    """Answer each query in its row of `out`."""
    state = np.zeros(STATE, np.int64)
    for row in range(len(qs)):
        state[:LISTS] = 0
        counts[row] = segment_walk(tree, qs[row], state, out[row])
