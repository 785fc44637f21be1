"""Ours for relaxed matching: blocks of 64 boxes, weighed at once, the heaviest first."""

from itertools import pairwise
from typing import Any, ClassVar, Final

import numpy as np

from tidings.compiled.aligned import aligned
from tidings.compiled.array_types import Float64s, Int64s
from tidings.compiled.simd import LANES
from tidings.errors import TidingsError
from tidings.index import arguments
from tidings.index.boxes.aggregate import named_aggregate
from tidings.index.boxes.kernels.cluster import code_bounds, gather
from tidings.index.boxes.kernels.quantize import Alive, Asked, Cuts
from tidings.index.boxes.kernels.relaxed_blocks import Held, relaxed_near, relaxed_wide
from tidings.index.boxes.kernels.relaxed_layout import (
    Laid,
    hulls,
    lay_blocks,
    middles,
    pack,
    total_weights,
)
from tidings.index.boxes.kernels.topk_heap import Found
from tidings.index.boxes.protocol import Answer, Answers, Boxes, event_of
from tidings.index.boxes.quantize import cuts_of
from tidings.index.boxes.search_base import Ids, answered, bytes_of, inverse, one_answer, unpacked

TILE: Final = 262_144
"""The bytes of blocks that many events go through before the next: they stay in the cache."""
MOST: Final = 2040
"""More attributes than this would not add up in two bytes."""
NEAR: Final = 16
"""With more attributes than this, the bounds of blocks and totals leave hardly anything out: there
are no directories, and events go together in fours."""
DIRECTORY: Final = LANES * LANES
BAND: Final = 1.5
"""Each band of totals ends so many times as far as the one before: narrow enough for totals to be
alike, and wide enough for what lies close together."""


class RelaxedBlocks:
    """Codes of one byte for bounds and weights, compared and added for 64 boxes at once.

    Boxes of similar totals are gathered by where they lie, and directories of 64 blocks leave out
    the blocks that cannot beat the k-th best. Aggregates: `sum` and `max`.
    """

    name: ClassVar[str] = "blocks"

    def __init__(self, boxes: Boxes, aggregate: Any = "sum", names: Int64s | None = None) -> None:
        greatest = named_aggregate(aggregate, self.name) == "max"
        if boxes.attributes > MOST:
            raise TidingsError(f"blocks take at most {MOST} attributes, not {boxes.attributes}")
        self.attributes, self._about = boxes.attributes, boxes.describe()
        self.cuts = cuts_of(boxes)
        names = np.arange(len(boxes)) if names is None else names
        self._order, self._blocks = relaxed_blocks(boxes, self.cuts, greatest, names)
        self._counters = np.zeros(3, np.int64)

    @property
    def nbytes(self) -> int:
        """The bytes of cuts and blocks, which hold the boxes too."""
        return bytes_of((self.cuts, self._blocks, self._order))

    def search(self, asked: Asked, found: Found, alive: Alive) -> Int64s:
        """Offer what may be among the best, tile by tile."""
        counters = np.zeros(3, np.int64)
        room = max(4 * LANES, 4 * found[0].shape[1])
        shape = len(found[2]), room
        waiting = np.empty(shape), np.empty(shape, np.int64), np.zeros(shape[0], np.int64)
        task = self._blocks, asked, alive, waiting, found, counters
        if self.attributes <= NEAR:
            relaxed_near(task)
        else:
            relaxed_wide(task, max(1, TILE // (3 * LANES * self.attributes)))
        return counters

    def places(self) -> Ids:
        """Give where boxes stand in the blocks."""
        return inverse(self._order)

    def held(self, places: Ids) -> Boxes:
        """Give boxes back by place; what was free is free again, with the weight 0."""
        return unpacked(self._blocks[6], places)

    def top(self, row: Any, k: int) -> Answer:
        """Give the k best: a batch of one."""
        most = min(arguments.count("k", k), len(self._order))
        return one_answer(self.top_many(event_of(self.attributes, row), most))

    def top_many(self, rows: Any, k: int) -> Answers:
        """Answer all events, directory by directory."""
        answers, self._counters = answered(self, rows, k)
        return answers

    def counters(self) -> dict[str, int]:
        """Give how many blocks were compared, boxes weighed exactly, and directories compared."""
        kinds = ("blocks", "weighed", "directories")
        return dict(zip(kinds, self._counters.tolist(), strict=True))

    def describe(self) -> str:
        """Tell what it is."""
        how = "max" if self._blocks[7] else "sum"
        return f"blocks: {self._about}; 64 a block, heaviest first, by {how}."


def relaxed_blocks(boxes: Boxes, cuts: Cuts, greatest: bool, names: Int64s) -> tuple[Ids, Held]:
    """Put the boxes in order of the most that they can score, gather each band, and lay blocks."""
    every = boxes.low, boxes.high, boxes.worth
    totals = np.empty(len(boxes))
    total_weights(every, greatest, totals)
    order = np.argsort(-totals, kind="stable").astype(np.int32)
    near = boxes.attributes <= NEAR
    if near:
        order = gathered(boxes, cuts, order)
    width = 3 * boxes.attributes
    packed = aligned(width * len(boxes), np.float64).reshape(len(boxes), width)
    pack(every, order, packed)
    laid = laid_out(packed, cuts, greatest)
    rows = np.empty((len(laid[1]) if near else 0, width + 3))
    hulls(packed, greatest, rows)
    ids, totals = names[order], totals[order]
    bounds = by_steps(np.maximum, totals, LANES)
    onwards = from_there(np.maximum, by_steps(np.maximum, totals, DIRECTORY))
    least_ids = from_there(np.minimum, by_steps(np.minimum, ids, DIRECTORY))
    directories = laid_out(rows, cuts, greatest)
    typical = np.empty((len(rows), width))
    middles(packed, typical)
    middle = laid_out(typical, cuts, greatest)
    return order, (laid, directories, bounds, onwards, least_ids, ids, packed, greatest, middle)


def laid_out(packed: Float64s, cuts: Cuts, greatest: bool) -> Laid:
    """Lay out rows, 64 a block."""
    count = -(-len(packed) // LANES)
    codes = aligned(count * packed.shape[1] * LANES, np.uint8)
    laid = codes, np.empty(count), np.empty(count)
    lay_blocks(packed, cuts, laid, greatest)
    return laid


def gathered(boxes: Boxes, cuts: Cuts, order: Any) -> Any:
    """Put what lies close together into one block, within bands of totals."""
    codes = np.empty((len(boxes), 2 * boxes.attributes), np.uint8)
    code_bounds((boxes.low, boxes.high), order, cuts, codes)
    ranks = np.arange(len(boxes), dtype=np.int32)
    room = np.empty(len(boxes), np.int32), np.zeros(257, np.int64)
    for band in bands_of(len(boxes))[1:]:
        gather(codes, ranks, band, room)
    return order[ranks]


def bands_of(size: int) -> list[tuple[int, int]]:
    """Give where bands begin and end, each but the last on a whole directory."""
    ends = [0]
    while ends[-1] < size:
        wanted = int(BAND * ends[-1]) // DIRECTORY * DIRECTORY
        ends.append(min(size, max(ends[-1] + DIRECTORY, wanted)))
    return list(pairwise(ends))


def by_steps(combine: Any, numbers: Any, step: int) -> Any:
    """Combine the numbers of each stretch of `step`."""
    return combine.reduceat(numbers, np.arange(0, len(numbers), step)) if len(numbers) else numbers


def from_there(combine: Any, numbers: Any) -> Any:
    """Combine each number with all that follow."""
    return np.ascontiguousarray(combine.accumulate(numbers[::-1])[::-1])
