"""Validation of restored ranked windows: the invariants that the other kernels rely on.

lists   best first, each event once, and every event also in the ring if there is one
rings   in order of the axis, each event once
marks   with pruning, at least the number of newer entries before an entry
"""

from typing import NamedTuple

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.jit import inner, kernel


class RestoredRows(NamedTuple):
    """The lengths of the list and the ring of each row."""

    size: Int64s
    held: Int64s


class RestoredEntries(NamedTuple):
    """The entries of all lists, and the cells of all rings, row by row."""

    slot: Int32s
    key: Float64s
    mark: Int32s
    ring: Int32s


class RestoredEvents(NamedTuple):
    """The order of events by slot."""

    us: Int64s
    id_order: Int64s
    axis: Int64s  # the position that rings are sorted by


class ValidationScratch(NamedTuple):
    """The last cell and entry of each event slot, -1 at first; and a Fenwick tree of cells."""

    cell: Int64s
    entry: Int64s
    tree: Int64s


@inner
def count_up_to(tree: Int64s, cell: int) -> int:
    """Return how many cells up to this one are in a Fenwick tree."""
    count, node = 0, cell + 1
    while node > 0:
        count += tree[node]
        node -= node & -node
    return count


@inner
def add_cell(tree: Int64s, cell: int, held: int) -> None:
    """Add a cell to a Fenwick tree over `held` cells."""
    node = cell + 1
    while node <= held:
        tree[node] += 1
        node += node & -node


@inner
def is_ring_valid(ring: Int32s, axis: Int64s, last_cell: Int64s, first: int, stop: int) -> bool:
    """Return whether a ring holds each event once and in order; note the cell of each."""
    for cell in range(first, stop):
        slot = ring[cell]
        if last_cell[slot] >= first or (cell > first and axis[ring[cell - 1]] > axis[slot]):
            return False
        last_cell[slot] = cell
    return True


@inner
def is_list_valid(
    entries: RestoredEntries, events: RestoredEvents, last_entry: Int64s, first: int, stop: int
) -> bool:
    """Return whether a list holds each event once, best first: key, then time, then id."""
    key, us, id_order = entries.key, events.us, events.id_order
    for entry in range(first, stop):
        slot = entries.slot[entry]
        if last_entry[slot] >= first:
            return False
        last_entry[slot] = entry
        if entry > first:
            before = entries.slot[entry - 1]
            if key[entry - 1] < key[entry]:
                return False
            if key[entry - 1] == key[entry] and (
                us[before] < us[slot]
                or (us[before] == us[slot] and id_order[before] >= id_order[slot])
            ):
                return False
    return True


@kernel
def first_invalid_row(
    rows: RestoredRows,
    entries: RestoredEntries,
    events: RestoredEvents,
    scratch: ValidationScratch,
    has_rings: bool,
    prune: bool,
) -> int:
    """Return the first row that breaks an invariant, or -1; O(log n) for each entry.

    With pruning, the mark of an entry counts all newer ones before it; that the oldest entry is
    among the first k follows from it.
    """
    entry, cell = 0, 0
    for row in range(len(rows.size)):
        held = rows.held[row]
        last_entry, last_cell = entry + rows.size[row], cell + (held if has_rings else 0)
        if not is_ring_valid(entries.ring, events.axis, scratch.cell, cell, last_cell):
            return row
        if not is_list_valid(entries, events, scratch.entry, entry, last_entry):
            return row
        if prune:
            scratch.tree[: held + 1] = 0
        for i in range(entry, last_entry):
            # The scratch keeps cells of earlier rows: below 0 is a cell of one of these, or none.
            place = scratch.cell[entries.slot[i]] - cell
            if has_rings and place < 0:
                return row
            if prune:
                # Rings are in order of time: entries in later cells are newer.
                if entries.mark[i] >> 1 < i - entry - count_up_to(scratch.tree, place):
                    return row
                add_cell(scratch.tree, place, held)
        entry, cell = last_entry, last_cell
    return -1
