"""Ours for relaxed matching where few of many attributes are constrained: predicates in lists."""

from typing import Any, ClassVar

import numpy as np

from tidings.index.box.aggregate import named_aggregate
from tidings.index.box.codes import coded, cuts_of
from tidings.index.box.protocol import Answer, Answers, Boxes, checked, events_of
from tidings.kernels.box_sparse import TILE, Rows, Tiles, lay_sparse, sparse_many, sparse_totals
from tidings.kernels.memory import aligned
from tidings.kernels.vectors import LANES


class Sparse:
    """Only predicates that exist are stored and compared, attribute by attribute in tiles.

    About 38 bytes a predicate. Aggregates: `sum` and `max`.
    """

    name: ClassVar[str] = "sparse"

    def __init__(self, boxes: Boxes, aggregate: Any = "sum") -> None:
        self._greatest = named_aggregate(aggregate, self.name) == "max"
        self._attributes, self._about = boxes.attributes, boxes.describe()
        self._cuts = cuts_of(boxes)
        self._rows, self._tiles = sparse_tiles(boxes, self._cuts, self._greatest)
        self._counters = np.zeros(2, np.int64)

    @property
    def nbytes(self) -> int:
        """The bytes of cuts, predicates and tiles."""
        return sum(each.nbytes for each in (*self._cuts, *self._rows, *self._tiles))

    def top(self, row: Any, k: int) -> Answer:
        """Give the k best: a batch of one."""
        ids, scores, counts = self.top_many([row], k)
        return ids[0, : counts[0]], scores[0, : counts[0]]

    def top_many(self, rows: Any, k: int) -> Answers:
        """Answer all events, tile by tile."""
        events = events_of(self._attributes, rows)
        ids = np.full((len(events), checked(k)), -1, np.int64)
        scores = np.full((len(events), k), np.nan)
        counts, counters = np.zeros(len(events), np.int64), np.zeros(2, np.int64)
        every = coded(self._cuts, events), events, self._greatest
        sparse_many(self._tiles, self._rows, every, (scores, ids, counts), counters)
        self._counters = counters
        return ids, scores, counts

    def counters(self) -> dict[str, int]:
        """Give how many predicates were compared, and subscriptions weighed exactly."""
        return dict(zip(("predicates", "weighed"), self._counters.tolist(), strict=True))

    def describe(self) -> str:
        """Tell what it is."""
        how = "max" if self._greatest else "sum"
        count = len(self._rows[1])
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


def sparse_tiles(boxes: Boxes, cuts: Any, greatest: bool) -> tuple[Rows, Tiles]:
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
        order.astype(np.int32),
        np.empty(count, np.int32),
    )
    lay_sparse(rows, cuts, tiles, totals[order], greatest)
    return rows, tiles
