"""The K best of every cell, listed once and for all: a sweep from left to right."""

from typing import Final

from tidings.compiled.array_types import Float64s, Int32s, Int64s, UInt32s
from tidings.compiled.ints import int64, uint64
from tidings.compiled.jit import inner, kernel
from tidings.index.intervals.kernels.bitset import bitset_add, bitset_discard, bitset_from
from tidings.index.intervals.kernels.btree_search import count_until

Bitset = tuple[UInt32s, Int64s]
Cut = tuple[Float64s, Int32s, Int32s, Int32s, Int32s]
"""The cells: starts, first and last by rank, ranks by low and by high."""
Lists = tuple[Float64s, Int64s, Int32s]
"""Where a list begins to hold, where it lies, and all their ranks."""
Table = tuple[Float64s, Int64s, Int64s, Int32s]
"""Keys and levels of where lists begin to hold; where each lies; all their ids."""

CELL, BEGUN, OVER, SIZE, LISTS, RANKS = range(6)
SWEEP: Final = 6
"""The state of a sweep: next cell, intervals begun and over, size of the list, and how many lists
and ranks are written."""

NODES, LEAVES, INTERVALS, PLACE = range(4)
STATE: Final = 4
"""The state of a walk: counters and the next place in the list."""


@inner
def best_insert(best: Int64s, size: int, rank: int) -> int:
    """Put a rank into the ascending list of the best; the worst gives way. Give the new size."""
    if size == len(best):
        if best[size - 1] < rank:
            return size
        size -= 1
    at = size
    while at > 0 and best[at - 1] > rank:
        best[at] = best[at - 1]
        at -= 1
    best[at] = rank
    return size + 1


@inner
def best_remove(active: Bitset, best: Int64s, size: int, rank: int) -> int:
    """Take a rank, no longer active, out of the best; the next active one moves up."""
    at = 0
    while at < size and best[at] < rank:
        at += 1
    if at == size or best[at] != rank:
        return size
    full = size == len(best)
    worst = best[size - 1]
    for each in range(at, size - 1):
        best[each] = best[each + 1]
    if full:
        following = bitset_from(active[0], active[1], worst + 1)
        if following >= 0:
            best[size - 1] = following
            return size
    return size - 1


@inner
def sweep_cell(cut: Cut, active: Bitset, best: Int64s, state: Int64s) -> bool:
    """Let intervals end and begin at the next cell; say whether the best have changed."""
    _, first, last, by_low, by_high = cut
    words, levels = active
    cell, size, changed = state[CELL], state[SIZE], False
    while state[OVER] < len(last) and last[by_high[state[OVER]]] < cell:
        rank = int64(by_high[state[OVER]])
        state[OVER] += 1
        bitset_discard(words, levels, rank)
        changed |= size > 0 and rank <= best[size - 1]
        size = best_remove(active, best, size, rank)
    while state[BEGUN] < len(first) and first[by_low[state[BEGUN]]] == cell:
        rank = int64(by_low[state[BEGUN]])
        state[BEGUN] += 1
        bitset_add(words, levels, rank)
        changed |= size < len(best) or rank < best[size - 1]
        size = best_insert(best, size, rank)
    state[SIZE], state[CELL] = size, cell + 1
    return changed


@kernel
def sweep(cut: Cut, active: Bitset, best: Int64s, lists: Lists, state: Int64s) -> bool:
    """Write a list for every cell whose best differ from those before; O(n (K + log n)).

    Gives False where the lists have no room left, and goes on from there when called again.
    """
    starts = cut[0]
    holds_from, places, ranks = lists
    while state[CELL] <= len(starts):
        if state[LISTS] == len(holds_from) or state[RANKS] + len(best) > len(ranks):
            return False
        if sweep_cell(cut, active, best, state):
            holds_from[state[LISTS]] = starts[state[CELL] - 2]
            for each in range(state[SIZE]):
                ranks[state[RANKS] + each] = best[each]
            state[LISTS] += 1
            state[RANKS] += state[SIZE]
            places[state[LISTS] + 1] = state[RANKS]
    return True


@inner
def table_walk(table: Table, q: float, state: Int64s, out: Int64s) -> int:
    """Write the next ids of q's list; O(log16 n + k)."""
    keys, levels, places, ids = table
    cell = count_until(keys, levels, q)
    start = places[cell] + state[PLACE]
    count = min(len(out), places[cell + 1] - start)
    for each in range(count):
        out[each] = ids[start + each]
    state[PLACE] += count
    state[NODES], state[LEAVES] = len(levels) - 1, 1
    state[INTERVALS] += count
    return count


@inner
def table_copy(table: Table, cell: int, out: Int64s, row: int) -> int:
    """Copy the beginning of a list into a row; unsigned places let it be copied in vectors."""
    places, ids = table[2], table[3]
    width = out.shape[1]
    count = min(width, places[cell + 1] - places[cell])
    start = uint64(places[cell])
    for each in range(uint64(count)):
        out[row, each] = ids[start + each]
    return count


@kernel
def table_walk_many(table: Table, qs: Float64s, out: Int64s, counts: Int64s) -> None:
    """Answer each query in its row of `out`, from the start: all are looked up, then all copied."""
    keys, levels = table[0], table[1]
    for row in range(len(qs)):
        counts[row] = count_until(keys, levels, qs[row])
    for row in range(len(qs)):
        counts[row] = table_copy(table, counts[row], out, row)
