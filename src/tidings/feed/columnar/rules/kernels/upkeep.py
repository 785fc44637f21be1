"""Upkeep of rules: compaction of their pools, and what they still refer to."""

from tidings.compiled.array_types import Int32s, Int64s
from tidings.compiled.jit import kernel
from tidings.feed.columnar.kernels.compaction import copy_set
from tidings.feed.columnar.kernels.layout import FAR
from tidings.feed.columnar.kernels.slabs import release_slab
from tidings.feed.columnar.rules.kernels.held_list import copy_cell, empty_list
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
from tidings.feed.columnar.rules.kernels.rings import got_cell


@kernel
def compact_held(arrays: RuleArrays, order: Int64s) -> None:
    """Move all lists together; `order` are the lines by the start of their slabs."""
    span, count, slabs, target = arrays.span, arrays.counts, arrays.held.slabs, 1
    for line in order:
        size_class = count[line, SLAB_CLASS]
        if size_class >= 0:
            for i in range(count[line, HELD]):
                copy_cell(arrays.held, target + i, span[line, SLAB] + i)
            span[line, SLAB] = target
            target += slabs.capacity[size_class]
    slabs.used[0] = target
    slabs.free[:] = -1


@kernel
def compact_ranks(arrays: RuleArrays, order: Int64s) -> None:
    """Move the rings of ranks together; `order` are the lines by the start of their slabs."""
    span, count, pool, target = arrays.span, arrays.counts, arrays.ranks, 0
    places = len(arrays.codes.kind)
    for line in order:
        size_class = count[line, RING_CLASS]
        if size_class >= 0 and arrays.codes.kind[line % places] != DIFFERENT:
            for i in range(pool.slabs.capacity[size_class]):
                pool.rank[target + i] = pool.rank[span[line, RING] + i]
            span[line, RING] = target
            target += pool.slabs.capacity[size_class]
    pool.slabs.used[0] = target
    pool.slabs.free[:] = -1


@kernel
def compact_got(arrays: RuleArrays, order: Int64s) -> None:
    """Move the rings of got events together; `order` are the lines by the start of their slabs."""
    span, count, pool, target = arrays.span, arrays.counts, arrays.got, 0
    places = len(arrays.codes.kind)
    for line in order:
        size_class = count[line, RING_CLASS]
        if size_class >= 0 and arrays.codes.kind[line % places] == DIFFERENT:
            for i in range(pool.slabs.capacity[size_class]):
                source = span[line, RING] + i
                pool.us[target + i], pool.slot[target + i] = pool.us[source], pool.slot[source]
            span[line, RING] = target
            target += pool.slabs.capacity[size_class]
    pool.slabs.used[0] = target
    pool.slabs.free[:] = -1


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
                alive[arrays.got.slot[got_cell(arrays, line, nth)]] = 1


@kernel
def copy_held_sets(arrays: RuleArrays, old: Int32s, new: Int32s, used: int) -> int:
    """Copy the sets of matched subscriptions of held events; return how much is used."""
    for line in range(len(arrays.counts)):
        start = arrays.span[line, SLAB]
        for cell in range(start, start + arrays.counts[line, HELD]):
            handle = arrays.held.cell[cell, HANDLE]
            if handle < -1:
                arrays.held.cell[cell, HANDLE] = ~used
                used = copy_set(old, new, handle, used)
    return used
