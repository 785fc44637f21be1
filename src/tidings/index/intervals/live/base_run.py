"""The base of a live interval index: an immutable SOPT-R-tree with tombstones on its dead."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.compiled.arrays import aligned, total_bytes
from tidings.index.intervals.kernels.delta_grid import BITS, NEVER
from tidings.index.intervals.kernels.live import KEY, STAMP, Run, RunEntries
from tidings.index.intervals.kernels.rtree import RTree
from tidings.index.intervals.kernels.sopt_r_simd import FAN, WIDTH, BlockTree
from tidings.index.intervals.protocol import RankedIntervals
from tidings.index.intervals.rtree import scored_rtree
from tidings.index.intervals.sopt_r_simd import sopt_r_64
from tidings.index.intervals.tree_index import TreeIndex

GRID_SIZES: Final = (128, 2048, 65536)
"""From these sizes on, the grid over a run has 16, 256, 4,096 cells."""
SAMPLE: Final = 16
"""Bounds sampled for each cell of the grid."""

PROBES: Final = 64
USUAL_K: Final = 20
FAR: Final = 1e308


@dataclass(frozen=True)
class KeyedIntervals:
    """Intervals by id, with keys in place of scores: smaller is better."""

    low: Float64s
    high: Float64s
    keys: Int64s
    ids: Int64s

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, order: Any) -> "KeyedIntervals":
        """Return the intervals at some positions, in that order."""
        return KeyedIntervals(self.low[order], self.high[order], self.keys[order], self.ids[order])


@dataclass(frozen=True)
class GridCuts:
    """Where a grid cuts the line and the scores, so that cells and bands have similar counts."""

    height: int
    places: Float64s
    bands: Int64s
    """Rows (key, id) for each level of the grid."""
    usual_key: int
    """The key of a typical 20th answer."""


@dataclass(eq=False)
class BaseRun:
    """A run, to which only tombstones are ever written, and the number of its dead."""

    run: Run
    entries: RunEntries
    cuts: GridCuts
    dead: int = field(default=0)

    def __len__(self) -> int:
        return len(self.run.notes)

    @property
    def ids(self) -> Int64s:
        """The ids by place."""
        ids: Int64s = self.run.notes[:, STAMP] & 0xFFFFFFFF
        return ids

    @cached_property
    def range_tree(self) -> RTree:
        """A scored R-tree over the same entries, with places for ids; built for the first range."""
        order = key_order(self.run.notes[:, KEY], self.ids)
        low, high = self.run.bounds[order].T
        return scored_rtree(RankedIntervals(low, high, order, np.empty(0)))

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        listed = self.entries.sorted_ids, self.entries.places
        tree = self.__dict__.get("range_tree", ())
        return total_bytes(self.run, listed, self.cuts.places, self.cuts.bands, tree)

    def living(self, version: int) -> KeyedIntervals:
        """Return the entries that live at a version."""
        places = np.flatnonzero(self.run.notes[:, STAMP] >> 32 > version)
        low, high = self.run.bounds[places].T
        return KeyedIntervals(low, high, self.run.notes[places, KEY], self.ids[places])


def without_dead(run: Run, version: int) -> Run:
    """Return a copy whose blocks skip the entries dead at a version; the rest is shared."""
    dead = np.flatnonzero(run.notes[:, STAMP] >> 32 <= version)
    blocks = aligned(len(run.blocks), np.float32)
    blocks[:] = run.blocks
    blocks[dead // FAN * WIDTH + dead % FAN] = np.inf
    return run._replace(blocks=blocks)


def build_run(intervals: KeyedIntervals) -> BaseRun:
    """Build a run in O(n log n)."""
    ranked = intervals.take(key_order(intervals.keys, intervals.ids))
    ranks = np.arange(len(ranked))
    index = sopt_r_64(RankedIntervals(ranked.low, ranked.high, ranks, np.empty(0)))
    assert isinstance(index.tree, BlockTree)
    tree = index.tree
    ids = ranked.ids[tree.ids]  # the tree's own ids are ranks
    notes = np.stack([ranked.keys[tree.ids], (NEVER << 32) | ids], axis=1)
    by_id = np.argsort(ids)
    run = Run(tree.blocks, tree.starts, tree.bounds, notes, tree.frame)
    sorted_ids = ids[by_id].astype(np.int32)
    entries = RunEntries(run.bounds, run.notes, sorted_ids, by_id.astype(np.int32))
    return BaseRun(run, entries, cuts_for(ranked, usual_rank(index, ranked)))


def usual_rank(index: TreeIndex, ranked: KeyedIntervals) -> int:
    """Return the rank of a typical 20th answer: the median over the middles of some intervals."""
    if not len(ranked):
        return -1
    sample = np.linspace(0, len(ranked) - 1, PROBES).astype(np.int64)
    low, high = np.clip(ranked.low[sample], -FAR, FAR), np.clip(ranked.high[sample], -FAR, FAR)
    ranks, counts = index.top_many(low / 2 + high / 2, USUAL_K)
    return int(np.median(np.where(counts == USUAL_K, ranks[:, -1], len(ranked) - 1)))


def key_order(keys: Int64s, ids: Any) -> Int64s:
    """Return the order by key, then by id; only equal keys need the slower sort."""
    order = np.argsort(keys)
    if (np.diff(keys[order]) == 0).any():
        order = np.lexsort((ids, keys))
    return order


def cuts_for(ranked: KeyedIntervals, usual: int) -> GridCuts:
    """Cut the line and the scores by a sample of intervals in rank order.

    Half of a level's bands are cut by the intervals on it, since short intervals may all be good
    ones; the other half by all intervals, since new scores may be anything. Better bands are
    narrower: the first of m bands has a share of 1 / m**2, the last nearly 2 / m.
    """
    size = len(ranked)
    height = int(np.searchsorted(GRID_SIZES, size, side="right"))
    cells = 1 << (BITS * height)
    sample = np.linspace(0, max(size - 1, 0), min(size, SAMPLE * cells)).astype(np.int64)
    bounds = np.sort(np.concatenate([ranked.low[sample], ranked.high[sample]]))
    steps = np.arange(1, cells)
    places = bounds[steps * len(bounds) // cells]
    first = np.searchsorted(places, ranked.low[sample], "right")
    last = np.searchsorted(places, ranked.high[sample], "right")
    levels, bands = grid_levels(first, last), []
    for level in range(height + 1):
        on_level = sample[levels == level]
        halves = (on_level if len(on_level) else sample, np.arange(size))
        picked = [ranks[steps * steps * len(ranks) // (cells * cells)] for ranks in halves]
        chosen = np.sort(np.concatenate(picked))[::2]
        bands.append(np.stack([ranked.keys[chosen], ranked.ids[chosen]], axis=1))
    usual_key = int(ranked.keys[usual]) if size else 0
    return GridCuts(height, places, np.stack(bands), usual_key)


def grid_levels(first: Int64s, last: Int64s) -> Int64s:
    """Return the level of a grid for intervals from cell `first` to cell `last`."""
    level = np.zeros(len(first), np.int64)
    while (wide := (last >> (BITS * level)) - (first >> (BITS * level)) > 1).any():
        level += wide
    return level
