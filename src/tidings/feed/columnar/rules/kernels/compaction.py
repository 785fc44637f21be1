"""Compaction of rules: rows that are reset, and the events and sets that rules refer to."""

from tidings.compiled.array_types import Int32s
from tidings.compiled.jit import kernel
from tidings.feed.columnar.kernels.compaction import copy_set
from tidings.feed.columnar.kernels.layout import FAR
from tidings.feed.columnar.rules.kernels.held_list import empty_list, list_cell
from tidings.feed.columnar.rules.kernels.layout import (
    DEADLINE,
    DIFFERENT,
    EVENT,
    HANDLE,
    HELD,
    RING_CLASS,
    SENT,
    SIZE,
    RuleArrays,
)
from tidings.feed.columnar.rules.kernels.rings import got_slot, ring_cell


@kernel
def release_rules(arrays: RuleArrays, row: int) -> None:
    """Forget everything about a row; its rings are reclaimed by the next compaction."""
    # As a row that was just added: no period has begun, and none of the slabs is left.
    places, ringed = len(arrays.codes.kind), arrays.chain.ringed
    for line in range(row * places, (row + 1) * places):
        empty_list(arrays, line)
        arrays.end[line] = -FAR
    for ring in range(row * ringed, (row + 1) * ringed):
        arrays.rings[ring, :] = 0
        arrays.rings[ring, RING_CLASS] = -1
    arrays.heads[row, SENT], arrays.heads[row, DEADLINE], arrays.paused[row] = 0, FAR, 0


@kernel
def mark_events(arrays: RuleArrays, alive: Int32s) -> None:
    """Mark the event slots that rules still refer to."""
    for line in range(len(arrays.lists)):
        for position in range(arrays.lists[line, HELD]):
            alive[arrays.held.cell[list_cell(arrays, line, position), EVENT]] = 1
    for ring in range(len(arrays.rings)):
        if arrays.codes.kind[ring % arrays.chain.ringed] == DIFFERENT:
            for nth in range(arrays.rings[ring, SIZE]):
                alive[got_slot(arrays, ring_cell(arrays, arrays.got.slabs, ring, nth))] = 1


@kernel
def copy_held_sets(arrays: RuleArrays, old: Int32s, new: Int32s, used: int) -> int:
    """Copy the sets of matched subscriptions of held events; return how much is used."""
    for line in range(len(arrays.lists)):
        for position in range(arrays.lists[line, HELD]):
            cell = list_cell(arrays, line, position)
            handle = arrays.held.cell[cell, HANDLE]
            if handle < -1:  # a set; others are a single subscription, or none
                arrays.held.cell[cell, HANDLE] = ~used
                used = copy_set(old, new, handle, used)
    return used
