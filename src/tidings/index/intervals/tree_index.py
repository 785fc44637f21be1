"""An index as its kernels see it: some arrays, a walk that can go on, and the walk of a batch."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.index import arguments
from tidings.index.intervals.batched_iterator import in_chunks
from tidings.index.intervals.kernels.padding import fill_rest
from tidings.index.intervals.ranges import ByScore, Ranges

Walk = Callable[[Any, float, Int64s, Int64s], int]
WalkMany = Callable[[Any, Float64s, Int64s, Int64s], None]


@dataclass(frozen=True)
class Kernels:
    """How an index is walked: `walk` writes the next ids and keeps its place in `state` numbers.

    The first three numbers of a state count the nodes, leaves and intervals looked at.
    """

    walk: Walk
    walk_many: WalkMany
    state: int


@dataclass
class Walked:
    """The interval index that is a tuple of arrays and its kernels; fulfils `IntervalIndex`."""

    name: str
    size: int
    tree: tuple[Any, ...]
    kernels: Kernels
    by_score: ByScore
    """Answers for ranges."""
    notes: dict[str, int] = field(default_factory=dict)
    """What the builder found out, for those who check the lemmas: `edges` of a SOPT-R-tree."""

    def __post_init__(self) -> None:
        self._state = np.zeros(self.kernels.state, np.int64)

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays, also of those that answer ranges, once there are any."""
        itself = self.by_score.made and self.by_score.tree is self.tree
        return self.by_score.nbytes + (0 if itself else sum(each.nbytes for each in self.tree))

    @property
    def ranges(self) -> Ranges:
        """What it answers to events that are ranges."""
        return self.by_score.ranges

    def top(self, q: float, k: int) -> Int64s:
        """Give the ids of the k best intervals that `q` stabs; fewer, if there are fewer."""
        out = np.empty(min(arguments.count("k", k), self.size), np.int64)
        state = np.zeros(self.kernels.state, np.int64)
        count = self.kernels.walk(self.tree, arguments.number("the query", q), state, out)
        self._state = state
        return out[:count]

    def top_many(self, qs: Float64s, k: int) -> tuple[Int64s, Int64s]:
        """Give a row of ids for each query, filled up with -1, and how many each has."""
        points = arguments.points("queries", qs)
        out = np.empty((len(points), arguments.width(k, len(points))), np.int64)
        counts = np.empty(len(points), np.int64)
        self.kernels.walk_many(self.tree, points, out, counts)
        fill_rest(out, counts)
        return out, counts

    def iterate(self, q: float) -> Iterator[int]:
        """Give all stabbed ids in order, looked for only as far as they are asked for."""
        walk, tree, point = self.kernels.walk, self.tree, arguments.number("the query", q)
        state = np.zeros(self.kernels.state, np.int64)
        return in_chunks(lambda out: walk(tree, point, state, out), self.size)

    def counters(self) -> dict[str, int]:
        """Give what the last `top` looked at, and the builder's notes."""
        nodes, leaves, intervals = self._state[:3].tolist()
        return {"nodes": nodes, "leaves": leaves, "intervals": intervals, **self.notes}

    def state(self) -> Int64s:
        """Give the whole state after the last `top`; what it means is said at its kernel."""
        return self._state
