"""The protocol of scored interval indexes, and the order that all of them share."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.errors import TidingsError, shown
from tidings.index import arguments


class IntervalAnswers(NamedTuple):
    """Answers to many queries: a row of ids for each, padded with -1, and how many each row has."""

    ids: Int64s
    counts: Int64s


class IntervalRanges(Protocol):
    """Answers to events that are ranges [low, high]; `mode` is "overlaps" or "contained".

    They have the form and order of the answers to points, and equal those of the scan.
    """

    def top(self, low: float, high: float, k: int, mode: str = "overlaps") -> Int64s:
        """Return the ids of the k best intervals that overlap the range, or contain it."""

    def top_many(self, lows: Any, highs: Any, k: int, mode: str = "overlaps") -> IntervalAnswers:
        """Return the ids of the k best of each range."""

    def iterate(self, low: float, high: float, mode: str = "overlaps") -> Iterator[int]:
        """Yield the ids of all such intervals in order."""


class IntervalIndex(Protocol):
    """Intervals [low, high] with scores; an id is the interval's position in the input arrays.

    Answers are ordered by score, ties by smaller id, and equal those of the scan.
    """

    @property
    def name(self) -> str:
        """The name in the registry."""

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays that the index holds."""

    @property
    def ranges(self) -> IntervalRanges:
        """Answers to events that are ranges."""

    def top(self, q: float, k: int) -> Int64s:
        """Return the ids of the k best intervals that `q` stabs; fewer if fewer exist."""

    def top_many(self, qs: Float64s, k: int) -> IntervalAnswers:
        """Return the ids of the k best of each query."""

    def iterate(self, q: float) -> Iterator[int]:
        """Yield all stabbed ids in order, lazily."""

    def counters(self) -> dict[str, int]:
        """Return how many nodes, leaves and intervals the last `top` visited."""


@dataclass(frozen=True)
class RankedIntervals:
    """Intervals renumbered by rank, best score first, ties by smaller id.

    Structures built from ranks never compare scores: a smaller rank is better.
    """

    low: Float64s
    high: Float64s
    ids: Int64s
    score: Float64s

    def __len__(self) -> int:
        return len(self.ids)


def checked_columns(low: Any, high: Any, score: Any) -> tuple[Float64s, Float64s, Float64s]:
    """Return the arrays as float64; NaN and empty intervals are refused by position."""
    lows, highs = arguments.numbers("low", low), arguments.numbers("high", high)
    scores = arguments.numbers("score", score)
    if lows.ndim != 1 or not lows.shape == highs.shape == scores.shape:
        shapes = f"{lows.shape}, {highs.shape}, {scores.shape}"
        raise TidingsError(f"low, high and score must be arrays of one length, not {shapes}")
    if not np.isfinite(scores).all() or (scores < 0).any():
        place = int(np.argmax(~np.isfinite(scores) | (scores < 0)))
        raise TidingsError(f"interval {place}: score {scores[place]} is not a finite number >= 0")
    if (empty := ~(lows <= highs)).any():
        place = int(np.argmax(empty))
        raise TidingsError(f"interval {place}: low {lows[place]} is above high {highs[place]}")
    return lows, highs, scores


def checked_score(score: Any) -> float:
    """Return a score as a finite float >= 0."""
    value = arguments.number("the score", score)
    if not 0 <= value < math.inf:
        raise TidingsError(f"score {shown(score)} is not a finite number >= 0")
    return value


def checked_bounds(label: str, low: Any, high: Any) -> tuple[float, float]:
    """Return the bounds of an interval that is not empty."""
    start, end = arguments.number(f"{label}: low", low), arguments.number(f"{label}: high", high)
    if not start <= end:
        raise TidingsError(f"{label}: low {shown(low)} is above high {shown(high)}")
    return start, end


def score_keys(scores: Float64s) -> Int64s:
    """Return integers that ascend as scores fall: the bits of floats >= 0 have their order."""
    return -(scores + 0.0).view(np.int64)  # + 0.0 turns -0.0 into 0.0


def rank_intervals(low: Any, high: Any, score: Any) -> RankedIntervals:
    """Check the arrays and renumber the intervals by rank."""
    lows, highs, scores = checked_columns(low, high, score)
    ids = np.argsort(-scores)
    if (np.diff(scores[ids]) == 0).any():  # only ties need the slower, stable sort
        ids = np.argsort(-scores, kind="stable")
    return RankedIntervals(lows[ids], highs[ids], ids, scores[ids])


def padded_rows(rows: list[Int64s], k: int) -> IntervalAnswers:
    """Return rows of different lengths, padded to k ids."""
    ids = np.full((len(rows), k), -1, dtype=np.int64)
    counts = np.array([len(row) for row in rows], dtype=np.int64)
    for target, row in zip(ids, rows, strict=True):
        target[: len(row)] = row
    return IntervalAnswers(ids, counts)
