"""Events that are ranges (RPS, future work): the k best intervals that overlap or contain one."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.errors import TidingsError
from tidings.index import arguments
from tidings.index.intervals.protocol import IntervalAnswers, padded_rows
from tidings.model import validate

MODES: Final = ("overlaps", "contained")


class QueryBounds(NamedTuple):
    """A query over bounds: an interval is within if low <= `below` and `above` <= high.

    A range [a, b] becomes (b, a) for "overlaps" and (a, b) for "contained"; a point q is (q, q).
    """

    below: float
    above: float


@dataclass(frozen=True)
class RangeAnswers:
    """Answers of an index to ranges [low, high], ordered as those to points.

    Mode `overlaps` selects the intervals that share a point with the range, `contained` those
    that contain all of it.
    """

    within: Callable[[QueryBounds], Iterator[int]]
    """Yields the ids within a window, in order, lazily."""
    within_many: Callable[[Float64s, int], IntervalAnswers] | None = None
    """The same for an array of windows at once, with k."""

    def top(self, low: float, high: float, k: int, mode: str = "overlaps") -> Int64s:
        """Return the ids of the k best intervals; fewer if fewer exist."""
        window, most = window_of(low, high, mode), min(arguments.count("k", k), sys.maxsize)
        return np.array(list(islice(self.within(window), most)), np.int64)

    def top_many(self, lows: Any, highs: Any, k: int, mode: str = "overlaps") -> IntervalAnswers:
        windows = windows_of(lows, highs, mode)
        width = arguments.result_width(k, len(windows))
        if self.within_many is not None:
            return self.within_many(windows, width)
        rows = (islice(self.within(QueryBounds(*row)), width) for row in windows.tolist())
        return padded_rows([np.array(list(row), np.int64) for row in rows], width)

    def iterate(self, low: float, high: float, mode: str = "overlaps") -> Iterator[int]:
        return self.within(window_of(low, high, mode))


def window_of(low: float, high: float, mode: str) -> QueryBounds:
    """Return the window of one range."""
    validate.choice("a range's mode", mode, MODES, TidingsError)
    start = arguments.number("the range's low", low)
    end = arguments.number("the range's high", high)
    if not start <= end:
        raise TidingsError(f"the range's low {start} is above its high {end}")
    return QueryBounds(end, start) if mode == "overlaps" else QueryBounds(start, end)


def windows_of(lows: Any, highs: Any, mode: str) -> Float64s:
    """Return a row (below, above) per range; wrong ranges are refused by position."""
    low, high = arguments.numbers("lows", lows), arguments.numbers("highs", highs)
    if low.shape != high.shape or low.ndim != 1:
        raise TidingsError(f"lows of shape {low.shape} do not fit highs of shape {high.shape}")
    if (empty := ~(low <= high)).any():
        place = int(np.argmax(empty))
        raise TidingsError(f"range {place}: low {low[place]} is above high {high[place]}")
    validate.choice("a range's mode", mode, MODES, TidingsError)
    return np.stack([high, low] if mode == "overlaps" else [low, high], axis=1)
