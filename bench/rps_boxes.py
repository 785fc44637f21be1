"""The workload of RPS 4 in d dimensions, and one where few attributes of many are constrained.

Our reading, where the paper leaves room: as in rps.py, for each dimension independently; a region
has the d-th root of 1/20 of the cells on a side (v_min = v_max = 100^d / 20), at least 5. The
weight of an interval is 1 - l; the score of a subscription for exact matching is uniform (`score`),
or the mean of its weights, which works against those that match most (`score_paper`).
"""

from dataclasses import dataclass

import numpy as np
from rps import CELLS, REGION_CELLS, REGIONS, SKEW_LENGTH, SKEW_WITHIN, zipf

from tidings.compiled.array_types import Float64s


@dataclass(frozen=True)
class Boxes:
    low: Float64s
    high: Float64s
    weight: Float64s
    score: Float64s
    events: Float64s

    @property
    def score_paper(self) -> Float64s:
        return self.weight.mean(axis=1)


def boxes(size: int, attributes: int, events: int, seed: int, shrink: float = 1.0) -> Boxes:
    """Return boxes whose lengths are divided by `shrink`: above 1, fewer match exactly."""
    rng = np.random.default_rng(seed)
    side = max(REGION_CELLS, round(CELLS * 20 ** (-1 / attributes)))
    regions = rng.integers(0, CELLS - side + 1, (REGIONS, attributes))
    low, high = points(rng, regions, side, size), np.empty((size, attributes))
    weight = np.empty((size, attributes))
    share = zipf(CELLS, SKEW_LENGTH)
    for dimension in range(attributes):
        rank = 1 + rng.choice(CELLS, size, p=share)
        length = (rank - rng.random(size)) / CELLS / shrink
        high[:, dimension] = low[:, dimension] + length
        low[:, dimension] -= length
        weight[:, dimension] = 1 - length
    return Boxes(low, high, weight, rng.random(size), points(rng, regions, side, events))


def points(rng: np.random.Generator, regions: np.ndarray, side: int, count: int) -> Float64s:
    by_distance = np.argsort(np.abs(np.arange(side) - side // 2), kind="stable")
    share, region = zipf(side, SKEW_WITHIN), rng.integers(0, len(regions), count)
    points = np.empty((count, regions.shape[1]))
    for dimension in range(regions.shape[1]):
        within = by_distance[rng.choice(side, count, p=share)]
        points[:, dimension] = (regions[region, dimension] + within + rng.random(count)) / CELLS
    return points


def few_of_many(size: int, attributes: int, events: int, seed: int) -> Boxes:
    """Return boxes over 2 to 8 of all attributes, Zipf(1); an event has all of them."""
    rng = np.random.default_rng(seed)
    every = boxes(size, attributes, events, seed)
    share = zipf(attributes, 1.0)
    free = np.ones((size, attributes), np.bool_)
    for _ in range(8):
        some = np.flatnonzero(rng.random(size) < 5 / 8)
        free[some, rng.choice(attributes, len(some), p=share)] = False
    every.low[free], every.high[free] = -np.inf, np.inf
    return every
