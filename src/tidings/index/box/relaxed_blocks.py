"""Ours for relaxed matching: blocks of 64 boxes, weighed at once, the heaviest first."""

from typing import Any, ClassVar, Final

import numpy as np

from tidings.errors import TidingsError
from tidings.index.box.aggregate import named_aggregate
from tidings.index.box.codes import coded, cuts_of
from tidings.index.box.protocol import Answer, Answers, Boxes, checked, events_of
from tidings.kernels.box_relaxed import Blocks, lay_relaxed, relaxed_many, total_weights
from tidings.kernels.memory import aligned
from tidings.kernels.vectors import LANES

TILE: Final = 262_144
"""The bytes of blocks that many events go through before the next: they stay in the cache."""
MOST: Final = 2040
"""More attributes than this would not add up in two bytes."""


class RelaxedBlocks:
    """Codes of one byte for bounds and weights, compared and added for 64 boxes at once.

    The greatest score possible falls from block to block: where it cannot beat the k-th best, the
    search ends. Aggregates: `sum` and `max`.
    """

    name: ClassVar[str] = "blocks"

    def __init__(self, boxes: Boxes, aggregate: Any = "sum") -> None:
        self._greatest = named_aggregate(aggregate, self.name) == "max"
        if boxes.attributes > MOST:
            raise TidingsError(f"blocks take at most {MOST} attributes, not {boxes.attributes}")
        self._attributes, self._about = boxes.attributes, boxes.describe()
        self._cuts = cuts_of(boxes)
        self._blocks = relaxed_blocks(boxes, self._cuts, self._greatest)
        self._counters = np.zeros(2, np.int64)

    @property
    def nbytes(self) -> int:
        """The bytes of cuts and blocks, which hold the boxes too."""
        return sum(each.nbytes for each in (*self._cuts, *self._blocks))

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
        every = coded(self._cuts, events).ravel(), events, self._greatest
        tile = max(1, TILE // (3 * LANES * self._attributes))
        room = max(4 * LANES, 4 * k)
        waiting = (
            np.empty((len(events), room)),
            np.empty((len(events), room), np.int64),
            np.zeros(len(events), np.int64),
        )
        answers = scores, ids, counts, np.zeros(len(events), np.int64)
        relaxed_many(self._blocks, every, tile, waiting, answers, counters)
        self._counters = counters
        return ids, scores, counts

    def counters(self) -> dict[str, int]:
        """Give how many blocks were compared, and boxes weighed exactly."""
        return dict(zip(("blocks", "weighed"), self._counters.tolist(), strict=True))

    def describe(self) -> str:
        """Tell what it is."""
        how = "max" if self._greatest else "sum"
        return f"blocks: {self._about}; 64 a block, heaviest first, by {how}."


def relaxed_blocks(boxes: Boxes, cuts: Any, greatest: bool) -> Blocks:
    """Put the boxes in order of the most that they can score, and lay out the blocks."""
    every = boxes.low, boxes.high, boxes.worth
    totals = np.empty(len(boxes))
    total_weights(every, greatest, totals)
    count = -(-len(boxes) // LANES)
    packed = aligned(3 * boxes.attributes * len(boxes), np.float64)
    blocks = (
        aligned(count * boxes.attributes * 3 * LANES, np.uint8),
        np.empty(count),
        np.empty(count),
        np.empty(count),
        np.argsort(-totals, kind="stable").astype(np.int32),
        np.empty(count, np.int32),
        packed.reshape(len(boxes), 3 * boxes.attributes),
    )
    lay_relaxed(every, cuts, blocks, totals, greatest)
    return blocks
