"""Queries and changes of an index that is served while it changes: a run, and a grid of the new.

A run is a SOPT-R-tree as `wide` has it, but with keys and stamps in place of ids: a change stamps
the version from which on an entry is dead. What came since the run was built is in the grid, which
keeps versions too. A reader of version v therefore sees exactly what was there at v.
"""

from typing import Final

import numpy as np

from tidings.compiled.array_types import Float32s, Float64s, Int32s, Int64s
from tidings.compiled.bits import lowest_bit, without_lowest
from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined, inner, kernel
from tidings.index.intervals.kernels.btree_search import count_until
from tidings.index.intervals.kernels.delta_grid import (
    NEVER,
    Grid,
    Young,
    bounds_at,
    grid_add,
    grid_kill,
    has_room,
)
from tidings.index.intervals.kernels.delta_query import grid_offer, grid_seed
from tidings.index.intervals.kernels.ir_tree import ordered
from tidings.index.intervals.kernels.merge_by_key import Best, Counts, before, merge
from tidings.index.intervals.kernels.sopt_r_simd import (
    BEGUN,
    FAN,
    INTERVALS,
    LEVEL,
    LEVELS,
    STATE,
    rounded,
    wide_seek,
)

Run = tuple[Float32s, Int64s, Float64s, Int64s, Float64s]
"""A tree of `wide`, but with rows (key, stamp) in place of its ids; see `stamp`."""
Listed = tuple[Int32s, Int32s]
"""The ids of a run in ascending order, and their places."""
Old = tuple[Float64s, Int64s, Listed]
"""What a change needs of a run: its bounds, its rows (key, stamp), and its ids in order."""
Change = tuple[float, float, float, int]
"""Low, high, score and id; a low of NaN leaves the bounds as they are."""
Changes = tuple[Float64s, Int64s]
"""The same of many: a row of lows, one of highs, one of scores; and ids."""

TOGETHER: Final = 128
"""So many queries are answered together."""

ENDED: Final = 64
"""In place of a level: above every tree."""

KEY, STAMP = range(2)
MISSING, FULL, OLD, YOUNG = range(4)
"""What came of a change: there is no such interval; there is no room, and nothing was done; it was
in the run; it was in the grid."""


@inlined
def stamp(id: int, died: int) -> int:
    """Give an id and the version from which on it is dead as one number, written at once."""
    return (int64(died) << 32) | id


@inlined
def stamped_id(stamped: int) -> int:
    """Give the id of a stamp."""
    return stamped & 0xFFFFFFFF


@inlined
def run_leaf(run: Run, q: float, version: int, state: Int64s, best: Best, counts: Counts) -> Counts:
    """Take living entries of the current leaf until it is used up or one comes late.

    Stabbed ones come in order: the first that comes late ends the walk.
    """
    exact, notes = run[2], run[3]
    ids, keys, new_ids, new_keys = best
    old, new = counts
    first, mask, sure = state[LEVELS] * FAN, state[LEVELS + 1], state[LEVELS + 2]
    while mask != 0 and old < len(ids):
        entry = lowest_bit(mask)
        mask = without_lowest(mask)
        place = first + entry
        state[INTERVALS] += 1
        if (sure >> entry) & 1 or exact[place, 0] <= q <= exact[place, 1]:
            stamped = notes[place, STAMP]
            if stamped >> 32 <= version:
                continue
            ids[old], keys[old] = stamped_id(stamped), notes[place, KEY]
            if old + new == len(ids):
                if before(new_keys[new - 1], new_ids[new - 1], keys[old], ids[old]):
                    state[LEVEL] = ENDED
                    break
                new -= 1
            old += 1
    state[LEVELS + 1] = mask
    return old, new


@inlined
def run_walk(run: Run, q: float, version: int, state: Int64s, best: Best, counts: Counts) -> Counts:
    """Take the next living entries of a run, in order; new ones that are worse give way."""
    limits = rounded(run[4], q)
    while counts[0] < len(best[0]) and wide_seek(run, limits, state):  # type: ignore[arg-type]
        counts = run_leaf(run, q, version, state, best, counts)
    return counts


@kernel
def run_next(run: Run, q: float, version: int, state: Int64s, ids: Int64s, keys: Int64s) -> int:
    """Write the next living ids of a run and their keys; give how many."""
    best = (ids, keys, ids[:0], keys[:0])
    return run_walk(run, q, version, state, best, (int64(0), int64(0)))[0]


@kernel
def live_top(run: Run, grid: Grid, version: int, q: float, state: Int64s, out: Int64s) -> int:
    """Answer one query; `state` counts what was looked at in the run."""
    if len(out) == 0:
        return int64(0)
    room = np.empty((3, len(out)), np.int64)
    best = (out, room[0], room[1], room[2])
    seeded, counts = grid_seed(grid, q, version, best)
    counts = run_walk(run, q, version, state, best, counts)
    at = (count_until(grid[0], grid[1], q), seeded)
    return merge(best, grid_offer(grid, at, q, version, best, counts))


@kernel
def live_top_many(
    run: Run, grid: Grid, version: int, qs: Float64s, out: Int64s, counts: Int64s
) -> None:
    """Answer each query in its row of `out`: some rows at a time, first in the run."""
    width = out.shape[1]
    state, room = np.zeros(STATE, np.int64), np.empty((TOGETHER, 3, width), np.int64)
    found = np.empty((TOGETHER, 3), np.int64)
    counts[:] = 0
    if width == 0:
        return
    for start in range(0, len(qs), TOGETHER):
        some = min(TOGETHER, len(qs) - start)
        for row in range(some):
            q, rest = qs[start + row], room[row]
            best = (out[start + row], rest[0], rest[1], rest[2])
            found[row, 0], before_walk = grid_seed(grid, q, version, best)
            state[BEGUN] = 0
            found[row, 1], found[row, 2] = run_walk(run, q, version, state, best, before_walk)
        for row in range(some):
            q, rest = qs[start + row], room[row]
            best = (out[start + row], rest[0], rest[1], rest[2])
            at = (count_until(grid[0], grid[1], q), found[row, 0])
            both = (found[row, 1], found[row, 2])
            counts[start + row] = merge(best, grid_offer(grid, at, q, version, best, both))


@inner
def place_listed(listed: Listed, id: int) -> int:
    """Give the place of an id in a run, or -1; O(log h) with h ids missing between 0 and the last.

    So many are missing before it at most, none at least: there it is looked for.
    """
    ids, places = listed
    size = int64(len(ids))
    if size == 0:
        return int64(-1)
    missing = int64(ids[size - 1]) - (size - 1)
    below, above = max(int64(-1), min(id - missing, size) - 1), min(size, id + 1)
    while above - below > 1:
        middle = (below + above) >> 1
        if ids[middle] <= id:
            below = middle
        else:
            above = middle
    return int64(places[below]) if below >= 0 and ids[below] == id else int64(-1)


@inner
def run_kill(old: Old, id: int, version: int) -> int:
    """Stamp an entry of a run as dead from `version` on; give its place, or -1 if none lives."""
    notes = old[1]
    place = place_listed(old[2], id)
    if place < 0 or notes[place, STAMP] >> 32 != NEVER:
        return int64(-1)
    notes[place, STAMP] = stamp(id, version)
    return place


@inner
def live_change(old: Old, grid: Grid, young: Young, change: Change, version: int) -> int:
    """Put an interval with other bounds or another score in place of itself."""
    low, high, score, id = change
    if not has_room(grid, young):
        return FULL
    came, place = OLD, run_kill(old, id, version)
    if place >= 0:
        before = (old[0][place, 0], old[0][place, 1])
    else:
        slot = grid_kill(grid, young, id, version)
        if slot < 0:
            return MISSING
        came, before = YOUNG, bounds_at(grid, slot)
    if np.isnan(low):
        low, high = before
    grid_add(grid, young, (low, high, -ordered(score), id), version)
    return came


@kernel
def live_change_many(
    old: Old, grid: Grid, young: Young, changes: Changes, version: int, done: int
) -> tuple[int, int, int]:
    """Change intervals from the `done`-th on, until one cannot be.

    Gives how many are done, how many of these were in the run, and what came of the last.
    """
    rows, ids, were = changes[0], changes[1], 0
    came = YOUNG
    while done < len(ids):
        change = (rows[0, done], rows[1, done], rows[2, done], ids[done])
        came = live_change(old, grid, young, change, version)
        if came < OLD:
            break
        were += came == OLD
        done += 1
    return done, were, came


@inner
def live_add(grid: Grid, young: Young, new: Change, version: int) -> bool:
    """Add an interval; False, and nothing done, if there is no room."""
    low, high, score, id = new
    if not has_room(grid, young):
        return False
    grid_add(grid, young, (low, high, -ordered(score), id), version)
    return True


@kernel
def live_add_many(grid: Grid, young: Young, new: Changes, version: int, done: int) -> int:
    """Add intervals from the `done`-th on, until all are there or room ends; give how many are."""
    rows, ids = new
    while done < len(ids):
        one = (rows[0, done], rows[1, done], rows[2, done], ids[done])
        if not live_add(grid, young, one, version):
            break
        done += 1
    return done


@inner
def live_kill(old: Old, grid: Grid, young: Young, id: int, version: int) -> int:
    """Stamp an interval as dead from `version` on, wherever it is."""
    if run_kill(old, id, version) >= 0:
        return OLD
    return YOUNG if grid_kill(grid, young, id, version) >= 0 else MISSING


@kernel
def live_kill_many(
    old: Old, grid: Grid, young: Young, ids: Int64s, version: int, missing: bool
) -> tuple[int, int]:
    """Stamp intervals; one that is not there ends it unless `missing` ones are to be passed over.

    Gives how many were looked at, and how many were in the run.
    """
    were = 0
    for done in range(len(ids)):
        came = live_kill(old, grid, young, ids[done], version)
        if came == MISSING and not missing:
            return done, were
        were += came == OLD
    return len(ids), were
