"""Ours: an index that changes while it is served; rebuilds happen in the background."""

from collections.abc import Iterator
from threading import Lock, Thread
from typing import Any, ClassVar, Final, Self

import numpy as np

from tidings.errors import TidingsError
from tidings.index.interval.ir import check_score, keys_of
from tidings.index.interval.live_state import (
    NO_TIME,
    NOBODY,
    Built,
    Entries,
    State,
    built,
    empty_pile,
    empty_young,
    entries_of,
    joined,
    living,
    living_in_pile,
    merged,
    relabelled,
    sorted_pile,
    sorted_tail,
    wider,
    with_version,
    young_of,
)
from tidings.index.interval.protocol import Floats, Ints, Ranked, rank_intervals
from tidings.index.interval.walked import checked
from tidings.kernels.live import (
    BORN,
    Pile,
    kill_many,
    live_top,
    live_top_many,
    pile_append,
    run_kill,
    run_kill_all,
    young_kill,
    young_note_many,
)
from tidings.kernels.rows import fill_rest
from tidings.kernels.wide import STATE

LEAST: Final = 4096
"""Fewer changes than this are never a reason to build everything anew."""

LOOKED: Final = 256
"""So many entries of the buffer may be looked through for a usual query; else it is too large."""

TAIL: Final = (128, 512)
"""The least and the greatest tail; between them a 64th of the buffer, which it is merged into."""

CHUNK: Final = 32


class Live:
    """Intervals that come and go while readers on other threads are answered.

    What there was at the last rebuild is a SOPT-R-tree of 64 entries a node, whose dead are
    stamped; what came since is a middle run of the same kind, a buffer by score and a tail. Once
    more than `bound` of it all has changed, a thread builds anew and swaps. Readers work on the
    state that they took, are never blocked, and see either all of a change or nothing of it.
    """

    name: ClassVar[str] = "live"

    def __init__(self, intervals: Ranked, bound: int | None = None) -> None:
        if bound is not None and bound < 0:
            raise TidingsError(f"bound = {bound} is below 0")
        self._bound = bound
        self._lock = Lock()
        self._given = self._count = len(intervals)
        main, middle = built(entries_of(intervals, keys_of(intervals.score))), built(NOBODY)
        parts = (main.run, middle.run, empty_pile(0), empty_pile(TAIL[0]))
        self._state = State(main, middle, parts, (0, 0, 0))
        self._limits, self._settled = limits_for(self._state, bound), 0
        self._young, self._young_size = empty_young(0), 0
        self._thread: Thread | None = None
        self._killed: list[int] = []
        self._failure: Exception | None = None
        self._closed = False
        self._rebuilds = 0
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
        state = self._state
        arrays: list[Any] = [*state.main.listed, *state.middle.listed, *self._young]
        arrays += [each for part in state.parts for each in part]
        return sum(each.nbytes for each in arrays)

    def top(self, q: float, k: int) -> Ints:
        """Give the ids of the k best intervals that `q` stabs; fewer, if there are fewer."""
        return self._top(self._state, q, checked(k))

    def top_many(self, qs: Floats, k: int) -> tuple[Ints, Ints]:
        """Give a row of ids for each query, filled up with -1, and how many each has.

        All rows are of one state.
        """
        state, points = self._state, np.ascontiguousarray(qs, np.float64)
        out = np.empty((len(points), checked(k)), np.int64)
        counts = np.empty(len(points), np.int64)
        live_top_many(state.parts, state.seen, points, out, counts)
        fill_rest(out, counts)
        return out, counts

    def iterate(self, q: float) -> Iterator[int]:
        """Give all stabbed ids in order, of the state at the first; asked for in doubled tops."""
        state, done, chunk = self._state, 0, CHUNK
        while True:
            found = self._top(state, q, chunk)
            yield from found[done:].tolist()
            if len(found) < chunk:
                return
            done, chunk = chunk, 2 * chunk

    def counters(self) -> dict[str, int]:
        """Give what the last `top` looked at, and how many rebuilds there were."""
        nodes, leaves, intervals = self._looked[:3].tolist()
        counts = {"nodes": nodes, "leaves": leaves, "intervals": intervals}
        return {**counts, "rebuilds": self._rebuilds}

    def describe(self) -> str:
        """Tell what the present state is made of."""
        state = self._state
        running = "a rebuild is under way" if self._thread else "no rebuild is under way"
        return (
            f"live: {self._count:,} intervals; main run {len(state.main):,}, "
            f"middle run {len(state.middle):,}, buffer {state.seen[0]:,}, tail {state.seen[1]:,}, "
            f"dead in runs {state.main.dead + state.middle.dead:,}; {running}, "
            f"{self._rebuilds:,} done."
        )

    def insert(self, low: float, high: float, score: float) -> int:
        """Insert an interval; give its id."""
        check_score(score)
        if not low <= high:
            raise TidingsError(f"interval {self._given}: low {low} is above high {high}")
        with self._lock:
            self._writable()
            new = self._given
            self._make_room()
            self._append(new, float(low), float(high), float(score))
            self._given, self._count = new + 1, self._count + 1
            self._tend()
        return new

    def insert_many(self, low: Any, high: Any, score: Any) -> Ints:
        """Insert intervals, seen all at once; give their ids. All are refused if one is wrong."""
        ranked = rank_intervals(low, high, score)
        with self._lock:
            self._writable()
            ranked = relabelled(ranked, self._given)
            self._add(entries_of(ranked, keys_of(ranked.score)))
            self._given, self._count = self._given + len(ranked), self._count + len(ranked)
            self._tend()
        return np.sort(ranked.ids)

    def delete(self, id: int) -> None:
        """Delete an interval by id."""
        with self._lock:
            self._writable()
            self._kill(int(id))
            sorted_size, recent, version = self._state.seen
            self._state = with_version(self._state, (sorted_size, recent, version + 1))
            self._count -= 1
            self._tend()

    def delete_many(self, ids: Any) -> None:
        """Delete intervals by id, until one is not there; seen all at once."""
        wanted = np.ascontiguousarray(ids, np.int64)
        with self._lock:
            self._writable()
            done = len(self._kill_many(wanted)[0])
            sorted_size, recent, version = self._state.seen
            self._state = with_version(self._state, (sorted_size, recent, version + 1))
            self._count -= done
            self._tend()
        if done < len(wanted):
            raise TidingsError(f"there is no interval {wanted[done]}")

    def rescore(self, id: int, score: float) -> None:
        """Give an interval another score."""
        check_score(score)
        with self._lock:
            self._writable()
            self._make_room()  # before the kill, which is seen together with the new score
            low, high = self._kill(int(id))
            self._append(int(id), low, high, float(score))
            self._tend()

    def rescore_many(self, ids: Any, scores: Any) -> None:
        """Give intervals, all different, other scores, until one is not there; seen all at once."""
        wanted, new = np.ascontiguousarray(ids, np.int64), np.ascontiguousarray(scores, np.float64)
        if wanted.shape != new.shape or wanted.ndim != 1:
            raise TidingsError(f"{wanted.shape} ids and {new.shape} scores are not of one length")
        if not ((new >= 0) & (new < np.inf)).all():
            bad = new[~((new >= 0) & (new < np.inf))][0]
            raise TidingsError(f"score {bad} is not a finite number >= 0")
        if len(np.unique(wanted)) < len(wanted):
            raise TidingsError("an id is given twice; a rescore takes each once")
        with self._lock:
            self._writable()
            low, high = self._kill_many(wanted)
            done = len(low)
            self._add(Entries(low, high, keys_of(new[:done]), wanted[:done]))
            self._tend()
        if done < len(wanted):
            raise TidingsError(f"there is no interval {wanted[done]}")

    def rebuild(self) -> None:
        """Begin a rebuild of everything in the background, unless one is under way."""
        with self._lock:
            self._writable()
            self._begin(everything=True)

    def settle(self) -> None:
        """Wait until no rebuild is under way."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def close(self) -> None:
        """Wait for a rebuild under way and take no more changes; queries are still answered."""
        with self._lock:
            self._closed = True
        self.settle()

    def _top(self, state: State, q: float, k: int) -> Ints:
        size = len(state.main) + len(state.middle) + state.delta
        out, looked = np.empty(min(k, size), np.int64), np.zeros(STATE, np.int64)
        count = live_top(state.parts, state.seen, float(q), looked, out)
        self._looked = looked
        return out[:count]

    def _writable(self) -> None:
        """Refuse a change if there can be none, or once if the last rebuild failed."""
        if self._closed:
            raise TidingsError("the index is closed and takes no changes")
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise TidingsError(
                f"the last rebuild failed ({failure!r}); nothing is lost, and it is tried again "
                "after the next change"
            ) from failure

    def _append(self, id: int, low: float, high: float, score: float) -> None:
        """Put one entry into the tail, which has room, and publish it."""
        self._widen(1)
        main, middle, parts, (sorted_size, recent, version) = self._state
        version += 1
        pile_append(parts[3], self._young, recent, (low, high, score, id, version))
        self._state = State(main, middle, parts, (sorted_size, recent + 1, version))

    def _make_room(self) -> None:
        state = self._state
        if state.seen[1] == len(state.parts[3][1]):
            self._state = sealed(state)

    def _add(self, new: Entries) -> None:
        """Merge entries and the tail into the buffer, and publish that."""
        state = self._state
        version = state.seen[2] + 1
        self._widen(len(new.ids))
        young_note_many(self._young, new.ids, new.keys)
        fresh = (sorted_pile(new, version), len(new.ids))
        if state.seen[1]:
            fresh = merged(fresh, (sorted_tail(state), state.seen[1]), NO_TIME)
        buffer, size = merged((state.parts[2], state.seen[0]), fresh, NO_TIME)
        state = state.with_piles(buffer, tail_for(size), size)
        self._state = with_version(state, (size, 0, version))

    def _widen(self, count: int) -> None:
        """Keep the table of young ids at most half full."""
        self._young_size += count
        while 2 * self._young_size > len(self._young[0]):  # a table too full is slow
            self._young = wider(self._young)

    def _kill(self, id: int) -> tuple[float, float]:
        """Stamp an entry as dead from the next version on; give its bounds."""
        state = self._state
        sorted_size, recent, version = state.seen
        for run in (state.main, state.middle):
            if len(run):
                place = run_kill(run.listed, run.run[3], id, version + 1)
                if place >= 0:
                    run.dead += 1
                    return self._note_killed(id, run.run[2][place])
        seen = (sorted_size, recent, version + 1)
        place = young_kill(state.parts[2:], seen, self._young, id)
        if place == -1:
            raise TidingsError(f"there is no interval {id}")
        self._young_size -= 1
        bounds = state.parts[2][0] if place >= 0 else state.parts[3][0]
        return self._note_killed(id, bounds[:, place if place >= 0 else -2 - place])

    def _note_killed(self, id: int, bounds: Any) -> tuple[float, float]:
        if self._thread is not None:
            self._killed.append(id)
        return float(bounds[0]), float(bounds[1])

    def _kill_many(self, ids: Ints) -> tuple[Floats, Floats]:
        """Stamp entries as dead until one is not there; give the bounds of those that were."""
        state = self._state
        bounds = np.empty((2, len(ids)))
        lists = (state.main.listed, state.middle.listed)
        seen = (*state.seen[:2], state.seen[2] + 1)
        done, main, middle = kill_many(state.parts, lists, seen, self._young, ids, bounds)
        state.main.dead += main
        state.middle.dead += middle
        self._young_size -= done - main - middle
        if self._thread is not None:
            self._killed += ids[:done].tolist()
        return bounds[0, :done], bounds[1, :done]

    def _tend(self) -> None:
        """Begin a rebuild, if it is time for one and none is under way."""
        if self._thread is not None:
            return
        state = self._state
        delta = state.seen[0] + state.seen[1]
        if delta + self._settled + state.main.dead > self._limits[0]:
            self._begin(everything=True)
        elif delta > self._limits[1]:
            self._begin(everything=False)

    def _begin(self, everything: bool) -> None:
        """Freeze the present state and start the thread that builds from it."""
        if self._thread is None:
            self._state = sealed(self._state)
            self._killed = []
            self._thread = Thread(target=self._build, args=(self._state, everything))
            self._thread.start()

    def _build(self, frozen: State, everything: bool) -> None:
        """Build a run from a frozen state, then swap; what fails is told to the next writer."""
        try:
            run = self._built(frozen, everything)
        except Exception as failure:  # noqa: BLE001 - whatever it is, a writer gets to know it
            self._failure, self._thread = failure, None
            return
        with self._lock:
            self._swap(frozen.seen[2], run, everything)
            self._thread = None

    def _built(self, frozen: State, everything: bool) -> Built:
        size, _, version = frozen.seen
        parts = [living(frozen.parts[0], version)] if everything else []
        parts.append(living(frozen.parts[1], version))
        parts.append(living_in_pile(frozen.parts[2], size, version))
        return built(joined(parts))

    def _swap(self, frozen: int, run: Built, everything: bool) -> None:
        """Publish a new run, with what has changed since the frozen version."""
        killed = np.array(self._killed, np.int64)
        run.dead = int(run_kill_all(run.listed, run.run[3], killed, 0))
        self._killed = []
        state = sealed(self._state, born=frozen)
        buffer, size = state.parts[2], state.seen[0]
        self._young, self._young_size = young_of(buffer, size), size
        if everything:
            buffer[2][:size, BORN] = 0
            state = with_version(state, (size, 0, 0))  # every stamp is new, so versions start anew
            self._state = state.with_runs(run, built(NOBODY))
        else:
            self._state = state.with_runs(state.main, run)
        self._limits = limits_for(self._state, self._bound)
        self._settled = len(self._state.middle)
        self._rebuilds += 1


def limits_for(state: State, bound: int | None) -> tuple[int, int]:
    """Give after how many changes all is built anew, and with how many the middle run.

    Where a usual query looks at little of the buffer, there need be no middle run. Else the buffer
    is small, but not so small that building the middle run is all that is ever done.
    """
    size = len(state.main)
    fits = int(LOOKED / state.main.depth)
    buffer = max(min(fits, size // 16), 2 * LOOKED, len(state.middle) // 32)
    if bound is not None:
        return bound, buffer
    whole = size // 16 if fits < size // 64 else min(fits, size // 16)
    return max(LEAST, whole), buffer


def sealed(state: State, born: int = NO_TIME) -> State:
    """Merge the tail into the buffer, and keep of both what was born after `born`."""
    tail = (sorted_tail(state), state.seen[1])
    buffer, size = merged((state.parts[2], state.seen[0]), tail, born)
    return state.with_piles(buffer, tail_for(size), size)


def tail_for(buffer: int) -> Pile:
    """Make a tail that fits the buffer: rarely merged, quickly looked through."""
    return empty_pile(min(max(buffer // 64, TAIL[0]), TAIL[1]))
