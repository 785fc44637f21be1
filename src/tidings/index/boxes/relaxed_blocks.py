"""Relaxed matching over blocks of 64 boxes, scored at once in codes, the heaviest first."""

from itertools import pairwise
from typing import Any, ClassVar, Final

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s, Int64s
from tidings.compiled.arrays import aligned, total_bytes
from tidings.compiled.jit import TypedKernel
from tidings.compiled.simd import LANES
from tidings.errors import TidingsError
from tidings.index.boxes.aggregate import named_aggregate
from tidings.index.boxes.kernels.cluster import SortScratch, cluster
from tidings.index.boxes.kernels.quantize import (
    BoxBounds,
    CodeCuts,
    CodedEvents,
    Liveness,
    code_bounds,
)
from tidings.index.boxes.kernels.relaxed_blocks import (
    RelaxedLayout,
    RelaxedTask,
    relaxed_near,
    relaxed_wide,
)
from tidings.index.boxes.kernels.relaxed_layout import (
    CodeBlocks,
    code_blocks,
    hulls,
    middles,
    pack,
    total_weights,
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
    unpacked,
)

RELAXED_NEAR, RELAXED_WIDE = TypedKernel(relaxed_near), TypedKernel(relaxed_wide)
TILE_BYTES: Final = 262_144
"""The bytes of blocks that all events pass before the next tile: they stay in the L2 cache."""
MAX_ATTRIBUTES: Final = 2040
"""The sums of more attributes would overflow two bytes."""
NEAR: Final = 16
"""With more attributes than this, hulls and totals exclude hardly any block: there are no
directories, and events are searched four at a time."""
DIRECTORY: Final = LANES * LANES
BAND: Final = 1.5
"""Each band of totals ends this many times as far as the one before: narrow enough for similar
totals, and wide enough to find boxes that lie close together."""


class RelaxedBlocks:
    """Codes of one byte for bounds and weights, compared and added for 64 boxes at once.

    Boxes of similar totals are clustered by position, and directories of 64 blocks skip blocks
    that cannot beat the k-th best. Aggregates: `sum` and `max`.
    """

    name: ClassVar[str] = "blocks"

    def __init__(self, boxes: Boxes, aggregate: Any = "sum", names: Int64s | None = None) -> None:
        greatest = named_aggregate(aggregate, self.name) == "max"
        if boxes.attributes > MAX_ATTRIBUTES:
            raise TidingsError(
                f"blocks take at most {MAX_ATTRIBUTES} attributes, not {boxes.attributes}"
            )
        self.attributes, self._contents = boxes.attributes, boxes.describe()
        self.cuts = cuts_of(boxes)
        names = np.arange(len(boxes)) if names is None else names
        self._order, self._layout = relaxed_layout(boxes, self.cuts, greatest, names)
        self._counters = np.zeros(3, np.int64)

    @property
    def nbytes(self) -> int:
        """The bytes of cuts and blocks, which hold the boxes too."""
        return total_bytes(self.cuts, self._layout, self._order)

    def search(self, events: CodedEvents, best: TopkHeaps, liveness: Liveness) -> Int64s:
        counters = np.zeros(3, np.int64)
        shape = len(best.sizes), max(4 * LANES, 4 * best.scores.shape[1])
        sizes = np.zeros(shape[0], np.int64)
        waiting = TopkHeaps(np.empty(shape), np.empty(shape, np.int64), sizes)
        task = RelaxedTask(self._layout, events, liveness, waiting, best, counters)
        if self.attributes <= NEAR:
            RELAXED_NEAR(task)
        else:
            RELAXED_WIDE(task, max(1, TILE_BYTES // (3 * LANES * self.attributes)))
        return counters

    def places(self) -> Int32s:
        """Return the places of the boxes in the blocks."""
        return inverse(self._order)

    def boxes_at(self, places: Int32s) -> Boxes:
        return unpacked(self._layout.packed, places)

    def top(self, row: Any, k: int) -> BoxAnswer:
        return answer_one(self.answers, self.attributes, row, k, len(self._order))

    def top_many(self, rows: Any, k: int) -> BoxAnswers:
        return answer_many(self.answers, self.attributes, rows, k)

    def counters(self) -> dict[str, int]:
        """Return how many blocks were compared, boxes scored, and directories compared."""
        kinds = ("blocks", "weighed", "directories")
        return dict(zip(kinds, self._counters.tolist(), strict=True))

    def describe(self) -> str:
        aggregate = "max" if self._layout.greatest else "sum"
        return f"blocks: {self._contents}; 64 a block, heaviest first, by {aggregate}."

    def answers(
        self, events: NumericEvents, width: int, liveness: Liveness = ALL_ALIVE
    ) -> BoxAnswers:
        answers, self._counters = search_all(self, events, width, liveness)
        return answers


def relaxed_layout(
    boxes: Boxes, cuts: CodeCuts, greatest: bool, names: Int64s
) -> tuple[Int32s, RelaxedLayout]:
    """Order the boxes by the greatest score possible, cluster each band, and code the blocks."""
    bounds, totals = BoxBounds(boxes.low, boxes.high), np.empty(len(boxes))
    total_weights(bounds, boxes.worth, greatest, totals)
    order = np.argsort(-totals, kind="stable").astype(np.int32)
    near = boxes.attributes <= NEAR
    if near:
        order = clustered(bounds, cuts, order)
    width = 3 * boxes.attributes
    packed = aligned(width * len(boxes), np.float64).reshape(len(boxes), width)
    pack(bounds, boxes.worth, order, packed)
    blocks = coded_blocks(packed, cuts, greatest)
    rows = np.empty((len(blocks.scales) if near else 0, width + 3))
    hulls(packed, greatest, rows)
    typical = np.empty((len(rows), width))
    middles(packed, typical)
    ids, totals = names[order], totals[order]
    layout = RelaxedLayout(
        blocks=blocks,
        directories=coded_blocks(rows, cuts, greatest),
        middles=coded_blocks(typical, cuts, greatest),
        most=reduce_steps(np.maximum, totals, LANES),
        most_onwards=accumulate_onwards(np.maximum, reduce_steps(np.maximum, totals, DIRECTORY)),
        least_id_onwards=accumulate_onwards(np.minimum, reduce_steps(np.minimum, ids, DIRECTORY)),
        ids=ids,
        packed=packed,
        greatest=greatest,
    )
    return order, layout


def coded_blocks(packed: Float64s, cuts: CodeCuts, greatest: bool) -> CodeBlocks:
    """Return packed rows in coded blocks of 64."""
    count = -(-len(packed) // LANES)
    codes = aligned(count * packed.shape[1] * LANES, np.uint8)
    blocks = CodeBlocks(codes, np.empty(count), np.empty(count))
    code_blocks(packed, cuts, blocks, greatest)
    return blocks


def clustered(bounds: BoxBounds, cuts: CodeCuts, order: Int32s) -> Int32s:
    """Return the order with boxes that lie close together in one block, within bands of totals."""
    codes = np.empty((len(order), 2 * bounds.low.shape[1]), np.uint8)
    code_bounds(bounds, order, cuts, codes)
    ranks = np.arange(len(order), dtype=np.int32)
    scratch = SortScratch(np.empty(len(order), np.int32), np.zeros(257, np.int64))
    for start, end in bands_of(len(order))[1:]:
        cluster(codes, ranks, start, end, scratch)
    return order[ranks]


def bands_of(size: int) -> list[tuple[int, int]]:
    """Return where bands begin and end, each but the last on a whole directory."""
    ends = [0]
    while ends[-1] < size:
        end = int(BAND * ends[-1]) // DIRECTORY * DIRECTORY
        ends.append(min(size, max(ends[-1] + DIRECTORY, end)))
    return list(pairwise(ends))


def reduce_steps(combine: Any, numbers: Any, step: int) -> Any:
    """Return the numbers of each stretch of `step`, combined."""
    return combine.reduceat(numbers, np.arange(0, len(numbers), step)) if len(numbers) else numbers


def accumulate_onwards(combine: Any, numbers: Any) -> Any:
    """Return each number combined with all that follow it."""
    return np.ascontiguousarray(combine.accumulate(numbers[::-1])[::-1])
