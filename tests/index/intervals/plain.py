"""Intervals on few numbers, so that ties and equal ends are common, and answers in plain Python."""

import math

import numpy as np
from hypothesis import strategies as st

from tidings.index.intervals.protocol import RankedIntervals, rank_intervals

Row = tuple[float, float, float]
ends = st.one_of(st.integers(0, 6).map(float), st.sampled_from([-math.inf, math.inf]))
rows = st.lists(
    st.tuples(ends, ends, st.integers(0, 3).map(float)).map(
        lambda row: (min(row[:2]), max(row[:2]), row[2])
    ),
    max_size=20,
)
POINTS = [-math.inf, -1.0, 0.0, 2.0, 2.5, 3.0, 6.0, 7.0, math.inf, math.nan]


def ranked(drawn: list[Row]) -> RankedIntervals:
    low, high, score = np.array(drawn, float).reshape(-1, 3).T
    return rank_intervals(low, high, score)


def many_rows(size: int, spread: int = 12) -> list[Row]:
    """Return more intervals than a node holds."""
    rng = np.random.default_rng(size)
    low = rng.integers(0, spread, size)
    columns = low, low + rng.integers(0, 4, size), rng.integers(0, 5, size)
    return [(float(a), float(b), float(c)) for a, b, c in zip(*columns, strict=True)]


def within(drawn: list[Row], below: float, above: float) -> list[int]:
    """Return the ids with low <= below and above <= high, best first, ties by smaller id."""
    found = [
        (-score, id)
        for id, (low, high, score) in enumerate(drawn)
        if low <= below and above <= high
    ]
    return [id for _, id in sorted(found)]


def stabbed(drawn: list[Row], q: float) -> list[int]:
    return within(drawn, q, q)
