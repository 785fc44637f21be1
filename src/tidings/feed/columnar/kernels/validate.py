"""What the other kernels of windows rely on, checked where windows are restored."""

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.jit import inner, kernel

Sizes = tuple[Int64s, Int64s]
"""Of each row: how many entries are listed, and how many matches its ring holds."""
Listed = tuple[Int32s, Float64s, Int32s, Int32s]
"""Of each entry, row by row: event slot, key and mark; and the event slots of the rings."""
Order = tuple[Int64s, Int64s, Int64s]
"""Of each event slot: time, order among equal times, and what a ring is ordered by."""
Scratch = tuple[Int64s, Int64s, Int64s]
"""Of each event slot the cell and the entry that it was last seen in; and counts of cells."""


@inner
def count_to(tree: Int64s, place: int) -> int:
    """Return how many cells up to a place are noted in a Fenwick tree."""
    found, at = 0, place + 1
    while at > 0:
        found += tree[at]
        at -= at & -at
    return found


@inner
def note_cell(tree: Int64s, place: int, held: int) -> None:
    """Note a cell in a Fenwick tree over `held` cells."""
    at = place + 1
    while at <= held:
        tree[at] += 1
        at += at & -at


@inner
def ring_sound(ring: Int32s, order: Int64s, cells: Int64s, first: int, last: int) -> bool:
    """Tell whether a ring holds each event once and is in order; note the cell of each."""
    for cell in range(first, last):
        slot = ring[cell]
        if cells[slot] >= first or (cell > first and order[ring[cell - 1]] > order[slot]):
            return False
        cells[slot] = cell
    return True


@inner
def list_sound(listed: Listed, order: Order, entries: Int64s, first: int, last: int) -> bool:
    """Tell whether a list holds each event once, the best first: key, then time, then id."""
    slots, keys, us, tie = listed[0], listed[1], order[0], order[1]
    for entry in range(first, last):
        slot = slots[entry]
        if entries[slot] >= first:
            return False
        entries[slot] = entry
        if entry > first:
            before = slots[entry - 1]
            if keys[entry - 1] < keys[entry]:
                return False
            if keys[entry - 1] == keys[entry] and (
                us[before] < us[slot] or (us[before] == us[slot] and tie[before] >= tie[slot])
            ):
                return False
    return True


@kernel
def unsound_row(
    sizes: Sizes, listed: Listed, order: Order, scratch: Scratch, rings: bool, prune: bool
) -> int:
    """Return the first row that breaks a rule, or -1; O(log n) for each entry.

    A list is in order, and a part of the ring where there is one. Where entries are pruned, the
    mark of each counts all newer ones before it: so the oldest, which leaves the window first, is
    always found among the first k.
    """
    size, held = sizes
    slots, marks, ring = listed[0], listed[2], listed[3]
    cells, entries, tree = scratch
    entry, cell = 0, 0
    for row in range(len(size)):
        last, end = entry + size[row], cell + (held[row] if rings else 0)
        if not ring_sound(ring, order[2], cells, cell, end):
            return row
        if not list_sound(listed, order, entries, entry, last):
            return row
        if prune:
            tree[: held[row] + 1] = 0
        for at in range(entry, last):
            place = cells[slots[at]] - cell
            if rings and place < 0:
                return row
            if prune:
                if marks[at] >> 1 < at - entry - count_to(tree, place):
                    return row
                note_cell(tree, place, held[row])
        entry, cell = last, end
    return -1
