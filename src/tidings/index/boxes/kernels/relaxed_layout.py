"""Blocks of 64 subscriptions for relaxed matching, and directories of 64 blocks.

A row holds low, high and weight of each attribute; inf, -inf and 0 where it is unconstrained. The
weights of a block become codes of one byte, on a scale of its own: what holds of a subscription
weighs at most its codes plus the block's error.

A directory has a row for each of its blocks, with the hull of the block's intervals, a weight u[j]
for each attribute j, and one attribute more that always holds, with the weight `base`. Over any u,
what holds of a subscription i of the block weighs

    sum of w[i, j] <= sum of u[j] + sum of max(0, w[i, j] - u[j]) <= sum of u[j] + base

over the j that hold for i in the first two sums, over those that hold for the hull in the last: so
the row's score bounds those of the block. With `sum`, u[j] is the least weight; then the bound is
the greatest total less what fails for sure, which is close since totals within a band are alike.
With `max`, u[j] is the greatest weight and base is 0.
"""

from typing import Final

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s, UInt8s
from tidings.compiled.jit import inner, kernel
from tidings.compiled.rounding import rounded
from tidings.compiled.simd import LANES
from tidings.index.boxes.kernels.quantize import NEVER, Cuts, code_of, is_free
from tidings.index.boxes.kernels.score_bounds import TINY
from tidings.index.boxes.kernels.simd_codes import GROUP

Boxes = tuple[Float64s, Float64s, Float64s]
"""Lows, highs and weights, a row each subscription."""
Laid = tuple[UInt8s, Float64s, Float64s]
"""Codes of blocks; of each its scale (codes for 1.0), and its error in codes."""

FULL: Final = 255
FAR: Final = 1e300


@kernel
def total_weights(boxes: Boxes, greatest: bool, out: Float64s) -> None:
    """Give the score of each subscription if all its predicates hold."""
    low, high, weight = boxes
    for id in range(len(out)):
        total = 0.0
        for each in range(low.shape[1]):
            if not is_free((low, high), id, each):
                total = max(total, weight[id, each]) if greatest else total + weight[id, each]
        out[id] = rounded(total)


@kernel
def pack(boxes: Boxes, order: Int32s, packed: Float64s) -> None:
    """Write rows in the order of places that is given."""
    low, high, weight = boxes
    for place in range(len(order)):
        id = order[place]
        for each in range(low.shape[1]):
            free = is_free((low, high), id, each)
            packed[place, 3 * each] = np.inf if free else low[id, each]
            packed[place, 3 * each + 1] = -np.inf if free else high[id, each]
            packed[place, 3 * each + 2] = 0.0 if free else weight[id, each]


@inner
def heaviest_group(packed: Float64s, block: int, scale: float, greatest: bool) -> float:
    """Give the most that a group of attributes weighs in a block, in whole codes or as it is."""
    most = 0.0
    for place in range(block * LANES, min(len(packed), (block + 1) * LANES)):
        part = 0.0
        for each in range(packed.shape[1] // 3):
            if each % GROUP == 0:
                part = 0.0
            if packed[place, 3 * each] <= packed[place, 3 * each + 1]:
                heavy = packed[place, 3 * each + 2]
                code = max(1.0, np.rint(heavy * scale)) if scale > 0 else heavy
                part = max(part, code) if greatest else part + code
                most = max(most, part)
    return most


@inner
def block_scale(packed: Float64s, block: int, greatest: bool) -> float:
    """Choose the finest scale on which every group of a block fits a byte; 0 for no weight."""
    most = heaviest_group(packed, block, 0.0, greatest)
    if not TINY < most < np.inf:
        return 0.0
    scale = FULL / most
    while True:
        codes = heaviest_group(packed, block, scale, greatest)
        if codes <= FULL:
            return scale
        scale *= 0.99 * FULL / codes


@inner
def lay_lane(
    packed: Float64s, place: int, cuts: Cuts, codes: UInt8s, first: int, by: tuple[float, bool]
) -> float:
    """Write the codes of one row; give what its weights may exceed them by."""
    scale, greatest = by
    error = 0.0
    for each in range(packed.shape[1] // 3):
        at = first + each * 3 * LANES
        low, high = packed[place, 3 * each], packed[place, 3 * each + 1]
        if low > high:
            continue
        codes[at] = code_of(cuts, each, low)
        codes[at + LANES] = code_of(cuts, each, high) - codes[at]
        exact = packed[place, 3 * each + 2] * scale
        code = max(1.0, np.rint(exact))
        codes[at + 2 * LANES] = np.uint8(code)
        more = max(0.0, exact - code)
        error = max(error, more) if greatest else error + more
    return error


@kernel
def lay_blocks(packed: Float64s, cuts: Cuts, laid: Laid, greatest: bool) -> None:
    """Lay rows out, 64 a block; unused lanes hold nothing."""
    codes, scales, errors = laid
    attributes = packed.shape[1] // 3
    for block in range(len(scales)):
        start = block * attributes * 3 * LANES
        for each in range(attributes):
            for lane in range(LANES):
                at = start + each * 3 * LANES + lane
                codes[at], codes[at + LANES], codes[at + 2 * LANES] = NEVER, 0, 0
        scales[block] = block_scale(packed, block, greatest)
        error = 0.0
        for place in range(block * LANES, min(len(packed), (block + 1) * LANES)):
            first = start + place % LANES
            by = (scales[block], greatest)
            error = max(error, lay_lane(packed, place, cuts, codes, first, by))
        errors[block] = error


@kernel
def hulls(packed: Float64s, greatest: bool, out: Float64s) -> None:
    """Write the row of each block for its directory."""
    attributes = packed.shape[1] // 3
    for block in range(len(out)):
        first, last = block * LANES, min(len(packed), (block + 1) * LANES)
        for each in range(attributes):
            low, high, weight = np.inf, -np.inf, packed[first, 3 * each + 2]
            for place in range(first, last):
                low = min(low, packed[place, 3 * each])
                high = max(high, packed[place, 3 * each + 1])
                heavy = packed[place, 3 * each + 2]
                weight = max(weight, heavy) if greatest else min(weight, heavy)
            out[block, 3 * each], out[block, 3 * each + 1] = low, high
            out[block, 3 * each + 2] = weight
        base = 0.0
        for place in range(first, last):
            more = 0.0
            for each in range(attributes):
                more += max(0.0, packed[place, 3 * each + 2] - out[block, 3 * each + 2])
            base = max(base, more)
        out[block, 3 * attributes], out[block, 3 * attributes + 1] = -np.inf, np.inf
        out[block, 3 * attributes + 2] = base


@kernel
def middles(packed: Float64s, out: Float64s) -> None:
    """Write for each block a row that stands for its boxes: the means of their sides and weights.

    Its score says where good answers are likely; nothing else rests on it. An open side counts as
    one far away, since the mean of two infinities may be no number.
    """
    for block in range(len(out)):
        first, last = block * LANES, min(len(packed), (block + 1) * LANES)
        for each in range(packed.shape[1] // 3):
            low, high, weight, count = 0.0, 0.0, 0.0, 0
            for place in range(first, last):
                if packed[place, 3 * each] <= packed[place, 3 * each + 1]:
                    low += min(max(packed[place, 3 * each], -FAR), FAR)
                    high += min(max(packed[place, 3 * each + 1], -FAR), FAR)
                    weight += packed[place, 3 * each + 2]
                    count += 1
            out[block, 3 * each] = low / count if count > 0 else np.inf
            out[block, 3 * each + 1] = high / count if count > 0 else -np.inf
            out[block, 3 * each + 2] = weight / count if count > 0 else 0.0
