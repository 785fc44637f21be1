"""A live interval index: it changes while it answers, and merges its delta in the background."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from threading import Lock
from typing import Any, ClassVar, Final, NamedTuple, Self

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.compiled.arrays import total_bytes
from tidings.compiled.jit import TypedKernel
from tidings.errors import TidingsError
from tidings.index import arguments
from tidings.index.background import BackgroundMerge
from tidings.index.intervals.kernels.delta_grid import Grid
from tidings.index.intervals.kernels.hash_table import HashTable
from tidings.index.intervals.kernels.live import (
    FULL,
    IN_RUN,
    KEY,
    MISSING,
    STAMP,
    IntervalChange,
    IntervalChanges,
    Run,
    live_add,
    live_add_many,
    live_change,
    live_change_many,
    live_kill,
    live_kill_many,
    live_top,
    live_top_many,
    run_next,
)
from tidings.index.intervals.kernels.rtree import STATE as RANGE_STATE
from tidings.index.intervals.kernels.rtree import fill_rest, window_walk
from tidings.index.intervals.kernels.sopt_r_simd import FAN, STATE
from tidings.index.intervals.live.base_run import BaseRun, KeyedIntervals, build_run, without_dead
from tidings.index.intervals.live.delta import (
    NextVersion,
    entries_within,
    living_in,
    next_version,
    with_room,
)
from tidings.index.intervals.protocol import (
    IntervalAnswers,
    RankedIntervals,
    checked_bounds,
    checked_columns,
    checked_score,
    padded_rows,
    score_keys,
)
from tidings.index.intervals.ranges import QueryBounds, RangeAnswers

# Queries on one snapshot of a live interval index.

FIRST_BATCH: Final = 64
"""The ids that an iterator fetches first; each batch doubles."""

SMALL_K: Final = 512
"""Up to this k, entries of the grid are merged as they are found; beyond, they are sorted first."""

TOP, TOP_MANY = TypedKernel(live_top), TypedKernel(live_top_many)

Fetch = Callable[[int], tuple[Int64s, Int64s, bool]]
"""Returns ids and keys of the run's next entries, about as many as asked for, and whether these
are the last."""


class IntervalSnapshot(NamedTuple):
    """One immutable version of the index, valid for as long as a reader holds it."""

    base: BaseRun
    run: Run
    """The run of the base, or a copy that skips entries that were dead when it was made."""
    grid: Grid
    version: int

    def top(self, q: float, k: int) -> tuple[Int64s, Int64s]:
        """Return the k best, and the state of the walk over the run."""
        state = np.zeros(STATE, np.int64)
        if k > SMALL_K:
            return np.array(list(islice(self._stabbed(q, state), k)), np.int64), state
        out = np.empty(k, np.int64)
        count = TOP(self.run, self.grid, self.version, q, state, out)
        return out[:count], state

    def top_many(self, qs: Float64s, k: int) -> IntervalAnswers:
        if k > SMALL_K:
            return padded_rows([self.top(float(q), k)[0] for q in qs], k)
        out, counts = np.empty((len(qs), k), np.int64), np.empty(len(qs), np.int64)
        TOP_MANY(self.run, self.grid, self.version, qs, out, counts)
        fill_rest(out, counts)
        return IntervalAnswers(out, counts)

    def iterate(self, q: float) -> Iterator[int]:
        """Yield all stabbed ids in order; the first batch as `top`, which sorts nothing."""
        first = self.top(q, FIRST_BATCH)[0].tolist()
        yield from first
        if len(first) == FIRST_BATCH:
            yield from islice(self._stabbed(q, np.zeros(STATE, np.int64)), FIRST_BATCH, None)

    def within(self, window: QueryBounds) -> Iterator[int]:
        """Yield all ids within a window, from the scored R-tree of the run and the grid."""
        tree, walked = self.base.range_tree, np.zeros(RANGE_STATE, np.int64)
        notes, ids = self.run.notes, self.base.ids

        def fetch(count: int) -> tuple[Int64s, Int64s, bool]:
            places = np.empty(count, np.int64)
            length = window_walk(tree, *window, walked, places)
            places = places[:length]
            living = places[notes[places, STAMP] >> 32 > self.version]
            return ids[living], notes[living, KEY], length < count

        return merged(fetch, *entries_within(self.grid, window, self.version))

    def _stabbed(self, q: float, state: Int64s) -> Iterator[int]:
        def fetch(count: int) -> tuple[Int64s, Int64s, bool]:
            ids, keys = np.empty((2, count), np.int64)
            length = run_next(self.run, q, self.version, state, ids, keys)
            return ids[:length], keys[:length], length < count

        return merged(fetch, *entries_within(self.grid, QueryBounds(q, q), self.version))


def merged(fetch: Fetch, new_ids: Int64s, new_keys: Int64s) -> Iterator[int]:
    """Yield the ids of the run and the new ones, both in order, in one order."""
    start, count, is_last = 0, FIRST_BATCH, False
    while not is_last:
        ids, keys, is_last = fetch(count)
        end = len(new_ids)
        if not is_last:
            end = start + count_before_last(ids, keys, new_ids[start:], new_keys[start:])
        if start < end:
            ids = np.append(ids, new_ids[start:end])
            keys = np.append(keys, new_keys[start:end])
            ids = ids[np.lexsort((ids, keys))]
        yield from ids.tolist()
        start, count = end, 2 * count


def count_before_last(ids: Int64s, keys: Int64s, new_ids: Int64s, new_keys: Int64s) -> int:
    """Return how many new entries come before the last entry of a batch; 0 for an empty one."""
    if not len(ids):
        return 0
    first, end = np.searchsorted(new_keys, keys[-1]), np.searchsorted(new_keys, keys[-1], "right")
    return int(first + np.searchsorted(new_ids[first:end], ids[-1]))


LEAST: Final = 4096
"""Fewer changes than this never start a merge."""

SHARE: Final = 32
"""A merge starts once one interval in 32 has changed; the dead are skipped as often."""

AHEAD: Final = 65_536
"""A writer with this many changes more than there are intervals waits for the merge."""

ADD, KILL, CHANGE = TypedKernel(live_add), TypedKernel(live_kill), TypedKernel(live_change)

KEEP: Final = np.nan
"""As a bound of a change: the bound stays as it is."""


class LiveIntervals:
    """Intervals that change while readers on other threads are answered.

    The base is a SOPT-R-tree with 64 entries a node, whose dead entries have tombstones and are
    skipped when there are many; later changes are in a grid, the delta. After more than `bound`
    changes, a background thread builds the next base and swaps it in. Readers hold a snapshot,
    never wait, and see all of a change or nothing of it. Writers wait for each other, and for the
    merge once there are more changes than intervals plus 65,536.
    """

    name: ClassVar[str] = "live"
    _snapshot: IntervalSnapshot
    _table: HashTable
    _skip_above: int  # with more dead than this, the run is copied without them

    def __init__(self, intervals: RankedIntervals, bound: int | None = None) -> None:
        self._bound = None if bound is None else arguments.count("bound", bound)
        self._merge = BackgroundMerge()
        self._lock = self._merge.lock
        self._next_id = self._count = len(intervals)
        keys = score_keys(intervals.score)
        first = KeyedIntervals(intervals.low, intervals.high, keys, intervals.ids)
        self._serve(next_version(build_run(first)))
        self._killed: list[int] = []
        self._last_walk = np.zeros(STATE, np.int64)

    def __len__(self) -> int:
        return self._count

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays of the current snapshot."""
        return self._snapshot.base.nbytes + total_bytes(self._snapshot.grid, self._table)

    @property
    def ranges(self) -> RangeAnswers:
        """Answers to events that are ranges, from the current snapshot."""
        return RangeAnswers(self._snapshot.within)

    def top(self, q: float, k: int) -> Int64s:
        """Return the ids of the k best intervals that `q` stabs; fewer if fewer exist."""
        point, most = arguments.number("the query", q), arguments.count("k", k)
        ids, self._last_walk = self._snapshot.top(point, min(most, self._next_id))
        return ids

    def top_many(self, qs: Float64s, k: int) -> IntervalAnswers:
        """Return the ids of the k best of each query, all from one snapshot."""
        points = arguments.points("queries", qs)
        return self._snapshot.top_many(points, arguments.result_width(k, len(points)))

    def iterate(self, q: float) -> Iterator[int]:
        """Yield all ids that `q` stabs in the current snapshot, in order."""
        return self._snapshot.iterate(arguments.number("the query", q))

    def counters(self) -> dict[str, int]:
        """Return counts of the visits of the last `top` to the run, and the number of rebuilds."""
        nodes, leaves, intervals = self._last_walk[:3].tolist()
        visits = {"nodes": nodes, "leaves": leaves, "intervals": intervals}
        return {**visits, "rebuilds": self._merge.completed}

    def describe(self) -> str:
        """Return the sizes of the base and the delta, and whether a rebuild is running."""
        base = self._snapshot.base
        new = self._count - len(base) + base.dead
        running = "a rebuild is under way" if self._merge.running else "no rebuild is under way"
        return (
            f"live: {self._count:,} intervals; run {len(base):,}, of these dead {base.dead:,}; "
            f"new in the grid {new:,}; {running}, {self._merge.completed:,} done."
        )

    def insert(self, low: float, high: float, score: float) -> int:
        """Insert an interval and return its id."""
        bounds = checked_bounds(f"interval {self._next_id}", low, high)
        checked = checked_score(score)
        with self._paced():
            self._merge.check_writable()
            grid, version = self._snapshot.grid, self._snapshot.version
            new = IntervalChange(*bounds, checked, self._next_id)
            while not ADD(grid, self._table, new, version + 1):
                grid = self._widen(grid)
            self._next_id, self._count = self._next_id + 1, self._count + 1
            self._publish(grid, 1)
        return new.id

    def insert_many(self, low: Any, high: Any, score: Any) -> Int64s:
        """Insert intervals in one change and return their ids; all are refused if one is wrong."""
        columns = np.stack(checked_columns(low, high, score))
        with self._paced():
            self._merge.check_writable()
            ids = np.arange(self._next_id, self._next_id + columns.shape[1])
            grid, version = self._snapshot.grid, self._snapshot.version
            done, new = 0, IntervalChanges(columns, ids)
            while (done := live_add_many(grid, self._table, new, version + 1, done)) < len(ids):
                grid = self._widen(grid)
            self._next_id, self._count = self._next_id + len(ids), self._count + len(ids)
            self._publish(grid, len(ids))
        return ids

    def delete(self, id: int) -> None:
        """Delete an interval by id."""
        target = arguments.checked_id("interval", id)
        with self._paced():
            self._merge.check_writable()
            base, _, grid, version = self._snapshot
            outcome = KILL(base.entries, grid, self._table, target, version + 1)
            if outcome == MISSING:
                raise TidingsError(f"there is no interval {target}")
            self._count -= 1
            self._publish(grid, 1, (target,), outcome == IN_RUN)

    def delete_many(self, ids: Any) -> None:
        """Delete intervals by id in one change, which a missing one ends."""
        targets = arguments.checked_ids("interval", ids)
        with self._paced():
            self._merge.check_writable()
            base, _, grid, version = self._snapshot
            done, dead = live_kill_many(
                base.entries, grid, self._table, targets, version + 1, False
            )
            self._count -= done
            self._publish(grid, done, targets[:done].tolist(), dead)
        if done < len(targets):
            raise TidingsError(f"there is no interval {targets[done]}")

    def replace(self, id: int, low: float, high: float, score: float) -> None:
        """Change the bounds and the score of an interval."""
        target = arguments.checked_id("interval", id)
        bounds = checked_bounds(f"interval {target}", low, high)
        self._change(IntervalChange(*bounds, checked_score(score), target))

    def replace_many(self, ids: Any, low: Any, high: Any, score: Any) -> None:
        """Change the bounds and scores of distinct intervals in one change.

        All are refused if a value is wrong; a missing interval ends the change.
        """
        self._change_many(ids, np.stack(checked_columns(low, high, score)))

    def rescore(self, id: int, score: float) -> None:
        """Change the score of an interval."""
        target = arguments.checked_id("interval", id)
        self._change(IntervalChange(KEEP, KEEP, checked_score(score), target))

    def rescore_many(self, ids: Any, scores: Any) -> None:
        """Change the scores of distinct intervals in one change, which a missing one ends."""
        new = arguments.points("scores", scores)
        if (wrong := ~((new >= 0) & (new < np.inf))).any():
            raise TidingsError(f"score {new[wrong][0]} is not a finite number >= 0")
        self._change_many(ids, np.stack([np.full(len(new), KEEP), np.full(len(new), KEEP), new]))

    def rebuild(self) -> None:
        """Start a rebuild in the background unless one is running."""
        with self._lock:
            self._merge.check_writable()
            self._start_merge()

    def settle(self) -> None:
        """Wait until no rebuild is running."""
        self._merge.wait()

    def close(self) -> None:
        """Wait for a running rebuild and refuse further changes; queries are still answered."""
        self._merge.close()

    def _change(self, change: IntervalChange) -> None:
        with self._paced():
            self._merge.check_writable()
            base, _, grid, version = self._snapshot
            while True:
                outcome = CHANGE(base.entries, grid, self._table, change, version + 1)
                if outcome != FULL:
                    break
                grid = self._widen(grid)
            if outcome == MISSING:
                raise TidingsError(f"there is no interval {change.id}")
            self._publish(grid, 1, (change.id,), outcome == IN_RUN)

    def _change_many(self, ids: Any, columns: Float64s) -> None:
        targets = arguments.distinct_ids("interval", ids)
        if len(targets) != columns.shape[1]:
            raise TidingsError(f"{len(targets)} ids do not fit {columns.shape[1]} changes")
        with self._paced():
            self._merge.check_writable()
            base, _, grid, version = self._snapshot
            done, dead, outcome, changes = 0, 0, FULL, IntervalChanges(columns, targets)
            while outcome == FULL:
                done, in_run, outcome = live_change_many(
                    base.entries, grid, self._table, changes, version + 1, done
                )
                dead += in_run
                grid = self._widen(grid)
            self._publish(grid, done, targets[:done].tolist(), dead)
        if done < len(targets):
            raise TidingsError(f"there is no interval {targets[done]}")

    def _paced(self) -> Lock:
        """Wait for the merge if changes outrun it, and return the lock to write under."""
        if self._changes > self._most_changes:
            self.settle()
        return self._lock

    def _widen(self, grid: Grid) -> Grid:
        """Enlarge the grid or the id table, whichever is nearly full."""
        grid, self._table = with_room(grid, self._table)
        return grid

    def _publish(self, grid: Grid, changes: int, killed: Iterable[int] = (), dead: int = 0) -> None:
        """Publish the changes to readers, and start a merge if one is due.

        `dead` of the killed ids were in the run. A running merge has not seen their deaths, so
        they are recorded for the replay.
        """
        base, run, _, version = self._snapshot
        base.dead += dead
        if base.dead > self._skip_above:
            run = base.run = without_dead(run, version + 1)
            self._skip_above = base.dead + self._skip_step
        if self._merge.running:
            self._killed.extend(killed)
        self._snapshot = IntervalSnapshot(base, run, grid, version + 1)
        self._changes += changes
        if self._changes > self._limit:
            self._start_merge()

    def _start_merge(self) -> None:
        """Start a merge of the current snapshot unless one is running."""
        if not self._merge.running:
            self._killed = []
            frozen = self._snapshot
            self._merge.start(lambda: self._run_merge(frozen))

    def _run_merge(self, frozen: IntervalSnapshot) -> None:
        """Build the next base, replay the changes made in the meantime, and serve it.

        The replay runs twice: first without the lock, where most of the changes are, then with it
        for the few that were made during the first.
        """
        built = next_version(self._build(frozen))
        with self._lock:
            interim, killed, self._killed = self._snapshot, self._killed, []
        built.replay(killed, living_in(interim.grid, interim.version, since=frozen.version))
        with self._lock:
            last = self._snapshot
            built.replay(self._killed, living_in(last.grid, last.version, since=interim.version))
            self._serve(built)
            self._killed = []
            self._merge.completed += 1
            self._merge.finish()

    def _build(self, frozen: IntervalSnapshot) -> BaseRun:
        """Build a base of all intervals that live in a snapshot."""
        old, new = frozen.base.living(frozen.version), living_in(frozen.grid, frozen.version)
        columns = zip(vars(old).values(), vars(new).values(), strict=True)
        return build_run(KeyedIntervals(*(np.concatenate(pair) for pair in columns)))

    def _serve(self, built: NextVersion) -> None:
        """Publish a base with its delta; all its stamps are of version 0, so versions restart."""
        size = len(built.base)
        self._table, self._changes = built.table, built.changes
        self._limit = max(LEAST, size // SHARE) if self._bound is None else self._bound
        self._skip_above = self._skip_step = max(FAN, size // SHARE)
        self._most_changes = self._limit + size + AHEAD
        self._snapshot = IntervalSnapshot(built.base, built.base.run, built.grid, 0)
