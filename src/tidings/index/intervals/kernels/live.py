"""Queries and changes of a live interval index: a base run, and the delta grid of later changes.

    answer = walk of the run, in order      (old entries)
           + entries of the grid            (new entries), merged by key

A run is a SOPT-R-tree as in `sopt_r_simd`, with rows (key, tombstone) in place of ids: a change
writes the version from which on an entry is dead. The grid keeps versions too, so a reader of
version v sees exactly the entries of v.
"""

from typing import Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Float32s, Float64s, Int32s, Int64s
from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined, inner, kernel
from tidings.compiled.simd import lowest_bit, without_lowest
from tidings.index.intervals.kernels.delta_grid import (
    NEVER,
    Grid,
    GridEntry,
    bounds_at,
    grid_add,
    grid_kill,
    grid_offer,
    grid_seed,
    has_room,
)
from tidings.index.intervals.kernels.hash_table import HashTable
from tidings.index.intervals.kernels.merge_by_key import Counts, TwoSources, key_of, merge, precedes
from tidings.index.intervals.kernels.sopt_r_simd import (
    BEGUN,
    BLOCK,
    FAN,
    INTERVALS,
    LEVEL,
    LEVELS,
    PENDING,
    STATE,
    SURE,
    TreeFrame,
    round_query,
    seek_leaf,
)

TOGETHER: Final = 128
"""Queries that are answered together: first all in the run, then all in the grid, so that either
stays in the cache."""

ENDED: Final = 64
"""A level above every tree: the walk has ended."""

KEY, STAMP = range(2)
"""The columns of an entry's notes; see `stamp`."""
MISSING, FULL, IN_RUN, IN_GRID = range(4)
"""Outcomes of a change: the interval does not exist; the grid is full and nothing was done; the
interval was in the run, or in the grid."""


class Run(NamedTuple):
    """A tree of `sopt_r_simd` with rows (key, stamp) in place of ids."""

    blocks: Float32s
    starts: Int64s
    bounds: Float64s
    notes: Int64s
    frame: TreeFrame


class RunEntries(NamedTuple):
    """The entries of a run, as changes need them."""

    bounds: Float64s
    notes: Int64s
    sorted_ids: Int32s
    places: Int32s
    """The place of each sorted id in the run."""


class IntervalChange(NamedTuple):
    """An interval that is added or replaced; a low of NaN keeps the bounds."""

    low: float
    high: float
    score: float
    id: int


class IntervalChanges(NamedTuple):
    """Many of them: rows of lows, highs and scores, and the ids."""

    columns: Float64s
    ids: Int64s


@inlined
def stamp(id: int, died: int) -> int:
    """Return an id and the version of its death as one number, so that both are written at once."""
    return (int64(died) << 32) | id


@inlined
def stamped_id(stamped: int) -> int:
    """Return the id of a stamp."""
    return stamped & 0xFFFFFFFF


@inlined
def run_leaf(
    run: Run, q: float, version: int, state: Int64s, best: TwoSources, counts: Counts
) -> Counts:
    """Take living entries of the current leaf until it is used up or one is too late.

    Stabbed entries arrive in order, so the first that is too late ends the walk.
    """
    bounds, notes = run.bounds, run.notes
    ids, keys, new_ids, new_keys = best.old_ids, best.old_keys, best.new_ids, best.new_keys
    old, new = counts.old, counts.new
    first, mask = state[LEVELS + BLOCK] * FAN, state[LEVELS + PENDING]
    sure = state[LEVELS + SURE]
    while mask != 0 and old < len(ids):
        entry = lowest_bit(mask)
        mask = without_lowest(mask)
        place = first + entry
        state[INTERVALS] += 1
        # The rounded bounds decide alone for nearly all entries; the float64 ones are in another
        # cache line.
        if (sure >> entry) & 1 or bounds[place, 0] <= q <= bounds[place, 1]:
            stamped = notes[place, STAMP]
            # Dead at this version. A single read of the stamp gives the id and the version of its
            # death, so a writer cannot change one between the two.
            if stamped >> 32 <= version:
                continue
            ids[old], keys[old] = stamped_id(stamped), notes[place, KEY]
            # The answer is full: this entry replaces the last new one, or loses to it.
            if old + new == len(ids):
                if precedes(new_keys[new - 1], new_ids[new - 1], keys[old], ids[old]):
                    state[LEVEL] = ENDED
                    break
                new -= 1
            old += 1
    state[LEVELS + PENDING] = mask
    return Counts(old, new)


@inlined
def run_walk(
    run: Run, q: float, version: int, state: Int64s, best: TwoSources, counts: Counts
) -> Counts:
    """Take the next living entries of a run, in order; worse new entries give way."""
    query = round_query(run.frame, q)
    while counts.old < len(best.old_ids) and seek_leaf(run, query, state):  # type: ignore[arg-type]
        counts = run_leaf(run, q, version, state, best, counts)
    return counts


@kernel
def run_next(run: Run, q: float, version: int, state: Int64s, ids: Int64s, keys: Int64s) -> int:
    """Write the next living ids of a run and their keys; return how many."""
    best = TwoSources(ids, keys, ids[:0], keys[:0])
    return run_walk(run, q, version, state, best, Counts(int64(0), int64(0))).old


@kernel
def live_top(run: Run, grid: Grid, version: int, q: float, state: Int64s, out: Int64s) -> int:
    """Answer one query and return the number of ids; `state` counts visits in the run."""
    if len(out) == 0:
        return int64(0)
    room = np.empty((3, len(out)), np.int64)
    best = TwoSources(out, room[0], room[1], room[2])
    # Likely answers of the grid first: with them the walk of the run ends sooner.
    seeded, counts = grid_seed(grid, q, version, best)
    counts = run_walk(run, q, version, state, best, counts)
    return merge(best, grid_offer(grid, seeded, q, version, best, counts))


@kernel
def live_top_many(
    run: Run, grid: Grid, version: int, qs: Float64s, out: Int64s, counts: Int64s
) -> None:
    """Answer each query in its row of `out`, TOGETHER rows at a time."""
    width = out.shape[1]
    state, room = np.zeros(STATE, np.int64), np.empty((TOGETHER, 3, width), np.int64)
    seeds, counted = np.empty(TOGETHER, np.int64), np.empty((TOGETHER, 2), np.int64)
    counts[:] = 0
    if width == 0:
        return
    for start in range(0, len(qs), TOGETHER):
        size = min(TOGETHER, len(qs) - start)
        for row in range(size):
            q, rest = qs[start + row], room[row]
            best = TwoSources(out[start + row], rest[0], rest[1], rest[2])
            seeds[row], before = grid_seed(grid, q, version, best)
            state[BEGUN] = 0
            after = run_walk(run, q, version, state, best, before)
            counted[row, 0], counted[row, 1] = after.old, after.new
        for row in range(size):
            q, rest = qs[start + row], room[row]
            best = TwoSources(out[start + row], rest[0], rest[1], rest[2])
            before = Counts(counted[row, 0], counted[row, 1])
            after = grid_offer(grid, seeds[row], q, version, best, before)
            counts[start + row] = merge(best, after)


@inner
def place_of(entries: RunEntries, id: int) -> int:
    """Return the place of an id in a run, or -1; O(log h) for h missing ids below the last.

    Between 0 and h ids are missing before it, so it is searched for only that far from its own
    position among the sorted ids.
    """
    ids = entries.sorted_ids
    size = int64(len(ids))
    if size == 0:
        return int64(-1)
    # Ids are dense but for removed intervals, so their positions are known up to the gaps.
    missing = int64(ids[size - 1]) - (size - 1)
    below, above = max(int64(-1), min(id - missing, size) - 1), min(size, id + 1)
    while above - below > 1:
        middle = (below + above) >> 1
        if ids[middle] <= id:
            below = middle
        else:
            above = middle
    return int64(entries.places[below]) if below >= 0 and ids[below] == id else int64(-1)


@inner
def run_kill(entries: RunEntries, id: int, version: int) -> int:
    """Write the tombstone of a run's entry, dead from `version` on; return its place, or -1."""
    notes = entries.notes
    place = place_of(entries, id)
    # An entry that has died stays dead at its old version: readers of that version rely on it.
    if place < 0 or notes[place, STAMP] >> 32 != NEVER:
        return int64(-1)
    notes[place, STAMP] = stamp(id, version)
    return place


@inner
def live_change(
    entries: RunEntries, grid: Grid, table: HashTable, change: IntervalChange, version: int
) -> int:
    """Replace an interval's bounds or score: kill the old entry, add the new one to the grid."""
    if not has_room(grid, table):
        return FULL
    # The room was checked first: a kill without its addition would lose the interval.
    outcome, place = IN_RUN, run_kill(entries, change.id, version)
    if place >= 0:
        before = (entries.bounds[place, 0], entries.bounds[place, 1])
    else:
        slot = grid_kill(grid, table, change.id, version)
        if slot < 0:
            return MISSING
        outcome, before = IN_GRID, bounds_at(grid, slot)
    low, high = (change.low, change.high)
    if np.isnan(low):
        low, high = before
    grid_add(grid, table, GridEntry(low, high, key_of(change.score), change.id), version)
    return outcome


@kernel
def live_change_many(
    entries: RunEntries,
    grid: Grid,
    table: HashTable,
    changes: IntervalChanges,
    version: int,
    done: int,
) -> tuple[int, int, int]:
    """Change intervals from position `done` on, until one cannot be changed.

    Returns how many are done, how many of these were in the run, and the last outcome.
    """
    columns, ids, in_run = changes.columns, changes.ids, 0
    outcome = IN_GRID
    while done < len(ids):
        change = IntervalChange(columns[0, done], columns[1, done], columns[2, done], ids[done])
        outcome = live_change(entries, grid, table, change, version)
        if outcome < IN_RUN:
            break
        in_run += outcome == IN_RUN
        done += 1
    return done, in_run, outcome


@inner
def live_add(grid: Grid, table: HashTable, new: IntervalChange, version: int) -> bool:
    """Add an interval; return False, with nothing done, if the grid is full."""
    if not has_room(grid, table):
        return False
    grid_add(grid, table, GridEntry(new.low, new.high, key_of(new.score), new.id), version)
    return True


@kernel
def live_add_many(
    grid: Grid, table: HashTable, new: IntervalChanges, version: int, done: int
) -> int:
    """Add intervals from position `done` on until the grid is full; return how many are done."""
    columns, ids = new.columns, new.ids
    while done < len(ids):
        change = IntervalChange(columns[0, done], columns[1, done], columns[2, done], ids[done])
        if not live_add(grid, table, change, version):
            break
        done += 1
    return done


@inner
def live_kill(entries: RunEntries, grid: Grid, table: HashTable, id: int, version: int) -> int:
    """Write the tombstone of an interval, wherever it is; return the outcome."""
    if run_kill(entries, id, version) >= 0:
        return IN_RUN
    return IN_GRID if grid_kill(grid, table, id, version) >= 0 else MISSING


@kernel
def live_kill_many(
    entries: RunEntries, grid: Grid, table: HashTable, ids: Int64s, version: int, skip_missing: bool
) -> tuple[int, int]:
    """Kill intervals; a missing one ends it unless `skip_missing`.

    Returns how many were processed, and how many of these were in the run.
    """
    in_run = 0
    for done in range(len(ids)):
        outcome = live_kill(entries, grid, table, ids[done], version)
        if outcome == MISSING and not skip_missing:
            return done, in_run
        in_run += outcome == IN_RUN
    return len(ids), in_run
