"""The workload of RPS 4, with the parameters of its Table 1: Zipfian points, intervals and boxes.

Our reading, where the paper leaves room:
- each dimension [0, 1) has `cells` cells (c_i); `regions` hyper-rectangles (n_regions) lie
  anywhere, possibly overlapping, and the r-th is chosen with a weight of 1 / r^skew_across;
- a region has the share `volume` of all cells (v_min = v_max = 100^d / 20), so the d-th root of
  it on each side, and at least 5 cells;
- within a region the cells of each dimension are ranked by their distance from its middle, and a
  cell of rank r has the weight 1 / r^skew_within; a point is uniform in its cell. Queries are such
  points;
- a subscription is [x - l, x + l] around such a point x, with l = (rank - U) / cells, where rank is
  Zipf(skew_length) over 1..cells and U uniform in [0, 1), so that lengths do not repeat;
- the score of an interval is 1 - l. A query stabs about 40 % of all intervals.
"""

from dataclasses import dataclass

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.lab.workloads.zipf import zipf_weights

FEWEST_CELLS = 5


@dataclass(frozen=True)
class ZipfSpace:
    """The parameters of the generator, with the defaults of RPS Table 1."""

    regions: int = 10
    cells: int = 100
    volume: float = 1 / 20
    skew_across: float = 0.0
    skew_within: float = 1.0
    skew_length: float = 0.75


TABLE_1 = ZipfSpace()


@dataclass(frozen=True)
class ScoredIntervals:
    """Intervals with scores, and points to query them with."""

    low: Float64s
    high: Float64s
    score: Float64s
    queries: Float64s


@dataclass(frozen=True)
class WeightedBoxes:
    """Boxes with a weight per dimension, and events to match.

    `score` is uniform, for exact matching; `score_paper` is the mean of the weights, which works
    against those that match most.
    """

    low: Float64s
    high: Float64s
    weight: Float64s
    score: Float64s
    events: Float64s

    @property
    def score_paper(self) -> Float64s:
        """The means of the weights."""
        means: Float64s = self.weight.mean(axis=1)
        return means


def intervals(size: int, queries: int, seed: int, space: ZipfSpace = TABLE_1) -> ScoredIntervals:
    """Return intervals and queries in one dimension."""
    rng = np.random.default_rng(seed)
    side = region_side(space, 1)
    corners = rng.integers(0, space.cells - side + 1, (space.regions, 1))
    middle = points(rng, space, corners, side, size)[:, 0]
    length = lengths(rng, space, size)
    queried = points(rng, space, corners, side, queries)[:, 0]
    return ScoredIntervals(middle - length, middle + length, 1 - length, queried)


def boxes(
    size: int,
    dimensions: int,
    events: int,
    seed: int,
    space: ZipfSpace = TABLE_1,
    shrink: float = 1.0,
) -> WeightedBoxes:
    """Return boxes whose lengths are divided by `shrink`: above 1, fewer match exactly."""
    rng = np.random.default_rng(seed)
    side = region_side(space, dimensions)
    corners = rng.integers(0, space.cells - side + 1, (space.regions, dimensions))
    low = points(rng, space, corners, side, size)
    high, weight = np.empty((size, dimensions)), np.empty((size, dimensions))
    for dimension in range(dimensions):
        length = lengths(rng, space, size) / shrink
        high[:, dimension] = low[:, dimension] + length
        low[:, dimension] -= length
        weight[:, dimension] = 1 - length
    return WeightedBoxes(
        low, high, weight, rng.random(size), points(rng, space, corners, side, events)
    )


def region_side(space: ZipfSpace, dimensions: int) -> int:
    """Return the cells on a side of a region."""
    return max(FEWEST_CELLS, round(space.cells * float(space.volume ** (1 / dimensions))))


def points(
    rng: np.random.Generator, space: ZipfSpace, corners: Int64s, side: int, count: int
) -> Float64s:
    """Return points in regions, given the lowest cell of each region in each dimension."""
    by_distance = np.argsort(np.abs(np.arange(side) - side // 2), kind="stable")
    within = zipf_weights(side, space.skew_within)
    region = rng.choice(len(corners), count, p=zipf_weights(len(corners), space.skew_across))
    result = np.empty((count, corners.shape[1]))
    for dimension in range(corners.shape[1]):
        cell = corners[region, dimension] + by_distance[rng.choice(side, count, p=within)]
        result[:, dimension] = (cell + rng.random(count)) / space.cells
    return result


def lengths(rng: np.random.Generator, space: ZipfSpace, count: int) -> Float64s:
    """Return half lengths in (0, 1]."""
    ranks = 1 + rng.choice(space.cells, count, p=zipf_weights(space.cells, space.skew_length))
    return (ranks - rng.random(count)) / space.cells


def short_intervals(size: int, queries: int, seed: int) -> ScoredIntervals:
    """Return short intervals anywhere, 60 of them over a point, with independent scores."""
    rng = np.random.default_rng(seed)
    low, length = rng.random(size), 120 / size * rng.random(size)
    return ScoredIntervals(low, low + length, rng.random(size), rng.random(queries))


def few_of_many(size: int, dimensions: int, events: int, seed: int) -> WeightedBoxes:
    """Return boxes over 2 to 8 of all dimensions, Zipf(1); an event has all of them."""
    rng = np.random.default_rng(seed)
    every = boxes(size, dimensions, events, seed)
    share = zipf_weights(dimensions, 1.0)
    free = np.ones((size, dimensions), np.bool_)
    for _ in range(8):
        some = np.flatnonzero(rng.random(size) < 5 / 8)
        free[some, rng.choice(dimensions, len(some), p=share)] = False
    every.low[free], every.high[free] = -np.inf, np.inf
    return every
