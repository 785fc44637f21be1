"""64 one-byte codes at once: which intervals contain a code, and the sums of weights that hold.

    stab    attribute j of a block   | 64 lows | 64 highs |                 two comparisons
    weigh   attribute j of a block   | 64 lows | 64 lengths | 64 weights |  one comparison

A low of 255 with a high of 0 contains nothing. Blocks to be weighed hold lengths instead of highs,
since low <= code <= high is code - low <= length in unsigned bytes: one comparison less. Each
intrinsic has a plain twin, which runs without the JIT and on CPUs without wide vectors.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tidings.compiled.array_types import Int64s, UInt8s, UInt16s
from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined, inner, wide_vectors
from tidings.compiled.simd import LANES, splat

GROUP: Final = 8
"""The weights of 8 attributes add up within one byte, which is scaled for that; the groups add up
in two bytes."""


class BlockSpan(NamedTuple):
    """A block of codes, and how it is weighed."""

    first: int
    attributes: int
    greatest: bool
    """Whether the greatest weight counts, not the sum."""
    ranged: bool
    """Whether events are ranges, each with two codes an attribute."""


class EventCodes(NamedTuple):
    """The codes of events: lows must not exceed `below`, and highs must reach `above`."""

    below: UInt8s
    above: UInt8s


class EventGroup(NamedTuple):
    """1 or 4 events that share the loads of a block."""

    rows: Int64s
    starts: Int64s
    """Where the codes of each event start."""
    required: Int64s
    """The sum that a lane needs, per event."""
    masks: Int64s
    """The lanes that reach it."""
    sums: UInt16s
    """The sums of 64 lanes, per event."""


BYTE, PAIR, WORD = ir.IntType(8), ir.IntType(16), ir.IntType(64)
BYTES, PAIRS = ir.VectorType(BYTE, LANES), ir.VectorType(PAIR, LANES)


def data_of(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    """Return the data pointer of an array."""
    return context.make_array(kind)(context, builder, array).data


def load(builder: Any, data: Any, place: Any, vector: Any) -> Any:
    """Emit a load of 64 numbers from `place` on."""
    pointer = builder.bitcast(builder.gep(data, [place]), vector.as_pointer())
    return builder.load(pointer, align=1)


def stab_typed(_: Any, codes: Any, lows: Any, highs: Any, below: Any, above: Any) -> Any:
    """Emit the comparison of 64 lows with one code and 64 highs with another."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = data_of(context, builder, signature.args[0], arguments[0])
        low, high = (load(builder, data, side, BYTES) for side in arguments[1:3])
        below, above = (splat(builder, BYTES, code) for code in arguments[3:])
        under = builder.icmp_unsigned("<=", low, below)
        mask = builder.and_(under, builder.icmp_unsigned(">=", high, above))
        return builder.bitcast(mask, WORD)

    return types.int64(codes, types.int64, types.int64, types.uint8, types.uint8), generate


def added(builder: Any, sums: Any, more: Any) -> Any:
    """Emit an addition."""
    return builder.add(sums, more)


def greater(builder: Any, sums: Any, more: Any) -> Any:
    """Emit an unsigned maximum."""
    return builder.select(builder.icmp_unsigned(">", more, sums), more, sums)


def weigh_with(combine: Any, events: int, holds: Any) -> Any:
    """Return an intrinsic f(codes, first, attributes, rows, group) for `events` events at once.

    The codes of event e are rows.below[starts[e]:] and, for ranges, also rows.above[starts[e]:].
    sums[64 e + i] becomes the combined weight of the predicates of lane i that hold, and bit i of
    masks[e] is set if it is required[e] or more. The loads of a block serve all events.
    """

    def typed(_: Any, codes: Any, first: Any, attributes: Any, rows: Any, group: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            codes = data_of(context, builder, signature.args[0], arguments[0])
            sides = [
                data_of(context, builder, rows[side], builder.extract_value(arguments[3], side))
                for side in range(2)
            ]
            starts, required, masks, sums = (
                data_of(
                    context, builder, group[column], builder.extract_value(arguments[4], column)
                )
                for column in range(1, 5)
            )
            starts, required, masks = (
                [builder.gep(column, [ir.Constant(WORD, event)]) for event in range(events)]
                for column in (starts, required, masks)
            )
            begins = [
                [builder.gep(side, [builder.load(start)]) for side in sides] for start in starts
            ]
            totals, parts = registers(builder, events, PAIRS), registers(builder, events, BYTES)
            clear(builder, totals, PAIRS)
            with groups(builder, arguments[2]) as (start, count):
                clear(builder, parts, BYTES)
                with cgutils.for_range(builder, count) as loop:
                    attribute = builder.add(start, loop.index)
                    place = builder.mul(attribute, ir.Constant(WORD, 3 * LANES))
                    place = builder.add(arguments[1], place)
                    block = [load_part(builder, codes, place, part) for part in range(3)]
                    for begin, part in zip(begins, parts, strict=True):
                        pointers = [builder.gep(side, [attribute]) for side in begin]
                        lanes = holds(builder, block, pointers)
                        weight = builder.select(lanes, block[2], ir.Constant(BYTES, None))
                        builder.store(combine(builder, builder.load(part), weight), part)
                for total, part in zip(totals, parts, strict=True):
                    # Widened once per group of attributes: additions of bytes handle twice as many
                    # lanes.
                    wider = builder.zext(builder.load(part), PAIRS)
                    builder.store(combine(builder, builder.load(total), wider), total)
            for event, total in enumerate(totals):
                least = builder.trunc(builder.load(required[event]), PAIR)
                combined = builder.load(total)
                enough = builder.icmp_unsigned(">=", combined, splat(builder, PAIRS, least))
                builder.store(builder.bitcast(enough, WORD), masks[event])
                target = builder.gep(sums, [ir.Constant(WORD, event * LANES)])
                target = builder.bitcast(target, PAIRS.as_pointer())
                builder.store(combined, target, align=2)
            return context.get_dummy_value()

        return types.void(codes, types.int64, types.int64, rows, group), generate

    return intrinsic(typed)


def registers(builder: Any, count: int, vector: Any) -> list[Any]:
    """Emit `count` vector variables; the compiler keeps them in registers."""
    make: Any = cgutils.alloca_once
    return [make(builder, vector) for _ in range(count)]


def clear(builder: Any, places: list[Any], vector: Any) -> None:
    """Emit stores of zeros."""
    for place in places:
        builder.store(ir.Constant(vector, None), place)


@contextmanager
def groups(builder: Any, attributes: Any) -> Iterator[tuple[Any, Any]]:
    """Emit a loop over groups of attributes; yield the start and the length of a group."""
    size = ir.Constant(WORD, GROUP)
    rounds = builder.sdiv(builder.add(attributes, ir.Constant(WORD, GROUP - 1)), size)
    with cgutils.for_range(builder, rounds) as group:
        start = builder.mul(group.index, size)
        remaining = builder.sub(attributes, start)
        yield start, builder.select(builder.icmp_signed("<", remaining, size), remaining, size)


def load_part(builder: Any, data: Any, place: Any, part: int) -> Any:
    """Emit the load of the lows, lengths or weights of a block."""
    return load(builder, data, builder.add(place, ir.Constant(WORD, part * LANES)), BYTES)


def point_holds(builder: Any, block: list[Any], codes: list[Any]) -> Any:
    """Emit which lanes contain a point, for which one code is enough."""
    # A code below the low wraps around to a large number, which no length reaches.
    past = builder.sub(splat(builder, BYTES, builder.load(codes[0])), block[0])
    return builder.icmp_unsigned("<=", past, block[1])


def range_holds(builder: Any, block: list[Any], codes: list[Any]) -> Any:
    """Emit which lanes have low <= below and above <= high.

    If `above` is not past the low, above - low wraps around; then any high reaches it.
    """
    low, length, _ = block
    below, above = (splat(builder, BYTES, builder.load(code)) for code in codes)
    under = builder.icmp_unsigned("<=", low, below)
    past = builder.sub(above, low)
    reached = builder.icmp_unsigned("<=", past, length)
    reached = builder.or_(reached, builder.icmp_unsigned("<=", above, low))
    return builder.and_(under, reached)


def reach_typed(_: Any, sums: Any, first: Any, least: Any) -> Any:
    """Emit the comparison of 64 two-byte sums with one."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = data_of(context, builder, signature.args[0], arguments[0])
        numbers = load(builder, data, arguments[1], PAIRS)
        least = splat(builder, PAIRS, builder.trunc(arguments[2], PAIR))
        return builder.bitcast(builder.icmp_unsigned(">=", numbers, least), WORD)

    return types.int64(sums, types.int64, types.int64), generate


stab_vector: Any = intrinsic(stab_typed)
reach_vector: Any = intrinsic(reach_typed)
sum_one: Any = weigh_with(added, 1, point_holds)
sum_four: Any = weigh_with(added, 4, point_holds)
sum_range: Any = weigh_with(added, 1, range_holds)
max_one: Any = weigh_with(greater, 1, point_holds)
max_four: Any = weigh_with(greater, 4, point_holds)
max_range: Any = weigh_with(greater, 1, range_holds)


def stab_plain(codes: UInt8s, lows: int, highs: int, below: int, above: int) -> int:
    """Return the mask of the lanes with low <= below and above <= high."""
    mask = int64(0)
    for lane in range(LANES):
        if codes[lows + lane] <= below and above <= codes[highs + lane]:
            mask |= int64(1) << int64(lane)
    return mask


def weigh_plain(codes: UInt8s, span: BlockSpan, rows: EventCodes, group: EventGroup) -> None:
    """Write the sums of the lanes of a block for each event, and the masks of those required."""
    for event in range(len(group.masks)):
        mask = int64(0)
        for lane in range(LANES):
            total = int64(0)
            for attribute in range(span.attributes):
                place = span.first + attribute * 3 * LANES + lane
                low, code = int64(codes[place]), group.starts[event] + attribute
                if low <= rows.below[code] and rows.above[code] <= low + codes[place + LANES]:
                    weight = int64(codes[place + 2 * LANES])
                    total = max(total, weight) if span.greatest else total + weight
            group.sums[event * LANES + lane] = total
            if total >= group.required[event]:
                mask |= int64(1) << int64(lane)
        group.masks[event] = mask


def reach_plain(sums: UInt16s, first: int, least: int) -> int:
    """Return the mask of the lanes whose sum is `least` or more."""
    mask = int64(0)
    for lane in range(LANES):
        if sums[first + lane] >= least:
            mask |= int64(1) << int64(lane)
    return mask


@inner
def stab_fast(codes: UInt8s, lows: int, highs: int, below: int, above: int) -> int:
    """Return the mask of the lanes with low <= below and above <= high."""
    mask: int = stab_vector(codes, lows, highs, below, above)
    return mask


@inlined
def weigh_fast(codes: UInt8s, span: BlockSpan, rows: EventCodes, group: EventGroup) -> None:
    """Write the sums of the lanes of a block for each event, and the masks of those required.

    Ranges are weighed one by one.
    """
    first, attributes, greatest = span.first, span.attributes, span.greatest
    if span.ranged and greatest:
        max_range(codes, first, attributes, rows, group)
    elif span.ranged:
        sum_range(codes, first, attributes, rows, group)
    elif len(group.rows) == 1 and greatest:
        max_one(codes, first, attributes, rows, group)
    elif len(group.rows) == 1:
        sum_one(codes, first, attributes, rows, group)
    elif greatest:
        max_four(codes, first, attributes, rows, group)
    else:
        sum_four(codes, first, attributes, rows, group)


@inner
def reach_fast(sums: UInt16s, first: int, least: int) -> int:
    """Return the mask of the lanes whose sum is `least` or more."""
    mask: int = reach_vector(sums, first, least)
    return mask


WIDE: Final = wide_vectors()
stab = stab_fast if WIDE else inner(stab_plain)
weigh = weigh_fast if WIDE else inner(weigh_plain)
reach = reach_fast if WIDE else inner(reach_plain)
