"""Ours for exact matching: blocks of 64 boxes, compared at once, gathered within score bands."""

from itertools import pairwise
from typing import Any, ClassVar, Final

import numpy as np

from tidings.index.box.codes import coded, cuts_of
from tidings.index.box.protocol import Answer, Answers, Boxes, checked, events_of
from tidings.kernels.box_exact import Blocks, code_bounds, exact_many, gather, lay_exact
from tidings.kernels.memory import aligned
from tidings.kernels.vectors import LANES

BAND: Final = LANES * LANES
"""The first band: one directory, in order of score. Each further one ends 4 times as far."""


class ExactBlocks:
    """Codes of one byte, compared for 64 boxes at once, and exactly where the codes agree.

    With many matches the first blocks suffice. With few, most blocks are ruled out by the bounds
    in their directory.
    """

    name: ClassVar[str] = "blocks"

    def __init__(self, boxes: Boxes) -> None:
        self._boxes = boxes
        self._cuts = cuts_of(boxes)
        self._blocks = exact_blocks(boxes, self._cuts)
        self._counters = np.zeros(3, np.int64)

    @property
    def nbytes(self) -> int:
        """The bytes of boxes, cuts and blocks."""
        return self._boxes.nbytes + sum(each.nbytes for each in (*self._cuts, *self._blocks))

    def top(self, row: Any, k: int) -> Answer:
        """Give the k best: a batch of one."""
        ids, scores, counts = self.top_many([row], k)
        return ids[0, : counts[0]], scores[0, : counts[0]]

    def top_many(self, rows: Any, k: int) -> Answers:
        """Answer all events, directory by directory."""
        events = events_of(self._boxes.attributes, rows)
        best = np.empty((len(events), min(checked(k), len(self._boxes))), np.int64)
        counts = np.zeros(len(events), np.int64)
        counters = np.zeros(3, np.int64)
        bounds = self._boxes.low, self._boxes.high
        every = coded(self._cuts, events), events
        exact_many(self._blocks, bounds, every, (best, counts), counters)
        self._counters = counters
        ids, scores = np.full((len(events), k), -1, np.int64), np.full((len(events), k), np.nan)
        used = np.arange(best.shape[1]) < counts[:, None]
        found = self._blocks[3][best[used]]
        ids[:, : best.shape[1]][used] = found
        scores[:, : best.shape[1]][used] = self._boxes.worth[found]
        return ids, scores, counts

    def counters(self) -> dict[str, int]:
        """Give how many directories and blocks were compared, and boxes checked exactly."""
        return dict(zip(("directories", "blocks", "checked"), self._counters.tolist(), strict=True))

    def describe(self) -> str:
        """Tell what it is."""
        bands = len(bands_of(len(self._boxes)))
        return f"blocks: {self._boxes.describe()}; 64 a block, {bands} bands of scores."


def bands_of(size: int) -> list[tuple[int, int]]:
    """Give where the bands begin and end; all but the last hold whole directories."""
    ends = [0]
    while ends[-1] < size:
        ends.append(min(size, max(BAND, 4 * ends[-1])))
    return list(pairwise(ends))


def exact_blocks(boxes: Boxes, cuts: Any) -> Blocks:
    """Rank the boxes by score, gather each band but the first, and lay out the blocks."""
    size, attributes = len(boxes), boxes.attributes
    ids = np.argsort(-boxes.worth, kind="stable").astype(np.int32)
    rows = np.empty((size, 2 * attributes), np.uint8)
    code_bounds((boxes.low, boxes.high), ids, cuts, rows)
    ranks = np.arange(size, dtype=np.int32)
    room = np.empty(size, np.int32), np.zeros(257, np.int64)
    for band in bands_of(size)[1:]:
        gather(rows, ranks, band, room)
    count = -(-size // LANES)
    directories = -(-count // LANES)
    blocks = (
        aligned(directories * attributes * 2 * LANES, np.uint8),
        aligned(directories * LANES * attributes * 2 * LANES, np.uint8),
        ranks,
        ids,
        np.empty(directories * LANES, np.int32),
        np.empty(directories, np.int32),
    )
    lay_exact(rows, blocks)
    return blocks
