"""What a scored interval index is, and the order that all of them share."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.errors import TidingsError
from tidings.index import arguments


class IntervalRanges(Protocol):
    """Answers to events that are ranges [low, high]; `mode` is "overlaps" or "contained".

    They come as those to points do, and are exactly those of `Scan`.
    """

    def top(self, low: float, high: float, k: int, mode: str = "overlaps") -> Int64s:
        """Give the ids of the k best intervals that overlap the range, or contain it."""

    def top_many(
        self, lows: Any, highs: Any, k: int, mode: str = "overlaps"
    ) -> tuple[Int64s, Int64s]:
        """Give a row of ids for each range, filled up with -1, and how many each has."""

    def iterate(self, low: float, high: float, mode: str = "overlaps") -> Iterator[int]:
        """Give the ids of all such intervals in order."""


class IntervalIndex(Protocol):
    """Intervals [low, high] with scores; ids are their places in the arrays that were given.

    Answers come by score, ties by smaller id, exactly as those of `Scan`.
    """

    @property
    def name(self) -> str:
        """What it is called in the registry."""

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays that the index holds."""

    @property
    def ranges(self) -> IntervalRanges:
        """What it answers to events that are ranges."""

    def top(self, q: float, k: int) -> Int64s:
        """Give the ids of the k best intervals that `q` stabs; fewer, if there are fewer."""

    def top_many(self, qs: Float64s, k: int) -> tuple[Int64s, Int64s]:
        """Give a row of ids for each query, filled up with -1, and how many each has."""

    def iterate(self, q: float) -> Iterator[int]:
        """Give all stabbed ids in order, looked for only as far as they are asked for."""

    def counters(self) -> dict[str, int]:
        """Give what the last `top` looked at: nodes, leaves, intervals."""


@dataclass(frozen=True)
class Ranked:
    """Intervals renumbered to ranks, best score first, ties by smaller id.

    After this no structure compares scores: a smaller rank is better.
    """

    low: Float64s
    high: Float64s
    ids: Int64s
    score: Float64s

    def __len__(self) -> int:
        return len(self.ids)


def checked_columns(low: Any, high: Any, score: Any) -> tuple[Float64s, Float64s, Float64s]:
    """Give the arrays as float64; NaN and an empty interval are refused by place."""
    lows, highs = arguments.numbers("low", low), arguments.numbers("high", high)
    scores = arguments.numbers("score", score)
    if not lows.ndim == highs.ndim == scores.ndim == 1 or not len(lows) == len(highs) == len(
        scores
    ):
        shapes = f"{lows.shape}, {highs.shape}, {scores.shape}"
        raise TidingsError(f"low, high and score are arrays of one length, not of shapes {shapes}")
    if not np.isfinite(scores).all() or (scores < 0).any():
        place = int(np.argmax(~np.isfinite(scores) | (scores < 0)))
        raise TidingsError(f"interval {place}: score {scores[place]} is not a finite number >= 0")
    if (bad := ~(lows <= highs)).any():
        place = int(np.argmax(bad))
        raise TidingsError(f"interval {place}: low {lows[place]} is above high {highs[place]}")
    return lows, highs, scores


def rank_intervals(low: Any, high: Any, score: Any) -> Ranked:
    """Check the arrays and renumber them to ranks."""
    lows, highs, scores = checked_columns(low, high, score)
    ids = np.argsort(-scores)
    if (np.diff(scores[ids]) == 0).any():  # only then is the slower sort needed
        ids = np.argsort(-scores, kind="stable")
    return Ranked(lows[ids], highs[ids], ids, scores[ids])


def filled(rows: list[Int64s], k: int) -> tuple[Int64s, Int64s]:
    """Lay rows of different lengths out as the answer of `top_many`."""
    ids = np.full((len(rows), k), -1, dtype=np.int64)
    counts = np.array([len(row) for row in rows], dtype=np.int64)
    for target, row in zip(ids, rows, strict=True):
        target[: len(row)] = row
    return ids, counts
