"""The workload of RPS 4 in one dimension, with the defaults of its Table 1.

Our reading, where the paper leaves room:
- the line [0, 1) has 100 cells (c_i); 10 regions (n_regions) of 5 cells each (v_min = v_max =
  100 / 20) lie anywhere on it, possibly overlapping, and are equally likely (skew_across = 0);
- within a region the cells are ranked by their distance from its middle, and a cell of rank r has
  weight 1 / r (skew_within = 1); a point is uniform in its cell. Queries are such points;
- a subscription is [x - l, x + l] around such a point x, with l = (rank - U) / 100, where rank is
  Zipf(0.75) over 1..100 (skew_length) and U uniform in [0, 1), so that lengths do not repeat;
- its score is 1 - l. A query stabs about 40 % of all intervals.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidings.compiled.array_types import Float64s

CELLS, REGIONS, REGION_CELLS, SKEW_LENGTH, SKEW_WITHIN = 100, 10, 5, 0.75, 1.0


@dataclass(frozen=True)
class Workload:
    low: Float64s
    high: Float64s
    score: Float64s
    queries: Float64s


def workload(size: int, queries: int, seed: int) -> Workload:
    rng = np.random.default_rng(seed)
    regions = rng.integers(0, CELLS - REGION_CELLS + 1, REGIONS)
    middle = points(rng, regions, size)
    length = (1 + rng.choice(CELLS, size, p=zipf(CELLS, SKEW_LENGTH)) - rng.random(size)) / CELLS
    return Workload(middle - length, middle + length, 1 - length, points(rng, regions, queries))


def points(rng: np.random.Generator, regions: npt.NDArray[np.int64], count: int) -> Float64s:
    by_distance = np.argsort(np.abs(np.arange(REGION_CELLS) - REGION_CELLS // 2), kind="stable")
    within = by_distance[rng.choice(REGION_CELLS, count, p=zipf(REGION_CELLS, SKEW_WITHIN))]
    return (rng.choice(regions, count) + within + rng.random(count)) / CELLS


def zipf(count: int, skew: float) -> Float64s:
    weights = np.arange(1, count + 1) ** -skew
    return weights / weights.sum()


def tiny(size: int, queries: int, seed: int) -> Workload:
    """Return short intervals anywhere, 60 of them over a point, with independent scores."""
    rng = np.random.default_rng(seed)
    low, length = rng.random(size), 120 / size * rng.random(size)
    return Workload(low, low + length, rng.random(size), rng.random(queries))
