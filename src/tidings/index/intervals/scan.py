"""Brute force over scored intervals: every interval is tested. Judges the other indexes."""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.compiled.arrays import total_bytes
from tidings.index import arguments
from tidings.index.intervals.protocol import IntervalAnswers, RankedIntervals, padded_rows
from tidings.index.intervals.ranges import QueryBounds, RangeAnswers


class IntervalScan:
    """Tests every interval, as the definition says."""

    name: ClassVar[str] = "scan"

    def __init__(self, intervals: RankedIntervals) -> None:
        self._intervals = intervals

    @property
    def nbytes(self) -> int:
        """The bytes of the intervals."""
        return total_bytes(*vars(self._intervals).values())

    @property
    def ranges(self) -> RangeAnswers:
        """Answers to ranges, by the same test of every interval."""
        return RangeAnswers(self._within)

    def top(self, q: float, k: int) -> Int64s:
        """Return the k best: ranks ascend, so these are the first k stabbed ones."""
        intervals = self._intervals
        point = arguments.number("the query", q)
        stabbed = np.flatnonzero((intervals.low <= point) & (point <= intervals.high))
        return intervals.ids[stabbed[: arguments.count("k", k)]]

    def top_many(self, qs: Float64s, k: int) -> IntervalAnswers:
        """Answer the queries one by one."""
        points = arguments.points("queries", qs)
        width = arguments.result_width(k, len(points))
        return padded_rows([self.top(q, width) for q in points], width)

    def iterate(self, q: float) -> Iterator[int]:
        return iter(self.top(q, len(self._intervals)).tolist())

    def counters(self) -> dict[str, int]:
        """Return the counters: every query tests every interval."""
        return {"nodes": 0, "leaves": 0, "intervals": len(self._intervals)}

    def _within(self, window: QueryBounds) -> Iterator[int]:
        intervals = self._intervals
        inside = (intervals.low <= window.below) & (window.above <= intervals.high)
        return iter(intervals.ids[np.flatnonzero(inside)].tolist())
