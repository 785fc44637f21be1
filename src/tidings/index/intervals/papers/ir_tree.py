"""The IR-tree (RPS 3.1): an interval tree whose nodes are R-trees by score; it takes changes."""

from collections.abc import Iterator
from typing import Any, ClassVar, Final

import numpy as np

from tidings.compiled.array_types import AnyArray, Float64s, Int64s
from tidings.compiled.arrays import total_bytes
from tidings.compiled.jit import TypedKernel
from tidings.errors import TidingsError
from tidings.index import arguments
from tidings.index.intervals.kernels.hash_table import HashTable, table_refill
from tidings.index.intervals.kernels.rtree import RTree
from tidings.index.intervals.papers.kernels.ir_blocks import (
    BLOCKS,
    FREE_BLOCK,
    HEIGHTS,
    MOST,
    POOL,
    ROOTS,
    SLOTS,
    IrStore,
)
from tidings.index.intervals.papers.kernels.ir_tree import (
    HOLES,
    SPARE,
    STATE,
    IntervalsById,
    halving_points,
    ir_add,
    ir_insert_many,
    ir_remove,
    ir_remove_many,
    ir_walk,
    ir_walk_many,
)
from tidings.index.intervals.protocol import (
    IntervalAnswers,
    RankedIntervals,
    checked_bounds,
    checked_score,
    rank_intervals,
    score_keys,
)
from tidings.index.intervals.ranges import RangeAnswers
from tidings.index.intervals.rtree import RangeTree, scored_rtree
from tidings.index.intervals.tree_index import TreeIndex, WalkKernels

IR_WALK: Final = WalkKernels(TypedKernel(ir_walk), TypedKernel(ir_walk_many), STATE)
LONGEST_PATH: Final = 32


class IrTree:
    """Intervals that change, in an IR-tree. A query costs O((k + log n) b log_b n) (Theorem 3.1).

    Inserts and deletes cost O(b log_b n). A new interval gets the next number as its id; ids of
    deleted intervals are not reused.
    """

    name: ClassVar[str] = "ir"

    def __init__(self, intervals: RankedIntervals) -> None:
        rank = np.empty(len(intervals), np.int64)
        rank[intervals.ids] = np.arange(len(rank))
        self._by_id = IntervalsById(
            intervals.low[rank],
            intervals.high[rank],
            score_keys(intervals.score[rank]),
            np.zeros(len(rank), np.bool_),
        )
        self._next_id = len(rank)
        self._size, self._version = 0, 0
        self._path = np.empty(LONGEST_PATH, np.int64)
        range_tree = RangeTree(self._build_range_tree)
        store = empty_store(len(intervals))
        self._tree = TreeIndex("ir", len(intervals), store, IR_WALK, range_tree)
        self._load(intervals.ids)

    def __len__(self) -> int:
        return self._size

    @property
    def nbytes(self) -> int:
        """The bytes of the tree and of the intervals by id."""
        return self._tree.nbytes + total_bytes(self._by_id)

    @property
    def ranges(self) -> RangeAnswers:
        """Answers to events that are ranges, from an R-tree that is rebuilt after a change."""
        return self._tree.ranges

    def top(self, q: float, k: int) -> Int64s:
        """Return the ids of the k best intervals that `q` stabs; fewer if fewer exist."""
        return self._tree.top(q, k)

    def top_many(self, qs: Float64s, k: int) -> IntervalAnswers:
        return self._tree.top_many(qs, k)

    def iterate(self, q: float) -> Iterator[int]:
        """Yield all stabbed ids in order; a change of the index ends it with an error."""
        version = self._version
        for id in self._tree.iterate(q):
            yield id
            if version != self._version:
                raise TidingsError("the index was changed while it was iterated over")

    def counters(self) -> dict[str, int]:
        """Return counts of the visits of the last `top`, with blocks entered in vain (holes)."""
        return {**self._tree.counters(), "holes": int(self._tree.state()[HOLES])}

    def insert(self, low: float, high: float, score: float) -> int:
        """Insert an interval and return its id."""
        bounds = checked_bounds(f"interval {self._next_id}", low, high)
        checked = checked_score(score)
        self._reserve(1)
        self._put(self._next_id, bounds, checked)
        self._next_id += 1
        return self._next_id - 1

    def insert_many(self, low: Any, high: Any, score: Any) -> Int64s:
        """Insert intervals and return their ids; all are refused if one is wrong."""
        ranked = rank_intervals(low, high, score)
        self._reserve(len(ranked))
        ids = self._next_id + ranked.ids
        by_id = self._by_id
        by_id.low[ids], by_id.high[ids] = ranked.low, ranked.high
        by_id.keys[ids] = score_keys(ranked.score)
        self._next_id += len(ids)
        self._insert(ids)
        return np.sort(ids)

    def delete(self, id: int) -> None:
        """Delete an interval by id; memory is released once three quarters are unused."""
        self._remove(arguments.checked_id("interval", id))
        self._release_memory()

    def delete_many(self, ids: Any) -> None:
        """Delete intervals by id, up to the first that does not exist."""
        targets = arguments.checked_ids("interval", ids)
        valid = (targets >= 0) & (targets < self._next_id)
        head = targets if valid.all() else targets[: int(np.argmin(valid))]
        done = ir_remove_many(self._store(), self._by_id, head, self._path)
        self._resized(-done)
        self._release_memory()
        if done < len(targets):
            raise TidingsError(f"there is no interval {targets[done]}")

    def rescore(self, id: int, score: float) -> None:
        """Change the score of an interval."""
        target, checked = arguments.checked_id("interval", id), checked_score(score)
        self._remove(target)
        bounds = float(self._by_id.low[target]), float(self._by_id.high[target])
        self._put(target, bounds, checked)

    def replace(self, id: int, low: float, high: float, score: float) -> None:
        """Change the bounds and the score of an interval."""
        target, checked = arguments.checked_id("interval", id), checked_score(score)
        bounds = checked_bounds(f"interval {target}", low, high)
        self._remove(target)
        self._put(target, bounds, checked)

    def _put(self, id: int, bounds: tuple[float, float], score: float) -> None:
        while not ir_add(self._store(), self._by_id, id, *bounds, score):
            self._tree.tree = with_room(self._store())
        self._resized(1)

    def _remove(self, id: int) -> None:
        exists = 0 <= id < self._next_id
        if not exists or not ir_remove(self._store(), self._by_id, id, self._path):
            raise TidingsError(f"there is no interval {id}")
        self._resized(-1)

    def _reserve(self, count: int) -> None:
        """Enlarge the columns by id for `count` new ones."""
        if self._next_id + count > len(self._by_id.low):
            more = count + len(self._by_id.low) // 8 + 16
            columns: Any = self._by_id
            wider = (np.append(old, np.zeros(more, old.dtype)) for old in columns)
            self._by_id = IntervalsById(*wider)

    def _release_memory(self) -> None:
        if 4 * self._size + 4096 < int(self._store().pool[SLOTS]):
            self._load(np.flatnonzero(self._by_id.alive))

    def _load(self, ids: Int64s) -> None:
        """Start over with these intervals, inserted node by node and best first."""
        by_id = self._by_id
        points = np.empty(len(ids), np.int64)
        halving_points(by_id.low[ids], by_id.high[ids], points)
        self._tree.tree = empty_store(len(ids))
        self._size = 0
        self._insert(ids[np.lexsort((ids, by_id.keys[ids], points))])
        self._tree.tree = compacted(self._store())

    def _insert(self, ids: Int64s) -> None:
        done = 0
        while (done := ir_insert_many(self._store(), self._by_id, ids, done)) < len(ids):
            self._tree.tree = with_room(self._store())
        self._resized(len(ids))

    def _resized(self, change: int) -> None:
        self._size += change
        self._tree.size = self._size
        self._version += 1
        if self._tree.range_tree.is_built:
            self._tree.range_tree = RangeTree(self._build_range_tree)

    def _build_range_tree(self) -> RTree:
        by_id = self._by_id
        ids = np.flatnonzero(by_id.alive)
        ids = ids[np.argsort(by_id.keys[ids], kind="stable")]
        return scored_rtree(RankedIntervals(by_id.low[ids], by_id.high[ids], ids, np.empty(0)))

    def _store(self) -> Any:
        return self._tree.tree


def empty_store(size: int) -> IrStore:
    """Allocate a store for about `size` intervals."""
    slots, blocks = size + size // 8 + 4 * SPARE * MOST, size // 32 + 4 * SPARE
    pool = np.zeros(POOL, np.int64)
    pool[FREE_BLOCK] = -1
    pool[ROOTS + 1 : HEIGHTS] = -1
    return IrStore(
        np.empty((2, slots + MOST)),
        np.empty(slots, np.int64),
        np.empty(slots, np.int32),
        np.empty(slots, np.int32),
        np.empty((blocks, 4), np.int32),
        empty_roots(1024),
        pool,
    )


def empty_roots(slots: int) -> HashTable:
    """Allocate a table of nodes; `slots` is a power of two."""
    return HashTable(np.empty(slots, np.int64), np.full(slots, -1, np.int32))


def with_room(store: IrStore) -> IrStore:
    """Enlarge the arrays that are nearly full: slots by half, blocks and the table to double."""
    blocks, roots, pool = store.blocks, store.roots, store.pool
    slots = len(store.keys)
    if pool[SLOTS] + SPARE * MOST > slots:
        store = with_slots(store, slots + slots // 2)
    if pool[BLOCKS] + SPARE > len(blocks):
        blocks = resized(blocks, 2 * len(blocks))
    if 2 * pool[ROOTS] + 2 > len(roots.keys):
        wider = empty_roots(2 * len(roots.keys))
        table_refill(roots, wider)
        roots = wider
    return store._replace(blocks=blocks, roots=roots)


def compacted(store: IrStore) -> IrStore:
    """Return the store without its unused slots, except for a sixteenth."""
    used = int(store.pool[SLOTS])
    slots = used + used // 16 + 2 * SPARE * MOST
    return with_slots(store, slots) if slots < len(store.keys) else store


def with_slots(store: IrStore, slots: int) -> IrStore:
    """Return the store with another number of slots, above those in use."""
    bounds = np.empty((2, slots + MOST))
    size = min(slots, len(store.keys))
    bounds[:, :size] = store.bounds[:, :size]
    keys, ties, links = (resized(old, slots) for old in (store.keys, store.ties, store.links))
    return store._replace(bounds=bounds, keys=keys, ties=ties, links=links)


def resized(old: AnyArray, size: int) -> AnyArray:
    """Copy an array into one with `size` rows; rows beyond are cut off."""
    new = np.empty((size, *old.shape[1:]), old.dtype)
    new[: min(size, len(old))] = old[:size]
    return new
