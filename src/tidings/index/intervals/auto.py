"""The index that fits: chosen from the intervals and from what is wanted of it, with the reason."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from tidings.compiled.array_types import Float64s, Int64s
from tidings.errors import TidingsError, shown
from tidings.index.intervals.live.index import Live
from tidings.index.intervals.papers.ir_tree import IrTree
from tidings.index.intervals.protocol import IntervalIndex, IntervalRanges, Ranked
from tidings.index.intervals.sopt_r_simd import sopt_r_64
from tidings.index.intervals.topk_table import TopkTable
from tidings.model import validate

SAMPLE: Final = 2048
DEPTH: Final = 32
ONE_BLOCK: Final = 64


@dataclass(frozen=True)
class Wanted:
    """What the index is for: the usual k, updates for each query, bytes an interval may take."""

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
class Facts:
    """What a sample says about the intervals."""

    size: int
    stabbed: float
    """How many intervals contain a point where one of them begins, on average."""
    listed: float
    """The share of intervals that come into the top-K lists; rather too high than too low."""

    def table_bytes(self, depth: int) -> float:
        """Estimate what a top-K table takes for an interval: two lists for each that is listed."""
        return 2 * self.listed * (4 * min(depth, self.stabbed) + 17)


def facts_of(intervals: Ranked, depth: int) -> Facts:
    """Look at no more than 2,048 intervals, evenly taken by rank; the cost does not grow with n."""
    size = len(intervals)
    if size == 0:
        return Facts(0, 0.0, 0.0)
    sample = np.linspace(0, size - 1, min(size, SAMPLE)).astype(np.int64)
    low, high = intervals.low[sample], intervals.high[sample]
    stabs = (low[None, :] <= low[:, None]) & (low[:, None] <= high[None, :])
    share = size / len(sample)
    better = np.tril(stabs, -1).sum(axis=1) * share
    return Facts(size, float(stabs.sum(axis=1).mean() * share), float((better < depth).mean()))


@dataclass(frozen=True)
class Choice:
    """An index by name, with its options, and why it was chosen."""

    name: str
    options: dict[str, Any]
    reason: str


def choose(facts: Facts, wanted: Wanted) -> Choice:
    """Choose by the first rule that holds; each gives its reason."""
    depth = max(DEPTH, wanted.k)
    table = facts.table_bytes(depth)
    if wanted.updates_per_query > 0:
        return Choice("live", {}, "intervals change, and it takes changes while it is served")
    if facts.size <= ONE_BLOCK:
        return Choice("sopt-r-64", {}, "all intervals fit one block, which is compared at once")
    if table <= wanted.budget:
        fits = f"the {depth} best of every cell take about {table:.0f} bytes an interval"
        return Choice("topk-table", {"depth": depth}, f"{fits}, within {wanted.budget:g}")
    above = f"a top-{depth} table would take about {table:.0f} bytes an interval"
    return Choice("sopt-r-64", {}, f"{above}, more than {wanted.budget:g}")


CHOICES: Final[dict[str, Callable[..., IntervalIndex]]] = {
    "ir": IrTree,
    "live": Live,
    "sopt-r-64": sopt_r_64,
    "topk-table": TopkTable,
}


class Auto:
    """An index chosen by itself, or by `use`; `describe` tells which and why.

    >>> from tidings.index.intervals.protocol import rank_intervals
    >>> index = Auto(rank_intervals([0, 5, 2], [9, 6, 4], [1.0, 3.0, 2.0]), k=2)
    >>> index.top(3, 2).tolist()
    [2, 0]
    >>> print(index.describe())
    sopt-r-64, since all intervals fit one block, which is compared at once.
    3 intervals, a point stabs about 1.7; wanted: k = 2, 0 updates a query.
    """

    name: ClassVar[str] = "auto"

    def __init__(
        self,
        intervals: Ranked,
        use: Any = None,
        *,
        k: int = 20,
        updates_per_query: float = 0.0,
        budget: float = 64.0,
    ) -> None:
        self.wanted = Wanted(k, updates_per_query, budget)
        self.facts = facts_of(intervals, max(DEPTH, self.wanted.k))
        self.choice = choose(self.facts, self.wanted)
        if use is not None:
            if not isinstance(use, str) or use not in CHOICES:
                raise TidingsError(f"auto cannot use {shown(use)}; it can {', '.join(CHOICES)}")
            self.choice = Choice(use, {}, "it was asked for")
        self.chosen = CHOICES[self.choice.name](intervals, **self.choice.options)

    def describe(self) -> str:
        """Tell which index was chosen, why, and from which facts."""
        facts, wanted = self.facts, self.wanted
        return (
            f"{self.choice.name}, since {self.choice.reason}.\n"
            f"{facts.size:,} intervals, a point stabs about {facts.stabbed:,.1f}; "
            f"wanted: k = {wanted.k}, {wanted.updates_per_query:g} updates a query."
        )

    @property
    def nbytes(self) -> int:
        """The bytes of the chosen index."""
        return self.chosen.nbytes

    def top(self, q: float, k: int) -> Int64s:
        """Give the ids of the k best intervals that `q` stabs; fewer, if there are fewer."""
        return self.chosen.top(q, k)

    def top_many(self, qs: Float64s, k: int) -> tuple[Int64s, Int64s]:
        """Give a row of ids for each query, filled up with -1, and how many each has."""
        return self.chosen.top_many(qs, k)

    def iterate(self, q: float) -> Iterator[int]:
        """Give all stabbed ids in order, looked for only as far as they are asked for."""
        return self.chosen.iterate(q)

    @property
    def ranges(self) -> IntervalRanges:
        """What the chosen index answers to events that are ranges."""
        return self.chosen.ranges

    def counters(self) -> dict[str, int]:
        """Give what the last `top` looked at."""
        return self.chosen.counters()

    def insert(self, low: float, high: float, score: float) -> int:
        """Insert an interval, if the chosen index can; give its id."""
        return self._changing().insert(low, high, score)

    def delete(self, id: int) -> None:
        """Delete an interval by id, if the chosen index can."""
        self._changing().delete(id)

    def rescore(self, id: int, score: float) -> None:
        """Give an interval another score, if the chosen index can."""
        self._changing().rescore(id, score)

    def replace(self, id: int, low: float, high: float, score: float) -> None:
        """Give an interval other bounds and another score, if the chosen index can."""
        self._changing().replace(id, low, high, score)

    def _changing(self) -> IrTree | Live:
        if not isinstance(self.chosen, IrTree | Live):
            raise TidingsError(
                f"{self.choice.name} takes no changes; build it with updates_per_query above 0"
            )
        return self.chosen
