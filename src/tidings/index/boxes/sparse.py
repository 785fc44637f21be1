"""Ours for relaxed matching where few of many attributes are constrained: predicates in lists."""

from typing import Any, ClassVar

import numpy as np

from tidings.compiled.aligned import aligned
from tidings.compiled.array_types import Int64s
from tidings.compiled.simd import LANES
from tidings.index import arguments
from tidings.index.boxes.aggregate import named_aggregate
from tidings.index.boxes.kernels.quantize import Alive, Asked
from tidings.index.boxes.kernels.sparse import (
    TILE,
    Held,
    Rows,
    lay_sparse,
    sparse_many,
    sparse_totals,
)
from tidings.index.boxes.kernels.topk_heap import Found
from tidings.index.boxes.protocol import Answer, Answers, Boxes, event_of
from tidings.index.boxes.quantize import cuts_of
from tidings.index.boxes.search_base import Ids, answered, bytes_of, inverse, one_answer


class Sparse:
    """Only predicates that exist are stored and compared, attribute by attribute in tiles.

    About 38 bytes a predicate. Aggregates: `sum` and `max`.
    """

    name: ClassVar[str] = "sparse"

    def __init__(self, boxes: Boxes, aggregate: Any = "sum", names: Int64s | None = None) -> None:
        greatest = named_aggregate(aggregate, self.name) == "max"
        self.attributes, self._about = boxes.attributes, boxes.describe()
        self.cuts = cuts_of(boxes)
        names = np.arange(len(boxes)) if names is None else names
        self._order, self._held = sparse_tiles(boxes, self.cuts, greatest, names)
        self._counters = np.zeros(2, np.int64)

    @property
    def nbytes(self) -> int:
        """The bytes of cuts, predicates and tiles."""
        return bytes_of((self.cuts, self._held, self._order))

    def search(self, asked: Asked, found: Found, alive: Alive) -> Int64s:
        """Offer what may be among the best, tile by tile."""
        counters = np.zeros(2, np.int64)
        sparse_many((self._held, asked, alive, found, counters))
        return counters

    def places(self) -> Ids:
        """Give where boxes stand in the tiles."""
        return inverse(self._order)

    def held(self, places: Ids) -> Boxes:
        """Give boxes back by place; what was free is free again, with the weight 0."""
        starts, attributes, bounds = self._held[1]
        shape = len(places), self.attributes
        counts = starts[places + 1] - starts[places]
        rows = np.repeat(np.arange(len(places)), counts)
        begin = np.repeat(starts[places] - np.cumsum(counts) + counts, counts)
        at = begin + np.arange(len(rows))
        boxes = Boxes(np.full(shape, -np.inf), np.full(shape, np.inf), np.zeros(shape))
        for side, column in enumerate((boxes.low, boxes.high, boxes.worth)):
            column[rows, attributes[at]] = bounds[at, side]
        return boxes

    def top(self, row: Any, k: int) -> Answer:
        """Give the k best: a batch of one."""
        most = min(arguments.count("k", k), len(self._order))
        return one_answer(self.top_many(event_of(self.attributes, row), most))

    def top_many(self, rows: Any, k: int) -> Answers:
        """Answer all events, tile by tile."""
        answers, self._counters = answered(self, rows, k)
        return answers

    def counters(self) -> dict[str, int]:
        """Give how many predicates were compared, and subscriptions weighed exactly."""
        return dict(zip(("predicates", "weighed"), self._counters.tolist(), strict=True))

    def describe(self) -> str:
        """Tell what it is."""
        how = "max" if self._held[2] else "sum"
        count = len(self._held[1][1])
        return f"sparse: {self._about}; {count:,} predicates in lists by attribute, by {how}."


def predicates_of(boxes: Boxes, order: Any) -> Rows:
    """List the predicates of each box, attributes ascending, boxes in the order given."""
    constrained = boxes.constrained()
    counts = constrained.sum(axis=1)[order]
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    ids, attributes = np.nonzero(constrained)
    bounds = np.stack([each[ids, attributes] for each in (boxes.low, boxes.high, boxes.worth)], 1)
    begin = np.concatenate([[0], np.cumsum(constrained.sum(axis=1))])[:-1]
    places = np.repeat(begin[order] - starts[:-1], counts) + np.arange(len(ids))
    return starts, attributes[places].astype(np.int32), np.ascontiguousarray(bounds[places])


def sparse_tiles(boxes: Boxes, cuts: Any, greatest: bool, names: Int64s) -> tuple[Any, Held]:
    """Put the boxes in order of the most that they can score, and list their predicates."""
    totals = np.empty(len(boxes))
    sparse_totals(predicates_of(boxes, np.arange(len(boxes))), greatest, totals)
    order = np.argsort(-totals, kind="stable")
    rows = predicates_of(boxes, order)
    size, count = len(rows[1]), -(-len(boxes) // TILE)
    codes = aligned(2 * size + LANES, np.uint8)
    codes[:] = 0
    tiles = (
        np.zeros(count * (boxes.attributes + 1), np.int64),
        codes,
        np.empty(size, np.uint16),
        np.empty(size, np.uint16),
        np.empty(count),
        np.empty(count),
        names[order],
        np.empty(count, np.int64),
    )
    lay_sparse(rows, cuts, tiles, totals[order], greatest)
    return order.astype(np.int32), (tiles, rows, greatest)
