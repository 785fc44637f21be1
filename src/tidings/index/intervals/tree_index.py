"""An interval index made of arrays and two kernels: a resumable walk, and the walk of a batch."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.compiled.arrays import total_bytes
from tidings.index import arguments
from tidings.index.intervals.kernels.rtree import fill_rest
from tidings.index.intervals.protocol import IntervalAnswers
from tidings.index.intervals.ranges import RangeAnswers
from tidings.index.intervals.rtree import RangeTree, in_batches


@dataclass(frozen=True)
class WalkKernels:
    """How an index is walked: `walk` writes the next ids and resumes from its state.

    A state is an array of `state_size` integers; the first three count the nodes, leaves and
    intervals visited.
    """

    walk: Callable[[Any, float, Int64s, Int64s], int]
    walk_many: Callable[[Any, Float64s, Int64s, Int64s], None]
    state_size: int


@dataclass
class TreeIndex:
    """A tuple of arrays and its kernels, as an `IntervalIndex`."""

    name: str
    size: int
    tree: tuple[Any, ...]
    kernels: WalkKernels
    range_tree: RangeTree
    notes: dict[str, int] = field(default_factory=dict)
    """Counts from the build, for checks of the lemmas: the `edges` of a SOPT-R-tree."""

    def __post_init__(self) -> None:
        self._state = np.zeros(self.kernels.state_size, np.int64)

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays, including those that answer ranges, once built."""
        shared = self.range_tree.is_built and self.range_tree.tree is self.tree
        return self.range_tree.nbytes + (0 if shared else total_bytes(self.tree))

    @property
    def ranges(self) -> RangeAnswers:
        return self.range_tree.answers

    def top(self, q: float, k: int) -> Int64s:
        """Return the ids of the k best intervals that `q` stabs; fewer if fewer exist."""
        out = np.empty(min(arguments.count("k", k), self.size), np.int64)
        state = np.zeros(self.kernels.state_size, np.int64)
        count = self.kernels.walk(self.tree, arguments.number("the query", q), state, out)
        self._state = state
        return out[:count]

    def top_many(self, qs: Float64s, k: int) -> IntervalAnswers:
        points = arguments.points("queries", qs)
        out = np.empty((len(points), arguments.result_width(k, len(points))), np.int64)
        counts = np.empty(len(points), np.int64)
        self.kernels.walk_many(self.tree, points, out, counts)
        fill_rest(out, counts)
        return IntervalAnswers(out, counts)

    def iterate(self, q: float) -> Iterator[int]:
        """Yield all stabbed ids in order, lazily."""
        walk, tree, point = self.kernels.walk, self.tree, arguments.number("the query", q)
        state = np.zeros(self.kernels.state_size, np.int64)
        return in_batches(lambda out: walk(tree, point, state, out), self.size)

    def counters(self) -> dict[str, int]:
        """Return counts of the visits of the last `top`, and the notes of the build."""
        nodes, leaves, intervals = self._state[:3].tolist()
        return {"nodes": nodes, "leaves": leaves, "intervals": intervals, **self.notes}

    def state(self) -> Int64s:
        """Return the walk state after the last `top`; the kernel documents its fields."""
        return self._state
