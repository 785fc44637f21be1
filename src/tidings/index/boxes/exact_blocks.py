"""Exact matching over blocks of 64 boxes, compared at once and clustered within bands of scores."""

from itertools import pairwise
from typing import Any, ClassVar, Final

import numpy as np

from tidings.compiled.array_types import Int32s, Int64s
from tidings.compiled.arrays import aligned, total_bytes
from tidings.compiled.jit import TypedKernel
from tidings.compiled.simd import LANES
from tidings.index.boxes.kernels.cluster import SortScratch, cluster
from tidings.index.boxes.kernels.exact_blocks import (
    ExactLayout,
    ExactTask,
    RankHeaps,
    exact_many,
    fill_exact,
    offer_ranks,
)
from tidings.index.boxes.kernels.quantize import (
    BoxBounds,
    CodeCuts,
    CodedEvents,
    Liveness,
    code_bounds,
)
from tidings.index.boxes.kernels.topk_heap import TopkHeaps
from tidings.index.boxes.protocol import BoxAnswer, BoxAnswers, Boxes, NumericEvents
from tidings.index.boxes.search_base import (
    ALL_ALIVE,
    answer_many,
    answer_one,
    coded_events,
    cuts_of,
    empty_heaps,
)

EXACT_MANY, OFFER_RANKS = TypedKernel(exact_many), TypedKernel(offer_ranks)
FIRST_BAND: Final = LANES * LANES
"""The first band: one directory, in the order of scores. Each further band ends 4 times as far."""


class ExactBlocks:
    """Codes of one byte, compared for 64 boxes at once; exact comparison where the codes agree.

    If an event has many matches, the first blocks suffice. If it has few, most blocks are excluded
    by the hulls in their directory.
    """

    name: ClassVar[str] = "blocks"

    def __init__(self, boxes: Boxes, names: Int64s | None = None) -> None:
        self.attributes = boxes.attributes
        self._boxes, self._names = boxes, np.arange(len(boxes)) if names is None else names
        self._bounds = BoxBounds(boxes.low, boxes.high)
        self.cuts = cuts_of(boxes)
        self._layout = exact_layout(boxes, self.cuts)
        self._counters = np.zeros(3, np.int64)

    @property
    def nbytes(self) -> int:
        """The bytes of boxes, cuts and blocks."""
        return self._boxes.nbytes + total_bytes(self.cuts, self._layout, self._names)

    def search(self, events: CodedEvents, best: TopkHeaps, liveness: Liveness) -> Int64s:
        ranks, counters = self._best_ranks(events, best.scores.shape[1], liveness)
        OFFER_RANKS(ranks, self._layout.ids, self._boxes.worth, self._names, best)
        return counters

    def places(self) -> Int32s:
        """Return the places of death stamps: the input order."""
        return np.arange(len(self._boxes), dtype=np.int32)

    def boxes_at(self, places: Int32s) -> Boxes:
        return self._boxes.take(places)

    def top(self, row: Any, k: int) -> BoxAnswer:
        return answer_one(self.answers, self.attributes, row, k, len(self._boxes))

    def top_many(self, rows: Any, k: int) -> BoxAnswers:
        return answer_many(self.answers, self.attributes, rows, k)

    def counters(self) -> dict[str, int]:
        """Return how many directories and blocks were compared, and boxes checked exactly."""
        return dict(zip(("directories", "blocks", "checked"), self._counters.tolist(), strict=True))

    def describe(self) -> str:
        bands = len(bands_of(len(self._boxes)))
        return f"blocks: {self._boxes.describe()}; 64 a block, {bands} bands of scores."

    def answers(
        self, events: NumericEvents, width: int, liveness: Liveness = ALL_ALIVE
    ) -> BoxAnswers:
        """Return the best boxes of each event; ordered ranks need no heap of scores."""
        coded = coded_events(self.cuts, events)
        best, self._counters = self._best_ranks(coded, width, liveness)
        scores, names, _ = empty_heaps(len(events), width)
        used = np.arange(best.ranks.shape[1]) < best.sizes[:, None]
        ids = self._layout.ids[best.ranks[used]]
        names[:, : used.shape[1]][used] = self._names[ids]
        scores[:, : used.shape[1]][used] = self._boxes.worth[ids]
        return BoxAnswers(names, scores, best.sizes)

    def _best_ranks(
        self, events: CodedEvents, k: int, liveness: Liveness
    ) -> tuple[RankHeaps, Int64s]:
        """Return the best ranks of each event in order, and the counters."""
        width, counters = min(k, len(self._boxes)), np.zeros(3, np.int64)
        rows = len(events.below)
        best = RankHeaps(np.empty((rows, width), np.int64), np.zeros(rows, np.int64))
        EXACT_MANY(ExactTask(self._layout, self._bounds, liveness, events, counters), best)
        return best, counters


def bands_of(size: int) -> list[tuple[int, int]]:
    """Return where bands begin and end; all but the last hold whole directories."""
    ends = [0]
    while ends[-1] < size:
        ends.append(min(size, max(FIRST_BAND, 4 * ends[-1])))
    return list(pairwise(ends))


def exact_layout(boxes: Boxes, cuts: CodeCuts) -> ExactLayout:
    """Rank the boxes by score, cluster each band but the first, and fill the blocks."""
    size, attributes = len(boxes), boxes.attributes
    ids = np.argsort(-boxes.worth, kind="stable").astype(np.int32)
    codes = np.empty((size, 2 * attributes), np.uint8)
    code_bounds(BoxBounds(boxes.low, boxes.high), ids, cuts, codes)
    ranks = np.arange(size, dtype=np.int32)
    scratch = SortScratch(np.empty(size, np.int32), np.zeros(257, np.int64))
    for start, end in bands_of(size)[1:]:
        cluster(codes, ranks, start, end, scratch)
    blocks = -(-size // LANES)
    directories = -(-blocks // LANES)
    layout = ExactLayout(
        aligned(directories * attributes * 2 * LANES, np.uint8),
        aligned(directories * LANES * attributes * 2 * LANES, np.uint8),
        ranks,
        ids,
        np.empty(directories * LANES, np.int32),
        np.empty(directories, np.int32),
    )
    fill_exact(codes, layout)
    return layout
