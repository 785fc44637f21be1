"""The layout of relaxed matching: blocks of 64 boxes, and directories of 64 blocks.

    packed row     | low high weight | low high weight | ...        float64, one box
    block          attribute 0                       attribute 1
                   | 64 lows | 64 lengths | 64 weights | 64 lows ...   one byte each
    directory      the same, one lane per block, and one attribute more

Free attributes are packed as (inf, -inf, 0), which holds for no value. The weights of a block are
coded on a scale of their own: a sum of weights is at most its codes plus the block's error.

A directory row has the hull of its block's intervals, a weight u[j] for each attribute j, and an
attribute that always holds, with the weight `base`. For any u, a box i of the block scores

    sum of w[i, j] <= sum of u[j] + sum of max(0, w[i, j] - u[j]) <= sum of u[j] + base

with the first two sums over the j that hold for i, the last over those that hold for the hull: the
row's score bounds the block's. For `sum`, u[j] is the least weight; then the bound is the greatest
total less the weights that certainly fail, which is tight since totals within a band are alike. For
`max`, u[j] is the greatest weight and base is 0.
"""

from typing import Final, NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s, Int32s, UInt8s
from tidings.compiled.jit import inlined, inner, kernel
from tidings.compiled.rounding import rounded
from tidings.compiled.simd import LANES
from tidings.index.boxes.kernels.quantize import (
    NEVER,
    BoxBounds,
    CodeCuts,
    CodedEvents,
    code_of,
    is_free,
)
from tidings.index.boxes.kernels.score_bounds import TINY
from tidings.index.boxes.kernels.simd_codes import GROUP

FULL: Final = 255
FAR: Final = 1e300


class CodeBlocks(NamedTuple):
    """Coded blocks, with the scale of each (codes for 1.0), and its error in codes."""

    codes: UInt8s
    scales: Float64s
    errors: Float64s


class Coding(NamedTuple):
    """How a block is coded: the cuts of its bounds, the scale of its weights, the aggregate."""

    cuts: CodeCuts
    scale: float
    greatest: bool


@kernel
def total_weights(bounds: BoxBounds, weight: Float64s, greatest: bool, out: Float64s) -> None:
    """Write the score of each box if all its predicates hold."""
    for id in range(len(out)):
        total = 0.0
        for attribute in range(weight.shape[1]):
            if not is_free(bounds, id, attribute):
                heavy = weight[id, attribute]
                total = max(total, heavy) if greatest else total + heavy
        out[id] = rounded(total)


@kernel
def pack(bounds: BoxBounds, weight: Float64s, order: Int32s, packed: Float64s) -> None:
    """Write packed rows of the boxes in `order`."""
    for place in range(len(order)):
        id = order[place]
        for attribute in range(weight.shape[1]):
            free = is_free(bounds, id, attribute)
            first = 3 * attribute
            packed[place, first] = np.inf if free else bounds.low[id, attribute]
            packed[place, first + 1] = -np.inf if free else bounds.high[id, attribute]
            packed[place, first + 2] = 0.0 if free else weight[id, attribute]


@inlined
def packed_score(
    packed: Float64s, place: int, events: CodedEvents, row: int, greatest: bool
) -> float:
    """Return the score of a packed box for an event, or -1 where no predicate holds.

    Attributes are added in order, as the scan does, so that scores are equal to the last bit.
    """
    below, above, shares = events.below, events.above, events.shares
    total, matches = 0.0, False
    for attribute in range(below.shape[1]):  # no branch: half of them would be mispredicted
        low, high = packed[place, 3 * attribute], packed[place, 3 * attribute + 1]
        holds = (low <= below[row, attribute]) & (above[row, attribute] <= high)
        weight = packed[place, 3 * attribute + 2] * shares[row, attribute] if holds else 0.0
        matches |= holds
        total = max(total, weight) if greatest else total + weight
    return rounded(total) if matches else -1.0


@inner
def heaviest_group(packed: Float64s, block: int, scale: float, greatest: bool) -> float:
    """Return the greatest weight of a group of attributes in a block, in codes if scale > 0."""
    most = 0.0
    for place in range(block * LANES, min(len(packed), (block + 1) * LANES)):
        part = 0.0
        for attribute in range(packed.shape[1] // 3):
            # The vector code empties its one-byte sums here: each group starts from 0.
            if attribute % GROUP == 0:
                part = 0.0
            if packed[place, 3 * attribute] <= packed[place, 3 * attribute + 1]:
                heavy = packed[place, 3 * attribute + 2]
                code = max(1.0, np.rint(heavy * scale)) if scale > 0 else heavy
                part = max(part, code) if greatest else part + code
                most = max(most, part)
    return most


@inner
def block_scale(packed: Float64s, block: int, greatest: bool) -> float:
    """Return the finest scale on which every group of a block fits a byte; 0 for no weight."""
    most = heaviest_group(packed, block, 0.0, greatest)
    # Such weights cannot be scaled to codes; the total of the block is their bound instead.
    if not TINY < most < np.inf:
        return 0.0
    scale = FULL / most
    while True:  # rounding up may exceed the byte: shrink until it fits
        codes = heaviest_group(packed, block, scale, greatest)
        if codes <= FULL:
            return scale
        scale *= 0.99 * FULL / codes


@inner
def code_lane(packed: Float64s, place: int, coding: Coding, codes: UInt8s, first: int) -> float:
    """Write the codes of one row; return how much its weights may exceed them."""
    error = 0.0
    for attribute in range(packed.shape[1] // 3):
        lane = first + attribute * 3 * LANES
        low, high = packed[place, 3 * attribute], packed[place, 3 * attribute + 1]
        if low > high:
            continue
        codes[lane] = code_of(coding.cuts, attribute, low)
        # Lengths, not highs: one unsigned comparison then tests both sides.
        codes[lane + LANES] = code_of(coding.cuts, attribute, high) - codes[lane]
        exact = packed[place, 3 * attribute + 2] * coding.scale
        code = max(1.0, np.rint(exact))  # a predicate that holds must count: weight 0 matches
        codes[lane + 2 * LANES] = np.uint8(code)
        excess = max(0.0, exact - code)
        error = max(error, excess) if coding.greatest else error + excess
    return error


@kernel
def code_blocks(packed: Float64s, cuts: CodeCuts, blocks: CodeBlocks, greatest: bool) -> None:
    """Code packed rows, 64 a block; unused lanes contain nothing."""
    codes, scales = blocks.codes, blocks.scales
    attributes = packed.shape[1] // 3
    for block in range(len(scales)):
        start = block * attributes * 3 * LANES
        for attribute in range(attributes):
            for lane in range(LANES):
                place = start + attribute * 3 * LANES + lane
                # Only a missing value has the code NEVER, and a weight of 0 does not count even
                # then.
                codes[place], codes[place + LANES], codes[place + 2 * LANES] = NEVER, 0, 0
        scales[block] = block_scale(packed, block, greatest)
        coding, error = Coding(cuts, scales[block], greatest), 0.0
        for place in range(block * LANES, min(len(packed), (block + 1) * LANES)):
            lane_error = code_lane(packed, place, coding, codes, start + place % LANES)
            error = max(error, lane_error)
        blocks.errors[block] = error


@kernel
def hulls(packed: Float64s, greatest: bool, out: Float64s) -> None:
    """Write the directory row of each block."""
    attributes = packed.shape[1] // 3
    for block in range(len(out)):
        first, last = block * LANES, min(len(packed), (block + 1) * LANES)
        for attribute in range(attributes):
            low, high, weight = np.inf, -np.inf, packed[first, 3 * attribute + 2]
            for place in range(first, last):
                low = min(low, packed[place, 3 * attribute])
                high = max(high, packed[place, 3 * attribute + 1])
                heavy = packed[place, 3 * attribute + 2]
                # The u[j] of the drawing above.
                weight = max(weight, heavy) if greatest else min(weight, heavy)
            out[block, 3 * attribute], out[block, 3 * attribute + 1] = low, high
            out[block, 3 * attribute + 2] = weight
        base = 0.0
        for place in range(first, last):
            excess = 0.0
            for attribute in range(attributes):
                weight = packed[place, 3 * attribute + 2] - out[block, 3 * attribute + 2]
                excess += max(0.0, weight)
            base = max(base, excess)
        out[block, 3 * attributes], out[block, 3 * attributes + 1] = -np.inf, np.inf
        out[block, 3 * attributes + 2] = base


@kernel
def middles(packed: Float64s, out: Float64s) -> None:
    """Write a typical row for each block: the means of its bounds and weights.

    Its score only suggests where good answers are; no bound depends on it. An open side counts as
    far away, since the mean of two infinities may be NaN.
    """
    for block in range(len(out)):
        first, last = block * LANES, min(len(packed), (block + 1) * LANES)
        for attribute in range(packed.shape[1] // 3):
            column = 3 * attribute
            low, high, weight, count = 0.0, 0.0, 0.0, 0
            for place in range(first, last):
                if packed[place, column] <= packed[place, column + 1]:
                    low += min(max(packed[place, column], -FAR), FAR)
                    high += min(max(packed[place, column + 1], -FAR), FAR)
                    weight += packed[place, column + 2]
                    count += 1
            out[block, column] = low / count if count > 0 else np.inf
            out[block, column + 1] = high / count if count > 0 else -np.inf
            out[block, column + 2] = weight / count if count > 0 else 0.0
