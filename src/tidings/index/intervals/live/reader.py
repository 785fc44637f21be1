"""What a reader of a live index does with the state that it took."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.index.intervals.kernels.delta_grid import Grid
from tidings.index.intervals.kernels.delta_query import Window
from tidings.index.intervals.kernels.live import KEY, STAMP, Run, live_top, live_top_many, run_next
from tidings.index.intervals.kernels.padding import fill_rest
from tidings.index.intervals.kernels.rtree import STATE as RANGE_STATE
from tidings.index.intervals.kernels.rtree import window_walk
from tidings.index.intervals.kernels.sopt_r_simd import STATE
from tidings.index.intervals.live.base_run import Built
from tidings.index.intervals.live.delta_grid import gathered
from tidings.index.intervals.protocol import filled

CHUNK: Final = 64
"""An iterator fetches so many at first, then twice as many each time."""

FEW: Final = 512
"""Up to this k the new ones are merged in place; beyond it all of them are sorted first."""

Fetch = Callable[[int], tuple[Int64s, Int64s, bool]]
"""Gives ids and keys of the run's next entries, about so many, and whether these are the last."""


class State(NamedTuple):
    """One version of the index, for as long as somebody reads it."""

    main: Built
    run: Run
    """That of the main part; entries that were dead when it was made may be left out."""
    grid: Grid
    version: int


def top_of(state: State, q: float, k: int) -> tuple[Int64s, Int64s]:
    """Give the k best, and what was looked at in the run."""
    looked = np.zeros(STATE, np.int64)
    if k > FEW:
        return np.array(list(islice(stabbed(state, q, looked), k)), np.int64), looked
    out = np.empty(k, np.int64)
    count = live_top(state.run, state.grid, state.version, q, looked, out)
    return out[:count], looked


def top_many_of(state: State, qs: Float64s, k: int) -> tuple[Int64s, Int64s]:
    """Give a row for each query."""
    if k > FEW:
        return filled([top_of(state, float(q), k)[0] for q in qs], k)
    out, counts = np.empty((len(qs), k), np.int64), np.empty(len(qs), np.int64)
    live_top_many(state.run, state.grid, state.version, qs, out, counts)
    fill_rest(out, counts)
    return out, counts


def iterate_over(state: State, q: float) -> Iterator[int]:
    """Give all stabbed ids in order; the first ones as `top` does, which need not sort the new."""
    first = top_of(state, q, CHUNK)[0].tolist()
    yield from first
    if len(first) == CHUNK:
        yield from islice(stabbed(state, q, np.zeros(STATE, np.int64)), CHUNK, None)


def stabbed(state: State, q: float, looked: Int64s) -> Iterator[int]:
    """Give all that q stabs."""

    def fetch(count: int) -> tuple[Int64s, Int64s, bool]:
        ids, keys = np.empty((2, count), np.int64)
        found = run_next(state.run, q, state.version, looked, ids, keys)
        return ids[:found], keys[:found], found < count

    return merged(fetch, gathered(state.grid, (q, q), state.version))


def within(state: State, window: Window) -> Iterator[int]:
    """Give all within a window, by the scored R-tree of the run."""
    tree, walked = state.main.by_score, np.zeros(RANGE_STATE, np.int64)
    notes, ids = state.run[3], state.main.ids

    def fetch(count: int) -> tuple[Int64s, Int64s, bool]:
        places = np.empty(count, np.int64)
        found = window_walk(tree, window, walked, places)
        there = places[:found][notes[places[:found], STAMP] >> 32 > state.version]
        return ids[there], notes[there, KEY], found < count

    return merged(fetch, gathered(state.grid, window, state.version))


def merged(fetch: Fetch, new: tuple[Int64s, Int64s]) -> Iterator[int]:
    """Give the ids of the run and the new ones, both in order, in one order."""
    new_ids, new_keys = new
    at, count, last = 0, CHUNK, False
    while not last:
        ids, keys, last = fetch(count)
        until = len(new_ids)
        if not last:
            until = at + coming_before(ids, keys, new_ids[at:], new_keys[at:])
        if at < until:
            ids, keys = np.append(ids, new_ids[at:until]), np.append(keys, new_keys[at:until])
            ids = ids[np.lexsort((ids, keys))]
        yield from ids.tolist()
        at, count = until, 2 * count


def coming_before(ids: Int64s, keys: Int64s, new_ids: Int64s, new_keys: Int64s) -> int:
    """Say how many of the new ones come before the last of a chunk, if it has one."""
    if not len(ids):
        return 0
    first, end = np.searchsorted(new_keys, keys[-1]), np.searchsorted(new_keys, keys[-1], "right")
    return int(first + np.searchsorted(new_ids[first:end], ids[-1]))
