"""The part of a live index that was built: a SOPT-R-tree whose dead are stamped."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np

from tidings.compiled.aligned import aligned
from tidings.compiled.array_types import Float64s, Int64s
from tidings.index.intervals.kernels.delta_grid import BITS, NEVER
from tidings.index.intervals.kernels.live import KEY, STAMP, Listed, Old, Run
from tidings.index.intervals.kernels.rtree import Tree
from tidings.index.intervals.kernels.sopt_r_simd import FAN, WIDTH
from tidings.index.intervals.protocol import Ranked
from tidings.index.intervals.ranges import scored
from tidings.index.intervals.sopt_r_simd import sopt_r_64
from tidings.index.intervals.tree_index import Walked

SIZES: Final = (128, 2048, 65536)
"""From these sizes on the grid over a run has 16, 256, 4,096 cells."""

POINTS: Final = 64
USUAL: Final = 20
FAR: Final = 1e308

SAMPLE: Final = 16
"""So many bounds are looked at for each cell."""


@dataclass(frozen=True)
class Entries:
    """Intervals by id, keys in place of scores: smaller is better."""

    low: Float64s
    high: Float64s
    keys: Int64s
    ids: Int64s

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def bounds(self) -> tuple[Float64s, Float64s]:
        """Lows and highs."""
        return self.low, self.high

    def taken(self, order: Any) -> "Entries":
        """Give some of them, or all in another order."""
        return Entries(self.low[order], self.high[order], self.keys[order], self.ids[order])


@dataclass(frozen=True)
class Cuts:
    """Where a grid cuts the line and the scores: cells and bands of about as many entries each."""

    height: int
    places: Float64s
    bands: Int64s
    """Rows (key, id) for each level of the grid."""
    usual: int
    """The key of a usual 20th answer."""


@dataclass(eq=False)
class Built:
    """A run, of which nothing but stamps on its dead is ever written, and how many these are."""

    run: Run
    listed: Listed
    cuts: Cuts
    dead: int = field(default=0)

    def __len__(self) -> int:
        return len(self.run[3])

    @cached_property
    def old(self) -> Old:
        """What a change needs of it."""
        return self.run[2], self.run[3], self.listed

    @property
    def ids(self) -> Int64s:
        """The ids by place."""
        ids: Int64s = self.run[3][:, STAMP] & 0xFFFFFFFF
        return ids

    @cached_property
    def by_score(self) -> Tree:
        """A scored R-tree over the same entries, places in it for ids; made when a range asks."""
        order = in_order(self.run[3][:, KEY], self.ids)
        low, high = self.run[2][order].T
        return scored(Ranked(low, high, order, np.empty(0)))

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        extra = self.__dict__.get("by_score", ())
        arrays: list[Any] = [*self.run, *self.listed, self.cuts.places, self.cuts.bands, *extra]
        return sum(each.nbytes for each in arrays)

    def living(self, version: int) -> Entries:
        """Give what lives at a version."""
        there = np.flatnonzero(self.run[3][:, STAMP] >> 32 > version)
        low, high = self.run[2][there].T
        return Entries(low, high, self.run[3][there, KEY], self.ids[there])


def without_dead(run: Run, version: int) -> Run:
    """Give a copy that leads to nothing that is dead at a version; all but the blocks is shared."""
    dead = np.flatnonzero(run[3][:, STAMP] >> 32 <= version)
    blocks = aligned(len(run[0]), np.float32)
    blocks[:] = run[0]
    blocks[dead // FAN * WIDTH + dead % FAN] = np.inf
    return (blocks, *run[1:])


def built(entries: Entries) -> Built:
    """Build a run in O(n log n)."""
    entries = entries.taken(in_order(entries.keys, entries.ids))
    ranks = np.arange(len(entries))
    index = sopt_r_64(Ranked(entries.low, entries.high, ranks, np.empty(0)))
    tree: Any = index.tree
    placed = tree[3]
    ids = entries.ids[placed]
    notes = np.stack([entries.keys[placed], (NEVER << 32) | ids], axis=1)
    by_id = np.argsort(ids)
    listed = ids[by_id].astype(np.int32), by_id.astype(np.int32)
    run = (tree[0], tree[1], tree[2], notes, tree[4])
    return Built(run, listed, cuts_for(entries, usual_rank(index, entries)))


def usual_rank(index: Walked, entries: Entries) -> int:
    """Give the rank of a usual 20th answer: the median over the middles of some intervals."""
    if not len(entries):
        return -1
    some = np.linspace(0, len(entries) - 1, POINTS).astype(np.int64)
    points = np.clip(entries.low[some], -FAR, FAR) / 2 + np.clip(entries.high[some], -FAR, FAR) / 2
    ranks, counts = index.top_many(points, USUAL)
    return int(np.median(np.where(counts == USUAL, ranks[:, -1], len(entries) - 1)))


def in_order(keys: Int64s, ids: Any) -> Int64s:
    """Give the order by key, then by id; the slower sort only where keys are equal."""
    order = np.argsort(keys)
    if (np.diff(keys[order]) == 0).any():
        order = np.lexsort((ids, keys))
    return order


def cuts_for(entries: Entries, usual: int) -> Cuts:
    """Cut the line and the scores of entries, which are in order, by a sample of them.

    Half of a level's bands are cut by what lies on it: short intervals may all be good ones. The
    other half by all, since new scores may be any. The better, the narrower: the first of m bands
    has a part of m * m, the last nearly twice that of m.
    """
    size = len(entries)
    height = int(np.searchsorted(SIZES, size, side="right"))
    cells = 1 << (BITS * height)
    some = np.linspace(0, max(size - 1, 0), min(size, SAMPLE * cells)).astype(np.int64)
    bounds = np.sort(np.concatenate([entries.low[some], entries.high[some]]))
    at = np.arange(1, cells)
    places = bounds[at * len(bounds) // cells]
    first, last = (np.searchsorted(places, each[some], "right") for each in entries.bounds)
    levels, bands = levels_of(first, last), []
    for level in range(height + 1):
        there = some[levels == level]
        halves = (there if len(there) else some, np.arange(size))
        picked = [each[at * at * len(each) // (cells * cells)] for each in halves]
        chosen = np.sort(np.concatenate(picked))[::2]
        bands.append(np.stack([entries.keys[chosen], entries.ids[chosen]], axis=1))
    usual_key = int(entries.keys[usual]) if size else 0
    return Cuts(height, places, np.stack(bands), usual_key)


def levels_of(first: Int64s, last: Int64s) -> Int64s:
    """Give the level of a grid on which each lies, from its first to its last cell."""
    level = np.zeros(len(first), np.int64)
    while (wide := (last >> (BITS * level)) - (first >> (BITS * level)) > 1).any():
        level += wide
    return level
