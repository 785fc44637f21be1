"""The IR-tree (RPS 3.1): an interval tree whose nodes are R-trees by score; it takes changes."""

import math
from collections.abc import Iterator
from typing import Any, ClassVar, Final

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.errors import TidingsError, shown
from tidings.index import arguments
from tidings.index.intervals.kernels.ir_tree import (
    STATE,
    Known,
    halving_points,
    ir_add,
    ir_insert_many,
    ir_remove,
    ir_remove_many,
    ir_walk,
    ir_walk_many,
)
from tidings.index.intervals.kernels.rtree import Tree
from tidings.index.intervals.papers.ir_memory import (
    compact_store,
    empty_store,
    ensure_room,
    slots_in_use,
)
from tidings.index.intervals.protocol import Ranked, rank_intervals
from tidings.index.intervals.ranges import ByScore, Ranges, scored
from tidings.index.intervals.tree_index import Kernels, Walked

IR: Final = Kernels(ir_walk, ir_walk_many, STATE)


class IrTree:
    """Intervals that come and go. A query costs O((k + log n) b log_b n) (RPS Theorem 3.1).

    Inserts and deletes cost O(b log_b n). A new interval gets the next number as its id; the id
    of a deleted one is not given again.
    """

    name: ClassVar[str] = "ir"

    def __init__(self, intervals: Ranked) -> None:
        places = np.empty(len(intervals), np.int64)
        places[intervals.ids] = np.arange(len(places))
        self._known: Known = (
            intervals.low[places],
            intervals.high[places],
            keys_of(intervals.score[places]),
            np.zeros(len(places), np.bool_),
        )
        self._given = len(places)
        self._live, self._version = 0, 0
        self._path = np.empty(32, np.int64)
        self._walked = Walked(
            "ir", len(intervals), empty_store(len(intervals)), IR, ByScore(self._scored)
        )
        self._load(intervals.ids)

    def __len__(self) -> int:
        return self._live

    @property
    def nbytes(self) -> int:
        """The bytes of the tree and of the intervals by id."""
        return self._walked.nbytes + sum(each.nbytes for each in self._known)

    @property
    def ranges(self) -> Ranges:
        """What it answers to events that are ranges, by a tree made anew after a change."""
        return self._walked.ranges

    def top(self, q: float, k: int) -> Int64s:
        """Give the ids of the k best intervals that `q` stabs; fewer, if there are fewer."""
        return self._walked.top(q, k)

    def top_many(self, qs: Float64s, k: int) -> tuple[Int64s, Int64s]:
        """Give a row of ids for each query, filled up with -1, and how many each has."""
        return self._walked.top_many(qs, k)

    def iterate(self, q: float) -> Iterator[int]:
        """Give all stabbed ids in order; a change of the index ends it with an error."""
        version = self._version
        for each in self._walked.iterate(q):
            yield each
            if version != self._version:
                raise TidingsError("the index was changed while it was iterated over")

    def counters(self) -> dict[str, int]:
        """Give what the last `top` looked at, and the blocks it entered for nothing: no holes."""
        return {**self._walked.counters(), "holes": int(self._walked.state()[3])}

    def insert(self, low: float, high: float, score: float) -> int:
        """Insert an interval; give its id."""
        bounds, worth = checked_bounds(f"interval {self._given}", low, high), checked_score(score)
        self._expect(1)
        self._put(self._given, bounds, worth)
        self._given += 1
        return self._given - 1

    def insert_many(self, low: Any, high: Any, score: Any) -> Int64s:
        """Insert intervals; give their ids. All are refused if one is wrong, by its place here."""
        ranked = rank_intervals(low, high, score)
        self._expect(len(ranked))
        new = self._given + ranked.ids
        lows, highs, keys, _ = self._known
        lows[new], highs[new], keys[new] = ranked.low, ranked.high, keys_of(ranked.score)
        self._given += len(new)
        self._insert(new)
        return np.sort(new)

    def delete(self, id: int) -> None:
        """Delete an interval by id; memory is given back once three quarters are unused."""
        self._take(arguments.id_of("interval", id))
        self._give_back()

    def delete_many(self, ids: Any) -> None:
        """Delete intervals by id, until one is not there."""
        wanted = arguments.ids_of("interval", ids)
        known = (wanted >= 0) & (wanted < self._given)
        good = wanted if known.all() else wanted[: int(np.argmin(known))]
        done = ir_remove_many(self._store(), self._known, good, self._path)
        self._counted(-done)
        self._give_back()
        if done < len(wanted):
            raise TidingsError(f"there is no interval {wanted[done]}")

    def rescore(self, id: int, score: float) -> None:
        """Give an interval another score."""
        name, worth = arguments.id_of("interval", id), checked_score(score)
        self._take(name)
        self._put(name, (float(self._known[0][name]), float(self._known[1][name])), worth)

    def replace(self, id: int, low: float, high: float, score: float) -> None:
        """Give an interval other bounds and another score."""
        name, worth = arguments.id_of("interval", id), checked_score(score)
        bounds = checked_bounds(f"interval {name}", low, high)
        self._take(name)
        self._put(name, bounds, worth)

    def _put(self, id: int, bounds: tuple[float, float], score: float) -> None:
        while not ir_add(self._store(), self._known, id, bounds, score):
            self._walked.tree = ensure_room(self._store())
        self._counted(1)

    def _take(self, id: int) -> None:
        there = 0 <= id < self._given
        if not there or not ir_remove(self._store(), self._known, id, self._path):
            raise TidingsError(f"there is no interval {id}")
        self._counted(-1)

    def _expect(self, count: int) -> None:
        """Make room among the known for so many new ones."""
        if self._given + count > len(self._known[0]):
            low, high, key, alive = (with_room(each, count) for each in self._known)
            self._known = (low, high, key, alive)

    def _give_back(self) -> None:
        if 4 * self._live + 4096 < slots_in_use(self._walked.tree):
            self._load(np.flatnonzero(self._known[3]))

    def _load(self, ids: Int64s) -> None:
        """Start anew with these intervals, node by node and there from the best on."""
        low, high, key, _ = self._known
        points = np.empty(len(ids), np.int64)
        halving_points(low[ids], high[ids], points)
        self._walked.tree = empty_store(len(ids))
        self._live = 0
        self._insert(ids[np.lexsort((ids, key[ids], points))])
        self._walked.tree = compact_store(self._store())

    def _insert(self, ids: Int64s) -> None:
        done = 0
        while (done := ir_insert_many(self._store(), self._known, ids, done)) < len(ids):
            self._walked.tree = ensure_room(self._store())
        self._counted(len(ids))

    def _counted(self, change: int) -> None:
        self._live += change
        self._walked.size = self._live
        self._version += 1
        if self._walked.by_score.made:
            self._walked.by_score = ByScore(self._scored)

    def _scored(self) -> Tree:
        low, high, key, alive = self._known
        ids = np.flatnonzero(alive)
        ids = ids[np.argsort(key[ids], kind="stable")]
        return scored(Ranked(low[ids], high[ids], ids, np.empty(0)))

    def _store(self) -> Any:
        return self._walked.tree


def checked_score(score: Any) -> float:
    """Return a score; refuse what is none."""
    found = arguments.number("the score", score)
    if not 0 <= found < math.inf:
        raise TidingsError(f"score {shown(score)} is not a finite number >= 0")
    return found


def checked_bounds(what: str, low: Any, high: Any) -> tuple[float, float]:
    """Return the bounds of an interval that is not empty."""
    start, end = arguments.number(f"{what}: low", low), arguments.number(f"{what}: high", high)
    if not start <= end:
        raise TidingsError(f"{what}: low {shown(low)} is above high {shown(high)}")
    return start, end


def keys_of(scores: Float64s) -> Int64s:
    """Give what orders by falling score: the bits of a number >= 0 are in its order."""
    return -(scores + 0.0).view(np.int64)


def with_room(array: Any, count: int) -> Any:
    """Give an array with room, which is empty, for `count` more and some besides."""
    return np.concatenate([array, np.zeros(count + len(array) // 8 + 16, array.dtype)])
