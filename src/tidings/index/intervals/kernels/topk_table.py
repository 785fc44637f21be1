"""The K best intervals of every elementary cell, listed in advance by a sweep from left to right.

    cells       |  c1  |  c2  |  c3  |  c4  |           elementary cells
    lists       [ 4 7 9 .............. ][ 4 9 12 ]      a new list only where the K best change
    keys        start of c1             start of c4     -> search tree; list i: ids[places[i]:...]

A query is a search among the starts of lists and a copy. In a batch it takes 0.026 us at 100,000
intervals, a fifth of the tree's 0.124 us (bench/results/interval.md).
"""

from typing import Final, NamedTuple

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.ints import int64, uint64
from tidings.compiled.jit import inner, kernel
from tidings.index.intervals.kernels.bitset import Bitset, bitset_add, bitset_discard, bitset_from
from tidings.index.intervals.kernels.btree_search import SearchTree, count_until

CELL, BEGUN, OVER, SIZE, LISTS, RANKS = range(6)
SWEEP: Final = 6
"""The state of a sweep: the next cell, the intervals begun and ended, the size of the current list,
and the lists and ranks written."""

NODES, LEAVES, INTERVALS, PLACE = range(4)
STATE: Final = 4
"""The state of a walk: counters and the next position in the list."""


class SweepCells(NamedTuple):
    """The cells as the sweep takes them; fields as in `ElementaryCells`."""

    starts: Float64s
    first: Int32s
    last: Int32s
    by_low: Int32s
    by_high: Int32s


class SweepLists(NamedTuple):
    """The output of a sweep: where each list starts to hold, its place, and all ranks."""

    holds_from: Float64s
    places: Int64s
    ranks: Int32s


class TopkLists(NamedTuple):
    """The starts of the lists, the place of each list, and all their ids."""

    starts: SearchTree
    places: Int64s
    ids: Int32s


class ListedColumns(NamedTuple):
    """The ids and scores of several answers as columns, and where each answer starts."""

    starts: Int64s
    ids: Int32s
    scores: Float64s


@inner
def best_insert(best: Int64s, size: int, rank: int) -> int:
    """Insert a rank into the ascending list of the K best; return the new size."""
    if size == len(best):
        # Worse than all of the K best; the bitset remembers it for when one of them ends.
        if best[size - 1] < rank:
            return size
        size -= 1
    place = size
    while place > 0 and best[place - 1] > rank:
        best[place] = best[place - 1]
        place -= 1
    best[place] = rank
    return size + 1


@inner
def best_remove(active: Bitset, best: Int64s, size: int, rank: int) -> int:
    """Remove a rank, no longer active, from the K best; the next active rank moves up."""
    place = 0
    while place < size and best[place] < rank:
        place += 1
    if place == size or best[place] != rank:
        return size
    full = size == len(best)
    worst = best[size - 1]
    for position in range(place, size - 1):
        best[position] = best[position + 1]
    if full:
        # Ranks are positions by score, so the next set bit is the next best active interval.
        following = bitset_from(active, worst + 1)
        if following >= 0:
            best[size - 1] = following
            return size
    return size - 1


@inner
def sweep_cell(cells: SweepCells, active: Bitset, best: Int64s, state: Int64s) -> bool:
    """End and begin intervals at the next cell; return whether the K best have changed."""
    first, last, by_low, by_high = cells.first, cells.last, cells.by_low, cells.by_high
    cell, size, changed = state[CELL], state[SIZE], False
    # Ends before beginnings: the list never holds an interval that is over.
    while state[OVER] < len(last) and last[by_high[state[OVER]]] < cell:
        rank = int64(by_high[state[OVER]])
        state[OVER] += 1
        bitset_discard(active, rank)
        # An interval behind the K best ends without a trace.
        changed |= size > 0 and rank <= best[size - 1]
        size = best_remove(active, best, size, rank)
    while state[BEGUN] < len(first) and first[by_low[state[BEGUN]]] == cell:
        rank = int64(by_low[state[BEGUN]])
        state[BEGUN] += 1
        bitset_add(active, rank)
        changed |= size < len(best) or rank < best[size - 1]
        size = best_insert(best, size, rank)
    state[SIZE], state[CELL] = size, cell + 1
    return changed


@kernel
def sweep(
    cells: SweepCells, active: Bitset, best: Int64s, lists: SweepLists, state: Int64s
) -> bool:
    """Write a list for every cell whose K best differ from those before; O(n (K + log n)).

    Returns False when `lists` is full; called again with larger arrays, it resumes.
    """
    holds_from, places, ranks = lists.holds_from, lists.places, lists.ranks
    while state[CELL] <= len(cells.starts):
        # Checked before the cell is swept, so that a resumed sweep has lost nothing.
        if state[LISTS] == len(holds_from) or state[RANKS] + len(best) > len(ranks):
            return False
        if sweep_cell(cells, active, best, state):
            holds_from[state[LISTS]] = cells.starts[state[CELL] - 2]
            for position in range(state[SIZE]):
                ranks[state[RANKS] + position] = best[position]
            state[LISTS] += 1
            state[RANKS] += state[SIZE]
            places[state[LISTS] + 1] = state[RANKS]
    return True


@inner
def table_walk(table: TopkLists, q: float, state: Int64s, out: Int64s) -> int:
    """Write the next ids of the list that holds at q; O(log16 n + k)."""
    places, ids = table.places, table.ids
    row = count_until(table.starts, q)
    start = places[row] + state[PLACE]
    count = min(len(out), places[row + 1] - start)
    for position in range(count):
        out[position] = ids[start + position]
    state[PLACE] += count
    state[NODES], state[LEAVES] = len(table.starts.starts) - 1, 1
    state[INTERVALS] += count
    return count


@inner
def table_copy(table: TopkLists, listed: int, out: Int64s, row: int) -> int:
    """Copy the head of a list into a row; unsigned positions let LLVM vectorise the copy."""
    places, ids = table.places, table.ids
    width = out.shape[1]
    count = min(width, places[listed + 1] - places[listed])
    start = uint64(places[listed])
    for position in range(uint64(count)):
        out[row, position] = ids[start + position]
    return count


@kernel
def table_walk_many(table: TopkLists, qs: Float64s, out: Int64s, counts: Int64s) -> None:
    """Answer each query in its row of `out`.

    All queries are looked up before any list is copied: the misses of one pass overlap.
    """
    for row in range(len(qs)):
        counts[row] = count_until(table.starts, qs[row])
    for row in range(len(qs)):
        counts[row] = table_copy(table, counts[row], out, row)


@kernel
def table_columns(
    table: TopkLists, scores: Float64s, qs: Float64s, k: int, out: ListedColumns
) -> None:
    """Write the k best of each query, one after the other; `scores` has one for each listed id."""
    places = table.places
    for row in range(len(qs)):
        out.starts[row] = count_until(table.starts, qs[row])
    end = uint64(0)
    for row in range(len(qs)):
        listed = out.starts[row]
        first, out.starts[row] = uint64(places[listed]), end
        count = uint64(min(k, places[listed + 1] - places[listed]))
        # A loop each: LLVM vectorises a copy, but not two at once.
        for position in range(count):
            out.ids[end + position] = table.ids[first + position]
        for position in range(count):
            out.scores[end + position] = scores[first + position]
        end += count
    out.starts[len(qs)] = end
