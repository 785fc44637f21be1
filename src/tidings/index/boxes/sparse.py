"""Relaxed matching where few of many attributes are constrained: predicates in lists."""

from typing import Any, ClassVar, Final

import numpy as np

from tidings.compiled.array_types import Int32s, Int64s
from tidings.compiled.arrays import aligned, offsets, run_indexes, total_bytes
from tidings.compiled.jit import TypedKernel
from tidings.compiled.simd import LANES
from tidings.index.boxes.aggregate import named_aggregate
from tidings.index.boxes.kernels.quantize import CodeCuts, CodedEvents, Liveness
from tidings.index.boxes.kernels.sparse import (
    TILE,
    PredicateRows,
    SparseLayout,
    SparseTask,
    SparseTiles,
    fill_sparse,
    sparse_many,
    sparse_totals,
)
from tidings.index.boxes.kernels.topk_heap import TopkHeaps
from tidings.index.boxes.protocol import BoxAnswer, BoxAnswers, Boxes, NumericEvents
from tidings.index.boxes.search_base import (
    ALL_ALIVE,
    answer_many,
    answer_one,
    cuts_of,
    inverse,
    search_all,
)

SPARSE_MANY: Final = TypedKernel(sparse_many)


class SparseBoxes:
    """Existing predicates only, stored and compared attribute by attribute in tiles.

    Takes about 38 bytes a predicate. Aggregates: `sum` and `max`.
    """

    name: ClassVar[str] = "sparse"

    def __init__(self, boxes: Boxes, aggregate: Any = "sum", names: Int64s | None = None) -> None:
        greatest = named_aggregate(aggregate, self.name) == "max"
        self.attributes, self._contents = boxes.attributes, boxes.describe()
        self.cuts = cuts_of(boxes)
        names = np.arange(len(boxes)) if names is None else names
        self._order, self._layout = sparse_layout(boxes, self.cuts, greatest, names)
        self._counters = np.zeros(2, np.int64)

    @property
    def nbytes(self) -> int:
        """The bytes of cuts, predicates and tiles."""
        return total_bytes(self.cuts, self._layout, self._order)

    def search(self, events: CodedEvents, best: TopkHeaps, liveness: Liveness) -> Int64s:
        counters = np.zeros(2, np.int64)
        SPARSE_MANY(SparseTask(self._layout, events, liveness, best, counters))
        return counters

    def places(self) -> Int32s:
        """Return the places of the boxes in the tiles."""
        return inverse(self._order)

    def boxes_at(self, places: Int32s) -> Boxes:
        starts, attributes, bounds = self._layout.rows
        shape = len(places), self.attributes
        counts = starts[places + 1] - starts[places]
        rows = np.repeat(np.arange(len(places)), counts)
        predicates = run_indexes(starts[places], counts)
        boxes = Boxes(np.full(shape, -np.inf), np.full(shape, np.inf), np.zeros(shape))
        for side, column in enumerate((boxes.low, boxes.high, boxes.worth)):
            column[rows, attributes[predicates]] = bounds[predicates, side]
        return boxes

    def top(self, row: Any, k: int) -> BoxAnswer:
        return answer_one(self.answers, self.attributes, row, k, len(self._order))

    def top_many(self, rows: Any, k: int) -> BoxAnswers:
        return answer_many(self.answers, self.attributes, rows, k)

    def counters(self) -> dict[str, int]:
        """Return how many predicates were compared, and boxes scored."""
        return dict(zip(("predicates", "weighed"), self._counters.tolist(), strict=True))

    def describe(self) -> str:
        aggregate = "max" if self._layout.greatest else "sum"
        count = len(self._layout.rows.attributes)
        return (
            f"sparse: {self._contents}; {count:,} predicates in lists by attribute, by {aggregate}."
        )

    def answers(
        self, events: NumericEvents, width: int, liveness: Liveness = ALL_ALIVE
    ) -> BoxAnswers:
        answers, self._counters = search_all(self, events, width, liveness)
        return answers


def predicates_of(boxes: Boxes, order: Any) -> PredicateRows:
    """Return the predicates of the boxes in `order`, attributes ascending."""
    constrained = boxes.constrained()
    counts = constrained.sum(axis=1)[order]
    starts = offsets(counts)
    ids, attributes = np.nonzero(constrained)
    columns = boxes.low, boxes.high, boxes.worth
    bounds = np.stack([column[ids, attributes] for column in columns], 1)
    begin = offsets(constrained.sum(axis=1))[:-1]
    places = run_indexes(begin[order], counts)
    sorted_attributes = attributes[places].astype(np.int32)
    return PredicateRows(starts, sorted_attributes, np.ascontiguousarray(bounds[places]))


def sparse_layout(
    boxes: Boxes, cuts: CodeCuts, greatest: bool, names: Int64s
) -> tuple[Int32s, SparseLayout]:
    """Order the boxes by the greatest score possible, and list their predicates in tiles."""
    totals = np.empty(len(boxes))
    sparse_totals(predicates_of(boxes, np.arange(len(boxes))), greatest, totals)
    order = np.argsort(-totals, kind="stable")
    rows = predicates_of(boxes, order)
    size, count = len(rows.attributes), -(-len(boxes) // TILE)
    codes = aligned(2 * size + LANES, np.uint8)
    codes[:] = 0
    tiles = SparseTiles(
        places=np.zeros(count * (boxes.attributes + 1), np.int64),
        codes=codes,
        positions=np.empty(size, np.uint16),
        weights=np.empty(size, np.uint16),
        scales=np.empty(count),
        most=np.empty(count),
        ids=names[order],
        least_id_onwards=np.empty(count, np.int64),
    )
    fill_sparse(rows, cuts, tiles, totals[order], greatest)
    return order.astype(np.int32), SparseLayout(tiles, rows, greatest)
