"""Ours for exact matching: blocks of 64 boxes, compared at once, gathered within score bands."""

from itertools import pairwise
from typing import Any, ClassVar, Final

import numpy as np

from tidings.compiled.aligned import aligned
from tidings.compiled.array_types import Int64s
from tidings.compiled.simd import LANES
from tidings.index import arguments
from tidings.index.boxes.kernels.cluster import code_bounds, gather
from tidings.index.boxes.kernels.exact_blocks import Blocks, exact_many, lay_exact, offer_ranks
from tidings.index.boxes.kernels.quantize import Alive, Asked
from tidings.index.boxes.kernels.topk_heap import Found
from tidings.index.boxes.protocol import Answer, Answers, Boxes, event_of, events_of
from tidings.index.boxes.quantize import asked_of, cuts_of
from tidings.index.boxes.search_base import EVERYBODY, Ids, bytes_of, empty_found, one_answer

BAND: Final = LANES * LANES
"""The first band: one directory, in order of score. Each further one ends 4 times as far."""


class ExactBlocks:
    """Codes of one byte, compared for 64 boxes at once, and exactly where the codes agree.

    With many matches the first blocks suffice. With few, most blocks are ruled out by the bounds
    in their directory.
    """

    name: ClassVar[str] = "blocks"

    def __init__(self, boxes: Boxes, names: Int64s | None = None) -> None:
        self.attributes = boxes.attributes
        self._boxes, self._names = boxes, np.arange(len(boxes)) if names is None else names
        self.cuts = cuts_of(boxes)
        self._blocks = exact_blocks(boxes, self.cuts)
        self._counters = np.zeros(3, np.int64)

    @property
    def nbytes(self) -> int:
        """The bytes of boxes, cuts and blocks."""
        return self._boxes.nbytes + bytes_of((self.cuts, self._blocks, self._names))

    def ranked(self, asked: Asked, k: int, alive: Alive) -> tuple[Int64s, Int64s, Int64s]:
        """Give the best ranks of each event, how many, and the counters."""
        best = np.empty((len(asked[2]), min(k, len(self._boxes))), np.int64)
        counts, counters = np.zeros(len(best), np.int64), np.zeros(3, np.int64)
        bounds = self._boxes.low, self._boxes.high
        exact_many((self._blocks, bounds, alive), asked, (best, counts), counters)
        return best, counts, counters

    def search(self, asked: Asked, found: Found, alive: Alive) -> Int64s:
        """Offer the best of this index."""
        best, counts, counters = self.ranked(asked, found[0].shape[1], alive)
        held = self._blocks[3], self._boxes.worth, self._names
        offer_ranks((best, counts), held, found)
        return counters

    def places(self) -> Ids:
        """Give where boxes are stamped: where they were given."""
        return np.arange(len(self._boxes), dtype=np.int32)

    def held(self, places: Ids) -> Boxes:
        """Give boxes back by place."""
        return self._boxes.some(places)

    def top(self, row: Any, k: int) -> Answer:
        """Give the k best: a batch of one."""
        most = min(arguments.count("k", k), len(self._boxes))
        return one_answer(self.top_many(event_of(self.attributes, row), most))

    def top_many(self, rows: Any, k: int) -> Answers:
        """Answer all events, directory by directory; ranks are in order and need no heap."""
        events = events_of(self.attributes, rows)
        asked, most = asked_of(self.cuts, events), arguments.width(k, len(events))
        best, counts, self._counters = self.ranked(asked, most, EVERYBODY)
        scores, ids, _ = empty_found(len(best), most)
        used = np.arange(best.shape[1]) < counts[:, None]
        found = self._blocks[3][best[used]]
        ids[:, : best.shape[1]][used] = self._names[found]
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
