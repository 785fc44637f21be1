"""Queries on one snapshot of a live interval index."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.index.intervals.kernels.delta_grid import Grid
from tidings.index.intervals.kernels.live import KEY, STAMP, Run, live_top, live_top_many, run_next
from tidings.index.intervals.kernels.rtree import STATE as RANGE_STATE
from tidings.index.intervals.kernels.rtree import fill_rest, window_walk
from tidings.index.intervals.kernels.sopt_r_simd import STATE
from tidings.index.intervals.live.base_run import BaseRun
from tidings.index.intervals.live.delta import entries_within
from tidings.index.intervals.protocol import padded_rows
from tidings.index.intervals.ranges import QueryBounds
from tidings.index.typed_kernel import TypedKernel

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

    def top_many(self, qs: Float64s, k: int) -> tuple[Int64s, Int64s]:
        if k > SMALL_K:
            return padded_rows([self.top(float(q), k)[0] for q in qs], k)
        out, counts = np.empty((len(qs), k), np.int64), np.empty(len(qs), np.int64)
        TOP_MANY(self.run, self.grid, self.version, qs, out, counts)
        fill_rest(out, counts)
        return out, counts

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
