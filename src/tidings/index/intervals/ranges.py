"""Events that are ranges (RPS, future work): the k best intervals that overlap or contain one."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, Final

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.errors import TidingsError
from tidings.index import arguments
from tidings.index.intervals.batched_iterator import in_chunks
from tidings.index.intervals.kernels.padding import fill_rest
from tidings.index.intervals.kernels.rtree import STATE, Tree, Window, window_walk, window_walk_many
from tidings.index.intervals.protocol import Ranked, filled
from tidings.index.intervals.rtree import rtree_over
from tidings.model import validate

Within = Callable[[Window], Iterator[int]]
WithinMany = Callable[[Float64s, int], tuple[Int64s, Int64s]]

MODES: Final = ("overlaps", "contained")


@dataclass(frozen=True)
class Ranges:
    """What an index answers to ranges [low, high]; ranked as points are.

    `overlaps` asks for the intervals that have a point in common with the range, `contained` for
    those that contain all of it.
    """

    within: Within
    """Gives the ids within a window, in order, looked for only as far as they are asked for."""
    many: WithinMany | None = None
    """The same for rows of windows at once."""

    def top(self, low: float, high: float, k: int, mode: str = "overlaps") -> Int64s:
        """Give the ids of the k best intervals; fewer, if there are fewer."""
        window, most = window_of(low, high, mode), min(arguments.count("k", k), sys.maxsize)
        return np.array(list(islice(self.within(window), most)), np.int64)

    def top_many(
        self, lows: Any, highs: Any, k: int, mode: str = "overlaps"
    ) -> tuple[Int64s, Int64s]:
        """Give a row of ids for each range, filled up with -1, and how many each has."""
        windows = windows_of(lows, highs, mode)
        most = arguments.width(k, len(windows))
        if self.many is not None:
            return self.many(windows, most)
        rows = (islice(self.within((row[0], row[1])), most) for row in windows.tolist())
        return filled([np.array(list(row), np.int64) for row in rows], most)

    def iterate(self, low: float, high: float, mode: str = "overlaps") -> Iterator[int]:
        """Give the ids of all such intervals in order."""
        return self.within(window_of(low, high, mode))


def window_of(low: float, high: float, mode: str) -> Window:
    """Give what the low of an interval must not be above, and its high not below."""
    validate.choice("a range's mode", mode, MODES, TidingsError)
    start, end = (
        arguments.number("the range's low", low),
        arguments.number("the range's high", high),
    )
    if not start <= end:
        raise TidingsError(f"the range's low {start} is above its high {end}")
    return (end, start) if mode == "overlaps" else (start, end)


def windows_of(lows: Any, highs: Any, mode: str) -> Float64s:
    """Give a row for each range; refused by place."""
    low, high = arguments.numbers("lows", lows), arguments.numbers("highs", highs)
    if low.shape != high.shape or low.ndim != 1:
        raise TidingsError(f"{low.shape} lows and {high.shape} highs are not as many")
    if (bad := ~(low <= high)).any():
        place = int(np.argmax(bad))
        raise TidingsError(f"range {place}: low {low[place]} is above high {high[place]}")
    order = window_of(0, 1, mode)
    return np.stack([(low, high)[int(each)] for each in order], axis=1)


@dataclass
class ByScore:
    """A scored R-tree beside another index: its first k hits are the best k also for ranges.

    Made when a range is first asked for. The windows of a tree's inner entries are those of its
    intervals, so what it passes over is not within. A query may cost O(n).
    """

    make: Callable[[], Tree]
    kept: tuple[Any, ...] = ()
    """Arrays that the other index would not need."""

    @cached_property
    def tree(self) -> Tree:
        """The R-tree."""
        return self.make()

    @property
    def made(self) -> bool:
        """Whether it was asked for."""
        return "tree" in self.__dict__

    @property
    def nbytes(self) -> int:
        """The bytes of the tree, once there is one, and of what is kept for it."""
        arrays = (*self.kept, *self.tree) if self.made else self.kept
        return sum(each.nbytes for each in arrays)

    @property
    def ranges(self) -> Ranges:
        """Its answers."""
        return Ranges(self.within, self.within_many)

    def within(self, window: Window) -> Iterator[int]:
        """Give the ids within a window, in order."""
        tree, state = self.tree, np.zeros(STATE, np.int64)
        return in_chunks(lambda out: window_walk(tree, window, state, out), len(tree[2]))

    def within_many(self, windows: Float64s, k: int) -> tuple[Int64s, Int64s]:
        """Give a row of ids for each window."""
        out, counts = np.empty((len(windows), k), np.int64), np.empty(len(windows), np.int64)
        window_walk_many(self.tree, windows, out, counts)
        fill_rest(out, counts)
        return out, counts


def scored(intervals: Ranked) -> Tree:
    """Make a scored R-tree (RPS 2.2.3) in O(n)."""
    return rtree_over(intervals, np.arange(len(intervals)), intervals.ids)


def by_place(ranks: Any, low: Any, high: Any, ids: Any) -> Tree:
    """Make one of intervals that lie in another order, in which their ranks are these."""
    places = np.argsort(ranks)
    return scored(Ranked(low[places], high[places], ids[places].astype(np.int64), np.empty(0)))
