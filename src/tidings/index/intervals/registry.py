"""The interval indexes by name."""

from collections.abc import Callable
from typing import Any, Final, Literal, overload

from tidings.index import arguments
from tidings.index.intervals.auto import Auto
from tidings.index.intervals.live.index import Live
from tidings.index.intervals.papers.interval_tree import interval
from tidings.index.intervals.papers.interval_tree_endpoint import interval_endpoint
from tidings.index.intervals.papers.ir_tree import IrTree
from tidings.index.intervals.papers.rtree_plain import r_plain
from tidings.index.intervals.papers.rtree_scored import r
from tidings.index.intervals.papers.segment_tree import segment
from tidings.index.intervals.protocol import IntervalIndex, rank_intervals
from tidings.index.intervals.scan import IntervalScan
from tidings.index.intervals.sopt_r import sopt_r
from tidings.index.intervals.sopt_r_simd import sopt_r_64
from tidings.index.intervals.topk_table import TopkTable

INTERVAL_INDEXES: Final[dict[str, Callable[..., IntervalIndex]]] = {
    "scan": IntervalScan,
    "segment": segment,
    "interval-endpoint": interval_endpoint,
    "interval": interval,
    "r-plain": r_plain,
    "r": r,
    "ir": IrTree,
    "sopt-r": sopt_r,
    "sopt-r-64": sopt_r_64,
    "topk-table": TopkTable,
    "live": Live,
    "auto": Auto,
}


@overload
def interval_index(
    name: Literal["ir"], low: Any, high: Any, score: Any, **options: Any
) -> IrTree: ...
@overload
def interval_index(
    name: Literal["live"], low: Any, high: Any, score: Any, **options: Any
) -> Live: ...
@overload
def interval_index(
    name: Literal["auto"], low: Any, high: Any, score: Any, **options: Any
) -> Auto: ...
@overload
def interval_index(name: str, low: Any, high: Any, score: Any, **options: Any) -> IntervalIndex: ...
def interval_index(name: str, low: Any, high: Any, score: Any, **options: Any) -> IntervalIndex:
    """Build the index `name` over arrays of intervals and their scores.

    >>> index = interval_index("scan", [0, 5, 2], [9, 6, 4], [1.0, 3.0, 2.0])
    >>> index.top(3, k=2).tolist()
    [2, 0]

    `topk-table` takes `depth`, the greatest k that it lists (32); `live` takes `bound`, the changes
    after which it is rebuilt (a sixteenth, at least 4,096); `auto` takes `k`,
    `updates_per_query`, `budget` (bytes an interval) and `use`, the name of an index.
    """
    known = arguments.known("index", name, INTERVAL_INDEXES)
    intervals = rank_intervals(low, high, score)
    made: IntervalIndex = arguments.built(known, INTERVAL_INDEXES[known], intervals, options)
    return made
