"""The conventional R-tree (RPS 2.1.3): a query visits all stabbed intervals and keeps the best k.

The tree's `ids` begin with the ranks in tree order and end with the ids by rank.
"""

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.compiled.heaps import heap_offer, heap_sort
from tidings.compiled.jit import kernel
from tidings.index.intervals.kernels.rtree import PLACE, STATE, RTree, rtree_walk


@kernel
def plain_walk(tree: RTree, q: float, state: Int64s, out: Int64s) -> int:
    """Write the next best ids; O(b) a node and O(log k) an interval.

    Between calls state[PLACE] is the first rank not yet written; during one, the walk uses it.
    """
    size, count, floor = 0, 1, state[PLACE]
    # The walk knows no scores: it is emptied in batches, and the heap keeps the best.
    batch = np.empty(256, np.int64)
    state[PLACE] = 0
    while count > 0:
        count = rtree_walk(tree, q, state, batch)
        for rank in batch[:count]:
            if rank >= floor:
                size = heap_offer(out, size, rank)
    heap_sort(out, size)
    intervals = tree.starts[1]
    state[PLACE] = out[size - 1] + 1 if size > 0 else intervals
    for position in range(size):
        out[position] = tree.ids[intervals + out[position]]
    return size


@kernel
def plain_walk_many(tree: RTree, qs: Float64s, out: Int64s, counts: Int64s) -> None:
    """Answer each query in its row of `out`."""
    state = np.zeros(STATE, np.int64)
    for row in range(len(qs)):
        state[:] = 0
        counts[row] = plain_walk(tree, qs[row], state, out[row])
