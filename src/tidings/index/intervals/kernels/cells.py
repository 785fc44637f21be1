"""Cuts the line into elementary cells, wherever an interval begins or ends."""

from typing import NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.jit import inner, kernel
from tidings.index.intervals.kernels.bitset import (
    Bitset,
    bitset_add,
    bitset_discard,
    bitset_from,
    bitset_until,
)


class SortedEnds(NamedTuple):
    """Lows and highs by rank, and the ranks sorted by either."""

    low: Float64s
    high: Float64s
    by_low: Int32s
    by_high: Int32s


@kernel
def cut_cells(ends: SortedEnds, starts: Float64s, first: Int32s, last: Int32s) -> int:
    """Merge sorted lows and highs into the starts of the cells; return how many there are.

    Cell c begins at starts[c - 1]; first[rank] and last[rank] are the cells of an interval. O(n).
    """
    low, high, by_low, by_high = ends.low, ends.high, ends.by_low, ends.by_high
    count, begun = 0, 0
    for rank in by_high:
        while begun < len(low) and low[by_low[begun]] <= high[rank]:
            start = low[by_low[begun]]
            if count == 0 or starts[count - 1] != start:
                starts[count] = start
                count += 1
            first[by_low[begun]] = count
            begun += 1
        last[rank] = count
        if high[rank] < np.inf:
            # Cells are half-open: a closed interval ends at the next float after its high. If
            # another one ended there already, the newest cell is the one after this interval.
            end = np.nextafter(high[rank], np.inf)
            if starts[count - 1] == end:
                last[rank] = count - 1
            else:
                starts[count] = end
                count += 1
    return count


# The constraint graph of scored intervals and the order that respects it (RPS 3.2).
#
# Intervals are added by rank, best first. The line seen from below is a row of visible blocks, each
# owned by the last interval added there:
#
#     rank 0           [=============]
#     rank 1      [--------]                       covers the left of 0: edge 0 -> 1
#     visible     1111111111000000000
#
# `blocks` is the bitset of the first cells of blocks, and `owner` the rank that owns each.


class ConstraintGraph(NamedTuple):
    """Edges by source: those of rank r go to targets[starts[r]:starts[r + 1]]."""

    starts: Int64s
    targets: Int32s
    incoming: Int32s
    """The number of edges into each rank."""


@inner
def cover_blocks(blocks: Bitset, owner: Int32s, rank: int, first: int, last: int) -> None:
    """Make the cells first..last one visible block of `rank`; cut blocks keep their rest."""
    if last + 1 < len(owner):
        after = bitset_until(blocks, last + 1)
        if after != last + 1:
            # The block reached beyond the new interval: its rest begins here.
            owner[last + 1] = owner[after]
            bitset_add(blocks, last + 1)
    block = bitset_from(blocks, first)
    while 0 <= block <= last:
        bitset_discard(blocks, block)
        block = bitset_from(blocks, block + 1)
    owner[first] = rank
    bitset_add(blocks, first)


@kernel
def constraint_edges(
    first: Int32s, last: Int32s, blocks: Bitset, owner: Int32s, edges: Int32s, ends: Int64s
) -> int:
    """Write the sources of all edges (RPS Algorithm 2) and return how many there are.

    The edges into `rank` end at ends[rank]. `owner` is -1 where no interval is visible. An
    interval visible in two blocks yields two edges, and still there are at most 3n (Lemma 3.4):
    each edge removes a block, and each interval adds at most three. O(n log n).
    """
    count = 0
    bitset_add(blocks, 0)
    for rank in range(len(first)):
        # The first block may begin before the interval and still be covered in part.
        block = bitset_until(blocks, first[rank])
        while 0 <= block <= last[rank]:
            if owner[block] >= 0:
                edges[count] = owner[block]
                count += 1
            block = bitset_from(blocks, block + 1)
        cover_blocks(blocks, owner, rank, first[rank], last[rank])
        ends[rank] = count
    return count


@kernel
def transpose_edges(edges: Int32s, ends: Int64s, starts: Int64s, targets: Int32s) -> None:
    """Regroup edges from by-target to by-source, with a counting sort; O(|E|).

    `starts` has two spare entries and is shifted by one while it is filled: writing a target
    advances starts[source + 1], which ends as the start of the next source.
    """
    for edge in range(ends[-1]):
        starts[edges[edge] + 2] += 1
    for rank in range(2, len(starts)):
        starts[rank] += starts[rank - 1]
    edge = 0
    for rank in range(len(ends)):
        while edge < ends[rank]:
            source = edges[edge]
            targets[starts[source + 1]] = rank
            starts[source + 1] += 1
            edge += 1


@kernel
def arrange(
    graph: ConstraintGraph, by_low: Int32s, position: Int32s, ready: Bitset, order: Int64s
) -> None:
    """Order the ranks (RPS Algorithm 1): always the leftmost one without an incoming edge.

    `by_low` has the ranks by low, `position` the place of each rank in it, and `ready` is an empty
    set of such places. Consumes `graph.incoming`. O(n log n + |E|).
    """
    starts, targets, incoming = graph.starts, graph.targets, graph.incoming
    for rank in range(len(incoming)):
        if incoming[rank] == 0:
            bitset_add(ready, position[rank])
    for step in range(len(order)):
        leftmost = bitset_from(ready, 0)
        bitset_discard(ready, leftmost)
        rank = by_low[leftmost]
        order[step] = rank
        for edge in range(starts[rank], starts[rank + 1]):
            target = targets[edge]
            incoming[target] -= 1
            if incoming[target] == 0:
                bitset_add(ready, position[target])
