"""The constraint graph of scored intervals and the arrangement that respects it (RPS 3.2).

Intervals come as ranks, best first, each with its first and last cell: the line is cut into cells
wherever an interval begins or ends.
"""

from tidings.compiled.array_types import Int32s, Int64s, UInt32s
from tidings.compiled.jit import inner, kernel
from tidings.index.intervals.kernels.bitset import (
    bitset_add,
    bitset_discard,
    bitset_from,
    bitset_until,
)

Bitset = tuple[UInt32s, Int64s]


@inner
def cover_blocks(blocks: Bitset, owner: Int32s, rank: int, first: int, last: int) -> None:
    """Make the cells first..last one visible block of `rank`; the rest of a cut block stays."""
    words, starts = blocks
    after = bitset_until(words, starts, last + 1)
    if after != last + 1 and last + 1 < len(owner):
        owner[last + 1] = owner[after]
        bitset_add(words, starts, last + 1)
    block = bitset_from(words, starts, first)
    while 0 <= block <= last:
        bitset_discard(words, starts, block)
        block = bitset_from(words, starts, block + 1)
    owner[first] = rank
    bitset_add(words, starts, first)


@kernel
def constraint_edges(
    cells: tuple[Int32s, Int32s], blocks: Bitset, owner: Int32s, edges: Int32s, ends: Int64s
) -> int:
    """Find the edges of G (RPS Algorithm 2): those to `rank` end at ends[rank] in `edges`.

    A visible block begins at each member of `blocks` and belongs to its owner, -1 for nobody.
    An interval that is visible in two blocks gives two edges: at most 3n all the same (Lemma 3.4),
    since each edge takes a block away and each interval adds at most three. O(n log n).
    """
    first, last = cells
    words, starts = blocks
    count = 0
    bitset_add(words, starts, 0)
    for rank in range(len(first)):
        block = bitset_until(words, starts, first[rank])
        while 0 <= block <= last[rank]:
            if owner[block] >= 0:
                edges[count] = owner[block]
                count += 1
            block = bitset_from(words, starts, block + 1)
        cover_blocks(blocks, owner, rank, first[rank], last[rank])
        ends[rank] = count
    return count


@kernel
def turn_edges(edges: Int32s, ends: Int64s, starts: Int64s, targets: Int32s) -> None:
    """Group the edges by where they come from: those of a rank lie from starts[rank] on. O(|E|)."""
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
    graph: tuple[Int64s, Int32s, Int32s], lefts: tuple[Int32s, Int32s], ready: Bitset, order: Int64s
) -> None:
    """Put the ranks in order (RPS Algorithm 1): always the leftmost with no edge coming in.

    `graph` is the edges by source and the number that come in; `lefts` the ranks by where they
    begin, and the place of each in there. O(n log n + |E|).
    """
    starts, targets, coming = graph
    by_left, place = lefts
    words, levels = ready
    for rank in range(len(coming)):
        if coming[rank] == 0:
            bitset_add(words, levels, place[rank])
    for step in range(len(order)):
        leftmost = bitset_from(words, levels, 0)
        bitset_discard(words, levels, leftmost)
        rank = by_left[leftmost]
        order[step] = rank
        for edge in range(starts[rank], starts[rank + 1]):
            target = targets[edge]
            coming[target] -= 1
            if coming[target] == 0:
                bitset_add(words, levels, place[target])
