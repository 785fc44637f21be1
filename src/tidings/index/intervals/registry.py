"""Interval indexes by name; the papers' own structures are imported when asked for."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal, overload

from tidings.index import arguments
from tidings.index.intervals.auto import AutoIntervals
from tidings.index.intervals.live.index import LiveIntervals
from tidings.index.intervals.protocol import IntervalIndex, rank_intervals
from tidings.index.intervals.scan import IntervalScan
from tidings.index.intervals.sopt_r_simd import sopt_r_64
from tidings.index.intervals.topk_table import TopkTable
from tidings.model.named_parts import LazyPart

if TYPE_CHECKING:
    from tidings.index.intervals.papers.ir_tree import IrTree

INTERVAL_INDEXES: Final[dict[str, Callable[..., IntervalIndex]]] = {
    "scan": IntervalScan,
    "segment": LazyPart("tidings.index.intervals.papers.segment_tree:segment"),
    "interval-endpoint": LazyPart("tidings.index.intervals.papers.interval_trees:endpoint_tree"),
    "interval": LazyPart("tidings.index.intervals.papers.interval_trees:scored_interval_tree"),
    "r-plain": LazyPart("tidings.index.intervals.papers.rtrees:r_plain"),
    "r": LazyPart("tidings.index.intervals.papers.rtrees:r"),
    "ir": LazyPart("tidings.index.intervals.papers.ir_tree:IrTree"),
    "sopt-r": LazyPart("tidings.index.intervals.papers.rtrees:sopt_r"),
    "sopt-r-64": sopt_r_64,
    "topk-table": TopkTable,
    "live": LiveIntervals,
    "auto": AutoIntervals,
}


@overload
def interval_index(
    name: Literal["ir"], low: Any, high: Any, score: Any, **options: Any
) -> "IrTree": ...
@overload
def interval_index(
    name: Literal["live"], low: Any, high: Any, score: Any, **options: Any
) -> LiveIntervals: ...
@overload
def interval_index(
    name: Literal["auto"], low: Any, high: Any, score: Any, **options: Any
) -> AutoIntervals: ...
@overload
def interval_index(name: str, low: Any, high: Any, score: Any, **options: Any) -> IntervalIndex: ...
def interval_index(name: str, low: Any, high: Any, score: Any, **options: Any) -> IntervalIndex:
    """Build the index `name` over arrays of intervals and their scores.

    >>> index = interval_index("scan", [0, 5, 2], [9, 6, 4], [1.0, 3.0, 2.0])
    >>> index.top(3, k=2).tolist()
    [2, 0]

    `topk-table` takes `depth`, the greatest k that it lists (32); `live` takes `bound`, the changes
    after which it is rebuilt (by default a 32nd of the intervals, at least 4,096); `auto` takes
    `k`, `updates_per_query`, `budget` (bytes an interval) and `use`, the name of an index.
    """
    checked = arguments.choice("index", name, INTERVAL_INDEXES)
    intervals = rank_intervals(low, high, score)
    index: IntervalIndex = arguments.build(checked, INTERVAL_INDEXES[checked], intervals, options)
    return index
