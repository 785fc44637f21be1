"""Chooses an interval index from a sample of the intervals and the expected use."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.errors import TidingsError, shown
from tidings.index.intervals.live.index import LiveIntervals
from tidings.index.intervals.protocol import (
    IntervalAnswers,
    IntervalIndex,
    IntervalRanges,
    RankedIntervals,
)
from tidings.index.intervals.sopt_r_simd import sopt_r_64
from tidings.index.intervals.topk_table import TopkTable
from tidings.model import validate
from tidings.model.named_parts import LazyPart

SAMPLE: Final = 2048
DEPTH: Final = 32
ONE_BLOCK: Final = 64

CHOICES: Final[dict[str, Callable[..., IntervalIndex]]] = {
    "ir": LazyPart("tidings.index.intervals.papers.ir_tree:IrTree"),
    "live": LiveIntervals,
    "sopt-r-64": sopt_r_64,
    "topk-table": TopkTable,
}
UPDATABLE: Final = ("ir", "live")


@dataclass(frozen=True)
class ExpectedUse:
    """The usual k, the updates per query, and the bytes that an interval may take."""

    k: int = 20
    updates_per_query: float = 0.0
    budget: float = 64.0

    def __post_init__(self) -> None:
        try:
            validate.count("k", self.k)
            validate.number("updates_per_query", self.updates_per_query)
            validate.number("budget", self.budget)
        except TidingsError as error:
            raise TidingsError(f"{error}; k is at least 1, the others are not below 0") from None


@dataclass(frozen=True)
class IntervalStats:
    """Estimates from a sample of the intervals."""

    size: int
    stabbed: float
    """How many intervals contain a point where one of them begins, on average."""
    listed: float
    """The share of intervals that appear in top-K lists; rather too high than too low."""

    def table_bytes(self, depth: int) -> float:
        """Estimate the bytes per interval of a top-K table: two lists for each listed one."""
        return 2 * self.listed * (4 * min(depth, self.stabbed) + 17)


def stats_of(intervals: RankedIntervals, depth: int) -> IntervalStats:
    """Estimate from at most 2,048 intervals, spread over the ranks, so that n does not matter."""
    size = len(intervals)
    if size == 0:
        return IntervalStats(0, 0.0, 0.0)
    sample = np.linspace(0, size - 1, min(size, SAMPLE)).astype(np.int64)
    low, high = intervals.low[sample], intervals.high[sample]
    stabs = (low[None, :] <= low[:, None]) & (low[:, None] <= high[None, :])
    share = size / len(sample)
    better = np.tril(stabs, -1).sum(axis=1) * share
    stabbed = float(stabs.sum(axis=1).mean() * share)
    return IntervalStats(size, stabbed, float((better < depth).mean()))


@dataclass(frozen=True)
class IndexChoice:
    """An index by name, its options, and the reason for it."""

    name: str
    options: dict[str, Any]
    reason: str


def choose(stats: IntervalStats, use: ExpectedUse) -> IndexChoice:
    """Return the choice of the first rule that applies."""
    depth = max(DEPTH, use.k)
    table = stats.table_bytes(depth)
    if use.updates_per_query > 0:
        return IndexChoice("live", {}, "intervals change, and it takes changes while it is served")
    if stats.size <= ONE_BLOCK:
        return IndexChoice(
            "sopt-r-64", {}, "all intervals fit one block, which is compared at once"
        )
    if table <= use.budget:
        fits = f"the {depth} best of every cell take about {table:.0f} bytes an interval"
        return IndexChoice("topk-table", {"depth": depth}, f"{fits}, within {use.budget:g}")
    above = f"a top-{depth} table would take about {table:.0f} bytes an interval"
    return IndexChoice("sopt-r-64", {}, f"{above}, more than {use.budget:g}")


class AutoIntervals:
    """An index chosen automatically, or by `use`; `describe` names it and the reason.

    >>> from tidings.index.intervals.protocol import rank_intervals
    >>> index = AutoIntervals(rank_intervals([0, 5, 2], [9, 6, 4], [1.0, 3.0, 2.0]), k=2)
    >>> index.top(3, 2).tolist()
    [2, 0]
    >>> print(index.describe())
    sopt-r-64, since all intervals fit one block, which is compared at once.
    3 intervals, a point stabs about 1.7; expected: k = 2, 0 updates a query.
    """

    name: ClassVar[str] = "auto"

    def __init__(
        self,
        intervals: RankedIntervals,
        use: Any = None,
        *,
        k: int = 20,
        updates_per_query: float = 0.0,
        budget: float = 64.0,
    ) -> None:
        self.expected = ExpectedUse(k, updates_per_query, budget)
        self.stats = stats_of(intervals, max(DEPTH, self.expected.k))
        self.choice = choose(self.stats, self.expected)
        if use is not None:
            if not isinstance(use, str) or use not in CHOICES:
                known = ", ".join(CHOICES)
                raise TidingsError(f"auto cannot use {shown(use)}; expected one of: {known}")
            self.choice = IndexChoice(use, {}, "it was asked for")
        self.chosen = CHOICES[self.choice.name](intervals, **self.choice.options)

    def describe(self) -> str:
        """Return which index was chosen, why, and from which estimates."""
        stats, expected = self.stats, self.expected
        return (
            f"{self.choice.name}, since {self.choice.reason}.\n"
            f"{stats.size:,} intervals, a point stabs about {stats.stabbed:,.1f}; "
            f"expected: k = {expected.k}, {expected.updates_per_query:g} updates a query."
        )

    @property
    def nbytes(self) -> int:
        """The bytes of the chosen index."""
        return self.chosen.nbytes

    @property
    def ranges(self) -> IntervalRanges:
        return self.chosen.ranges

    def top(self, q: float, k: int) -> Int64s:
        """Return the ids of the k best intervals that `q` stabs; fewer if fewer exist."""
        return self.chosen.top(q, k)

    def top_many(self, qs: Float64s, k: int) -> IntervalAnswers:
        return self.chosen.top_many(qs, k)

    def iterate(self, q: float) -> Iterator[int]:
        """Yield all stabbed ids in order, lazily."""
        return self.chosen.iterate(q)

    def counters(self) -> dict[str, int]:
        return self.chosen.counters()

    def insert(self, low: float, high: float, score: float) -> int:
        """Insert an interval, if the chosen index can, and return its id."""
        id: int = self._updatable().insert(low, high, score)
        return id

    def delete(self, id: int) -> None:
        """Delete an interval by id, if the chosen index can."""
        self._updatable().delete(id)

    def rescore(self, id: int, score: float) -> None:
        """Change the score of an interval, if the chosen index can."""
        self._updatable().rescore(id, score)

    def replace(self, id: int, low: float, high: float, score: float) -> None:
        """Change the bounds and the score of an interval, if the chosen index can."""
        self._updatable().replace(id, low, high, score)

    def _updatable(self) -> Any:
        if self.choice.name not in UPDATABLE:
            raise TidingsError(
                f"{self.choice.name} takes no changes; build it with updates_per_query above 0"
            )
        return self.chosen
