"""The brute force of scored intervals: look at all of them."""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.index import arguments
from tidings.index.intervals.protocol import Ranked, filled
from tidings.index.intervals.ranges import Ranges


class IntervalScan:
    """Tests every interval; reads like the definition, and judges the others."""

    name: ClassVar[str] = "scan"

    def __init__(self, intervals: Ranked) -> None:
        self._intervals = intervals

    @property
    def nbytes(self) -> int:
        """The bytes of the intervals."""
        return sum(each.nbytes for each in vars(self._intervals).values())

    def top(self, q: float, k: int) -> Int64s:
        """Give the k best; ranks are in order of score, so the first k stabbed ones."""
        every = self._intervals
        point = arguments.number("the query", q)
        stabbed = np.flatnonzero((every.low <= point) & (point <= every.high))
        return every.ids[stabbed[: arguments.count("k", k)]]

    def top_many(self, qs: Float64s, k: int) -> tuple[Int64s, Int64s]:
        """Answer one query after the other."""
        points = arguments.points("queries", qs)
        most = arguments.width(k, len(points))
        return filled([self.top(q, most) for q in points], most)

    def iterate(self, q: float) -> Iterator[int]:
        """Give all stabbed ids in order."""
        return iter(self.top(q, len(self._intervals)).tolist())

    @property
    def ranges(self) -> Ranges:
        """What it answers to ranges, by the same look at all."""
        return Ranges(self._within)

    def _within(self, window: tuple[float, float]) -> Iterator[int]:
        every = self._intervals
        there = np.flatnonzero((every.low <= window[0]) & (window[1] <= every.high))
        return iter(every.ids[there].tolist())

    def counters(self) -> dict[str, int]:
        """Say that every query looks at everything."""
        return {"nodes": 0, "leaves": 0, "intervals": len(self._intervals)}
