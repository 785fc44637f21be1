"""The columns of ranges of a block, compared 64 lanes at once with the codes of an event.

    judge    low <= below and above <= high in each column; at a border: low = first or high = last
    refine   the same among the places within cells, where low = first or high = last

Each intrinsic is a loop over the columns of a block and has a plain twin, which runs without the
JIT and on CPUs without wide vectors. A loop in the intrinsic computes addresses once: a call for
each column takes three times as long.
"""

from typing import Any, Final, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tidings.compiled.array_types import Int32s, UInt8s
from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined, inner, wide_vectors
from tidings.compiled.simd import LANES, splat
from tidings.index.boxes.kernels.simd_codes import (
    BYTES,
    WORD,
    data_of,
    load,
    registers,
)

BOTH: Final = 2 * LANES
"""The bytes of a column: lows, then highs."""
SIDES: Final = 6
"""The codes of an event in a slot: what lows must not exceed, what highs must reach, the borders of
both, and the places of both within their cells."""
BELOW, ABOVE, FIRST, LAST, FINE_BELOW, FINE_ABOVE = range(SIDES)


class Columns(NamedTuple):
    """The columns of all blocks, and the codes of some events."""

    slots: Int32s  # by column: the number of its slot
    codes: UInt8s  # by column: 64 lows, 64 highs
    fine: UInt8s  # their places within the cells of their codes
    event_codes: UInt8s  # by event: six for each slot, side by side


class ColumnSpan(NamedTuple):
    """The columns of a block, where the codes of an event begin, and how many slots there are."""

    first: int
    last: int
    at: int
    size: int


def judged(builder: Any, bounds: Any, sides: Any) -> tuple[Any, Any]:
    """Emit the comparison of codes: the lanes that may hold, and those at a border."""
    low, high = bounds[:2]
    under = builder.icmp_unsigned("<=", low, sides[BELOW])
    same = builder.icmp_unsigned("==", low, sides[FIRST])
    return (
        builder.and_(under, builder.icmp_unsigned(">=", high, sides[ABOVE])),
        builder.or_(same, builder.icmp_unsigned("==", high, sides[LAST])),
    )


def refined(builder: Any, bounds: Any, sides: Any) -> tuple[Any, Any]:
    """Emit the comparison of places within cells, in lanes at a border."""
    low, high, fine_low, fine_high = bounds
    lows = builder.icmp_unsigned("==", low, sides[FIRST])
    highs = builder.icmp_unsigned("==", high, sides[LAST])
    outside = builder.or_(
        builder.and_(lows, builder.icmp_unsigned(">", fine_low, sides[FINE_BELOW])),
        builder.and_(highs, builder.icmp_unsigned("<", fine_high, sides[FINE_ABOVE])),
    )
    border = builder.or_(
        builder.and_(lows, builder.icmp_unsigned("==", fine_low, sides[FINE_BELOW])),
        builder.and_(highs, builder.icmp_unsigned("==", fine_high, sides[FINE_ABOVE])),
    )
    return builder.not_(outside), border


def over_columns(compared: Any, arrays: int) -> Any:
    """Return f(columns, span, mask): the lanes of the mask that pass, and those at a border.

    It compares the codes, or with two arrays also the places within cells.
    """

    def typed(_: Any, columns: Any, span: Any, mask: Any) -> Any:
        pair = types.UniTuple(types.int64, 2)  # type: ignore[no-untyped-call]

        def generate(context: Any, builder: Any, __: Any, arguments: Any) -> Any:
            slots, codes, fine, event = (
                data_of(context, builder, kind, builder.extract_value(arguments[0], place))
                for place, kind in enumerate(columns)
            )
            first, last, at, size = (builder.extract_value(arguments[1], part) for part in range(4))
            lanes, border = registers(builder, 2, WORD)
            builder.store(arguments[2], lanes)
            builder.store(ir.Constant(WORD, 0), border)
            with cgutils.for_range(builder, last, start=first) as loop:
                slot = builder.load(builder.gep(slots, [loop.index]))
                begin = builder.add(at, builder.sext(slot, WORD))
                places = [begin]
                for _ in range(SIDES - 1):
                    places.append(builder.add(places[-1], size))
                sides = [
                    splat(builder, BYTES, builder.load(builder.gep(event, [place])))
                    for place in places
                ]
                place = builder.mul(loop.index, ir.Constant(WORD, BOTH))
                bounds = [
                    load(builder, data, builder.add(place, ir.Constant(WORD, shift)), BYTES)
                    for data in (codes, fine)[:arrays]
                    for shift in (0, LANES)
                ]
                passing, bordering = compared(builder, bounds, sides)
                passing = builder.and_(builder.load(lanes), builder.bitcast(passing, WORD))
                bordering = builder.bitcast(bordering, WORD)
                builder.store(passing, lanes)
                builder.store(builder.or_(builder.load(border), bordering), border)
                with builder.if_then(builder.icmp_signed("==", passing, ir.Constant(WORD, 0))):
                    loop.do_break()
            masks = [builder.load(lanes), builder.load(border)]
            return context.make_tuple(builder, pair, masks)

        return pair(columns, span, types.int64), generate

    return intrinsic(typed)


judge_vector: Any = over_columns(judged, 1)
refine_vector: Any = over_columns(refined, 2)


def judge_plain(columns: Columns, span: ColumnSpan, mask: int) -> tuple[int, int]:
    """Return the lanes of a mask whose ranges may hold by codes, and those at a border."""
    border = int64(0)
    for column in range(span.first, span.last):
        at, place = span.at + columns.slots[column], column * BOTH
        for lane in range(LANES):
            low, high = columns.codes[place + lane], columns.codes[place + LANES + lane]
            above = columns.event_codes[at + ABOVE * span.size]
            if low > columns.event_codes[at] or high < above:
                mask &= ~(int64(1) << int64(lane))
            first = columns.event_codes[at + FIRST * span.size]
            last = columns.event_codes[at + LAST * span.size]
            if low == first or high == last:
                border |= int64(1) << int64(lane)
        if mask == 0:
            break
    return mask, border


def refine_plain(columns: Columns, span: ColumnSpan, mask: int) -> tuple[int, int]:
    """Return the same by places within cells, which count at the borders only."""
    border = int64(0)
    for column in range(span.first, span.last):
        at, place = span.at + columns.slots[column], column * BOTH
        first = columns.event_codes[at + FIRST * span.size]
        last = columns.event_codes[at + LAST * span.size]
        below = columns.event_codes[at + FINE_BELOW * span.size]
        above = columns.event_codes[at + FINE_ABOVE * span.size]
        for lane in range(LANES):
            low = columns.codes[place + lane] == first
            high = columns.codes[place + LANES + lane] == last
            fine_low, fine_high = columns.fine[place + lane], columns.fine[place + LANES + lane]
            if (low and fine_low > below) or (high and fine_high < above):
                mask &= ~(int64(1) << int64(lane))
            if (low and fine_low == below) or (high and fine_high == above):
                border |= int64(1) << int64(lane)
        if mask == 0:
            break
    return mask, border


@inlined
def judge_fast(columns: Columns, span: ColumnSpan, mask: int) -> tuple[int, int]:
    """Return the lanes of a mask whose ranges may hold by codes, and those at a border."""
    masks: tuple[int, int] = judge_vector(columns, span, mask)
    return masks


@inlined
def refine_fast(columns: Columns, span: ColumnSpan, mask: int) -> tuple[int, int]:
    """Return the same by places within cells, which count at the borders only."""
    masks: tuple[int, int] = refine_vector(columns, span, mask)
    return masks


WIDE: Final = wide_vectors()
judge = judge_fast if WIDE else inner(judge_plain)
refine = refine_fast if WIDE else inner(refine_plain)
