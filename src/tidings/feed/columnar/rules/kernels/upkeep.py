"""Upkeep of rules: compaction of their pools, and what they still refer to."""

from tidings.compiled.array_types import AnyArray, Int32s, Int64s
from tidings.compiled.jit import kernel
from tidings.feed.columnar.kernels.compaction import copy_set
from tidings.feed.columnar.kernels.layout import FAR
from tidings.feed.columnar.kernels.slabs import release_slab
from tidings.feed.columnar.rules.kernels.held_list import empty_list
from tidings.feed.columnar.rules.kernels.layout import (
    DIFFERENT,
    END,
    EVENT,
    HANDLE,
    HELD,
    RING,
    RING_CLASS,
    SIZE,
    SLAB,
    SLAB_CLASS,
    RuleArrays,
)
from tidings.feed.columnar.rules.kernels.rings import ring_cell


@kernel
def move_cells(column: AnyArray, source: Int64s, target: Int64s, length: Int64s) -> None:
    """Move slabs of a pool down, in the order in which they lie: none is overwritten before."""
    for nth in range(len(source)):
        for i in range(length[nth]):
            column[target[nth] + i] = column[source[nth] + i]


@kernel
def release_rules(arrays: RuleArrays, row: int) -> None:
    """Forget everything about a row, and release its slabs."""
    span, count, places = arrays.span, arrays.counts, len(arrays.codes.kind)
    for place in range(places):
        line = row * places + place
        empty_list(arrays, line)
        start, size_class = span[line, RING], count[line, RING_CLASS]
        if arrays.codes.kind[place] == DIFFERENT:
            release_slab(arrays.got.slabs, arrays.got.slot, start, size_class)
        else:
            release_slab(arrays.ranks.slabs, arrays.ranks.rank, start, size_class)
        # As a row that was just added: no period has begun, and none of the slabs is left.
        count[line, :] = 0
        span[line, :] = 0
        count[line, SLAB_CLASS] = count[line, RING_CLASS] = -1
        span[line, 0] = span[line, END] = -FAR
    arrays.sent[row], arrays.deadline[row], arrays.paused[row] = 0, FAR, 0


@kernel
def mark_events(arrays: RuleArrays, alive: Int32s) -> None:
    """Mark the event slots that rules still refer to."""
    places = len(arrays.codes.kind)
    for line in range(len(arrays.counts)):
        start = arrays.span[line, SLAB]
        for cell in range(start, start + arrays.counts[line, HELD]):
            alive[arrays.held.cell[cell, EVENT]] = 1
        if arrays.codes.kind[line % places] == DIFFERENT:
            for nth in range(arrays.counts[line, SIZE]):
                alive[arrays.got.slot[ring_cell(arrays, arrays.got.slabs, line, nth)]] = 1


@kernel
def copy_held_sets(arrays: RuleArrays, old: Int32s, new: Int32s, used: int) -> int:
    """Copy the sets of matched subscriptions of held events; return how much is used."""
    for line in range(len(arrays.counts)):
        start = arrays.span[line, SLAB]
        for cell in range(start, start + arrays.counts[line, HELD]):
            handle = arrays.held.cell[cell, HANDLE]
            if handle < -1:  # a set; others are a single subscription, or none
                arrays.held.cell[cell, HANDLE] = ~used
                used = copy_set(old, new, handle, used)
    return used
