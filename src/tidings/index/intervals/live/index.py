"""Ours: an index that changes while it is served; rebuilds happen in the background."""

from collections.abc import Iterable, Iterator
from functools import partial
from threading import Lock
from typing import Any, ClassVar, Final, Self

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.errors import TidingsError
from tidings.index import arguments
from tidings.index.background import Rebuild
from tidings.index.intervals.kernels.delta_grid import Grid, Young
from tidings.index.intervals.kernels.live import (
    FULL,
    MISSING,
    OLD,
    live_add,
    live_add_many,
    live_change,
    live_change_many,
    live_kill,
    live_kill_many,
)
from tidings.index.intervals.kernels.sopt_r_simd import FAN, STATE
from tidings.index.intervals.live.base_run import Built, Entries, built, without_dead
from tidings.index.intervals.live.bulk_changes import KEPT, kept_bounds, one_each
from tidings.index.intervals.live.catch_up import Fresh, fresh_with, rebuilt
from tidings.index.intervals.live.delta_grid import with_room
from tidings.index.intervals.live.reader import State, iterate_over, top_many_of, top_of, within
from tidings.index.intervals.papers.ir_tree import checked_bounds, checked_score, keys_of
from tidings.index.intervals.protocol import Ranked, checked_columns
from tidings.index.intervals.ranges import Ranges

LEAST: Final = 4096
"""Fewer changes than this are never a reason to build anew."""

SHARE: Final = 32
"""Once one of so many has changed, all is built anew; the dead are left out as often."""

AHEAD: Final = 65_536
"""With so many changes more than there are intervals, a writer waits for the rebuild."""


class Live:
    """Intervals that come and go while readers on other threads are answered.

    What there was at the last rebuild is a SOPT-R-tree of 64 entries a node; its dead are stamped,
    and left out when they are many. What came since is in a grid. Once more than `bound` has
    changed, one thread builds anew and swaps. Readers work on the state that they took, never wait,
    and see all of a change or nothing of it. Changes wait for each other, and for the rebuild once
    more has changed since the last one than there are intervals, and 65,536.
    """

    name: ClassVar[str] = "live"
    _state: State
    _young: Young
    _bare: int  # more dead than these are left out of the run

    def __init__(self, intervals: Ranked, bound: int | None = None) -> None:
        self._bound = None if bound is None else arguments.count("bound", bound)
        self._rebuild = Rebuild()
        self._lock = self._rebuild.lock
        self._given = self._count = len(intervals)
        keys = keys_of(intervals.score)
        main = built(Entries(intervals.low, intervals.high, keys, intervals.ids))
        self._serve(fresh_with(main))
        self._killed: list[int] = []
        self._looked = np.zeros(STATE, np.int64)

    def __len__(self) -> int:
        return self._count

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays of the present state."""
        state, young = self._state, self._young
        return state.main.nbytes + sum(each.nbytes for each in (*state.grid, *young))

    @property
    def ranges(self) -> Ranges:
        """What it answers to events that are ranges, in the state at this moment."""
        return Ranges(partial(within, self._state))

    def top(self, q: float, k: int) -> Int64s:
        """Give the ids of the k best intervals that `q` stabs; fewer, if there are fewer."""
        found, self._looked = top_of(
            self._state, arguments.number("the query", q), min(arguments.count("k", k), self._given)
        )
        return found

    def top_many(self, qs: Float64s, k: int) -> tuple[Int64s, Int64s]:
        """Give a row of ids for each query, filled up with -1, and how many each has.

        All rows are of one state.
        """
        points = arguments.points("queries", qs)
        return top_many_of(self._state, points, arguments.width(k, len(points)))

    def iterate(self, q: float) -> Iterator[int]:
        """Give all stabbed ids in order, of the state at this moment."""
        return iterate_over(self._state, arguments.number("the query", q))

    def counters(self) -> dict[str, int]:
        """Give what the last `top` looked at in the run, and how many rebuilds there were."""
        nodes, leaves, intervals = self._looked[:3].tolist()
        counts = {"nodes": nodes, "leaves": leaves, "intervals": intervals}
        return {**counts, "rebuilds": self._rebuild.count}

    def describe(self) -> str:
        """Tell what the present state is made of."""
        main = self._state.main
        young = self._count - len(main) + main.dead
        running = "a rebuild is under way" if self._rebuild.running else "no rebuild is under way"
        return (
            f"live: {self._count:,} intervals; run {len(main):,}, of these dead {main.dead:,}; "
            f"new in the grid {young:,}; {running}, {self._rebuild.count:,} done."
        )

    def insert(self, low: float, high: float, score: float) -> int:
        """Insert an interval; give its id."""
        new = (*checked_bounds(f"interval {self._given}", low, high), checked_score(score))
        with self._paced():
            self._rebuild.writable()
            _, _, grid, version = self._state
            entry = (*new, self._given)
            while not live_add(grid, self._young, entry, version + 1):
                grid = self._widened(grid)
            self._given, self._count = self._given + 1, self._count + 1
            self._publish(grid, 1)
        return entry[3]

    def insert_many(self, low: Any, high: Any, score: Any) -> Int64s:
        """Insert intervals, seen all at once; give their ids. All are refused if one is wrong."""
        rows = np.stack(checked_columns(low, high, score))
        with self._paced():
            self._rebuild.writable()
            ids = np.arange(self._given, self._given + rows.shape[1])
            _, _, grid, version = self._state
            done, new = 0, (rows, ids)
            while (done := live_add_many(grid, self._young, new, version + 1, done)) < len(ids):
                grid = self._widened(grid)
            self._given, self._count = self._given + len(ids), self._count + len(ids)
            self._publish(grid, len(ids))
        return ids

    def delete(self, id: int) -> None:
        """Delete an interval by id."""
        name = arguments.id_of("interval", id)
        with self._paced():
            self._rebuild.writable()
            main, _, grid, version = self._state
            came = live_kill(main.old, grid, self._young, name, version + 1)
            if came == MISSING:
                raise TidingsError(f"there is no interval {name}")
            self._count -= 1
            self._publish(grid, 1, (name,), came == OLD)

    def delete_many(self, ids: Any) -> None:
        """Delete intervals by id, until one is not there; seen all at once."""
        wanted = arguments.ids_of("interval", ids)
        with self._paced():
            self._rebuild.writable()
            main, _, grid, version = self._state
            done, dead = live_kill_many(main.old, grid, self._young, wanted, version + 1, False)
            self._count -= done
            self._publish(grid, done, wanted[:done].tolist(), dead)
        if done < len(wanted):
            raise TidingsError(f"there is no interval {wanted[done]}")

    def replace(self, id: int, low: float, high: float, score: float) -> None:
        """Give an interval other bounds and another score."""
        name = arguments.id_of("interval", id)
        bounds = checked_bounds(f"interval {name}", low, high)
        self._change((*bounds, checked_score(score), name))

    def replace_many(self, ids: Any, low: Any, high: Any, score: Any) -> None:
        """Give intervals, all different, other bounds and scores; seen all at once.

        All are refused if one is wrong; one that is not there ends it.
        """
        self._change_many(ids, np.stack(checked_columns(low, high, score)))

    def rescore(self, id: int, score: float) -> None:
        """Give an interval another score."""
        self._change((KEPT, KEPT, checked_score(score), arguments.id_of("interval", id)))

    def rescore_many(self, ids: Any, scores: Any) -> None:
        """Give intervals, all different, other scores, until one is not there; seen all at once."""
        self._change_many(ids, kept_bounds(scores))

    def rebuild(self) -> None:
        """Begin a rebuild in the background, unless one is under way."""
        with self._lock:
            self._rebuild.writable()
            self._begin()

    def settle(self) -> None:
        """Wait until no rebuild is under way."""
        self._rebuild.settle()

    def close(self) -> None:
        """Wait for a rebuild under way and take no more changes; queries are still answered."""
        self._rebuild.close()

    def _change(self, change: tuple[float, float, float, int]) -> None:
        """Put an interval in place of itself."""
        with self._paced():
            self._rebuild.writable()
            main, _, grid, version = self._state
            while (came := live_change(main.old, grid, self._young, change, version + 1)) == FULL:
                grid = self._widened(grid)
            if came == MISSING:
                raise TidingsError(f"there is no interval {change[3]}")
            self._publish(grid, 1, (change[3],), came == OLD)

    def _change_many(self, ids: Any, rows: Float64s) -> None:
        wanted = one_each(ids, rows)
        with self._paced():
            self._rebuild.writable()
            main, _, grid, version = self._state
            done, were, came, changes = 0, 0, FULL, (rows, wanted)
            while came == FULL:
                done, dead, came = live_change_many(
                    main.old, grid, self._young, changes, version + 1, done
                )
                were += dead
                grid = self._widened(grid)
            self._publish(grid, done, wanted[:done].tolist(), were)
        if done < len(wanted):
            raise TidingsError(f"there is no interval {wanted[done]}")

    def _paced(self) -> Lock:
        """Wait for the rebuild if changes outrun it; give the lock to write under."""
        if self._changes > self._most:
            self.settle()
        return self._lock

    def _widened(self, grid: Grid) -> Grid:
        """Make room for more in the grid, or in the table of its ids."""
        grid, self._young = with_room(grid, self._young)
        return grid

    def _publish(self, grid: Grid, changes: int, killed: Iterable[int] = (), dead: int = 0) -> None:
        """Let readers see what was written; begin a rebuild, if it is time for one.

        Of the killed so many were in the run. A rebuild under way does not know them dead.
        """
        main, run, _, version = self._state
        main.dead += dead
        if main.dead > self._bare:
            run = main.run = without_dead(run, version + 1)
            self._bare = main.dead + self._aside
        if self._rebuild.running:
            self._killed.extend(killed)
        self._state = State(main, run, grid, version + 1)
        self._changes += changes
        if self._changes > self._limit:
            self._begin()

    def _begin(self) -> None:
        """Build from the present state, unless a rebuild is under way."""
        if not self._rebuild.running:
            self._killed = []
            self._rebuild.begin(partial(self._build, self._state))

    def _build(self, frozen: State) -> None:
        """Build anew, catch up twice, then serve that.

        The second time writers wait for it, but there is little left to be done.
        """
        fresh = fresh_with(self._built(frozen))
        with self._lock:
            seen, killed, self._killed = self._state, self._killed, []
        fresh.catch_up(killed, seen, frozen.version)
        with self._lock:
            fresh.catch_up(self._killed, self._state, seen.version)
            self._serve(fresh)
            self._killed = []
            self._rebuild.count += 1
            self._rebuild.done()

    def _built(self, frozen: State) -> Built:
        return rebuilt(frozen)

    def _serve(self, fresh: Fresh) -> None:
        """Publish a run with its grid; every stamp is new, so versions start anew."""
        size = len(fresh.main)
        self._young, self._changes = fresh.young, fresh.changes
        self._limit = max(LEAST, size // SHARE) if self._bound is None else self._bound
        self._bare = self._aside = max(FAN, size // SHARE)
        self._most = self._limit + size + AHEAD
        self._state = State(fresh.main, fresh.main.run, fresh.grid, 0)
