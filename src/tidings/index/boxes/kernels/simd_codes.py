"""Codes of one byte, 64 at once: which intervals contain a code, and what the holding ones weigh.

A block of 64 subscriptions holds, attribute by attribute, 64 lows and 64 highs (a low of 255 with a
high of 0 contains nothing), or, to be weighed, 64 lows, lengths and weights: one comparison less,
since low <= code <= high is code - low <= length in bytes without sign.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tidings.compiled.array_types import Int64s, UInt8s, UInt16s
from tidings.compiled.ints import int64
from tidings.compiled.jit import inlined, inner, wide_vectors
from tidings.compiled.simd import LANES, splat

Block = tuple[int, int, bool, bool]
"""Where a block begins, how many attributes it has, whether the greatest weight counts, and whether
events are ranges, each with two codes an attribute."""
Rows = tuple[UInt8s, UInt8s]
"""Codes of events: what lows must not exceed, and what highs must reach."""
Few = tuple[Int64s, Int64s, Int64s, Int64s, UInt16s]
"""1 or 4 events that go together: their rows; where the codes of each start, what each asks of a
block, the lanes that meet it, and the sums of 64 lanes for each."""

GROUP: Final = 8
"""The weights of so many attributes add up within one byte; the groups add up in two."""

BYTE, PAIR, WORD = ir.IntType(8), ir.IntType(16), ir.IntType(64)
BYTES, PAIRS = ir.VectorType(BYTE, LANES), ir.VectorType(PAIR, LANES)


def data_of(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    """Give where the numbers of an array lie."""
    return context.make_array(kind)(context, builder, array).data


def load(builder: Any, data: Any, place: Any, vector: Any) -> Any:
    """Load 64 numbers from `place` on."""
    pointer = builder.bitcast(builder.gep(data, [place]), vector.as_pointer())
    return builder.load(pointer, align=1)


def stab_typed(_: Any, codes: Any, lows: Any, highs: Any, below: Any, above: Any) -> Any:
    """Compare 64 lows with one code and 64 highs with another."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = data_of(context, builder, signature.args[0], arguments[0])
        low, high = (load(builder, data, side, BYTES) for side in arguments[1:3])
        below, above = (splat(builder, BYTES, code) for code in arguments[3:])
        under = builder.icmp_unsigned("<=", low, below)
        mask = builder.and_(under, builder.icmp_unsigned(">=", high, above))
        return builder.bitcast(mask, WORD)

    return types.int64(codes, types.int64, types.int64, types.uint8, types.uint8), generate


def added(builder: Any, sums: Any, more: Any) -> Any:
    """Add."""
    return builder.add(sums, more)


def greater(builder: Any, sums: Any, more: Any) -> Any:
    """Take the greater."""
    return builder.select(builder.icmp_unsigned(">", more, sums), more, sums)


def weigh_with(combine: Any, events: int, holds: Any) -> Any:
    """Make f(codes, first, attributes, rows, few) for so many events at once.

    The codes of event e are rows[0][starts[e]:] and, of ranges, also rows[1][starts[e]:];
    sums[64 e + i] is what the weights of lane i that hold combine to, and bit i of masks[e] is set
    where it is leasts[e] or more. What is loaded of a block serves all events.
    """

    def typed(_: Any, codes: Any, first: Any, attributes: Any, rows: Any, few: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            codes = data_of(context, builder, signature.args[0], arguments[0])
            sides = [
                data_of(context, builder, rows[at], builder.extract_value(arguments[3], at))
                for at in range(2)
            ]
            starts, leasts, masks, sums = (
                data_of(context, builder, few[at], builder.extract_value(arguments[4], at))
                for at in range(1, 5)
            )
            starts, leasts, masks = (
                [builder.gep(each, [ir.Constant(WORD, event)]) for event in range(events)]
                for each in (starts, leasts, masks)
            )
            begins = [
                [builder.gep(side, [builder.load(each)]) for side in sides] for each in starts
            ]
            totals, parts = room_for(builder, events, PAIRS), room_for(builder, events, BYTES)
            clear(builder, totals, PAIRS)
            with groups(builder, arguments[2]) as (start, count):
                clear(builder, parts, BYTES)
                with cgutils.for_range(builder, count) as each:
                    attribute = builder.add(start, each.index)
                    place = builder.mul(attribute, ir.Constant(WORD, 3 * LANES))
                    place = builder.add(arguments[1], place)
                    block = [at_lane(builder, codes, place, part) for part in range(3)]
                    for begin, part in zip(begins, parts, strict=True):
                        two = [builder.gep(side, [attribute]) for side in begin]
                        weight = held(builder, block, holds(builder, block, two))
                        builder.store(combine(builder, builder.load(part), weight), part)
                for total, part in zip(totals, parts, strict=True):
                    wider = builder.zext(builder.load(part), PAIRS)
                    builder.store(combine(builder, builder.load(total), wider), total)
            for event, total in enumerate(totals):
                wanted = builder.trunc(builder.load(leasts[event]), PAIR)
                found = builder.load(total)
                enough = builder.icmp_unsigned(">=", found, splat(builder, PAIRS, wanted))
                builder.store(builder.bitcast(enough, WORD), masks[event])
                target = builder.gep(sums, [ir.Constant(WORD, event * LANES)])
                target = builder.bitcast(target, PAIRS.as_pointer())
                builder.store(found, target, align=2)
            return context.get_dummy_value()

        return types.void(codes, types.int64, types.int64, rows, few), generate

    return intrinsic(typed)


def room_for(builder: Any, count: int, vector: Any) -> list[Any]:
    """Make room for so many vectors; the compiler keeps them in registers."""
    make: Any = cgutils.alloca_once
    return [make(builder, vector) for _ in range(count)]


def clear(builder: Any, places: list[Any], vector: Any) -> None:
    """Store zeros."""
    for place in places:
        builder.store(ir.Constant(vector, None), place)


@contextmanager
def groups(builder: Any, attributes: Any) -> Iterator[tuple[Any, Any]]:
    """Loop over groups of attributes: where each starts, and how many it has."""
    size = ir.Constant(WORD, GROUP)
    rounds = builder.sdiv(builder.add(attributes, ir.Constant(WORD, GROUP - 1)), size)
    with cgutils.for_range(builder, rounds) as group:
        start = builder.mul(group.index, size)
        left = builder.sub(attributes, start)
        yield start, builder.select(builder.icmp_signed("<", left, size), left, size)


def at_lane(builder: Any, data: Any, place: Any, part: int) -> Any:
    """Load the lows, lengths or weights of a block."""
    return load(builder, data, builder.add(place, ir.Constant(WORD, part * LANES)), BYTES)


def point_holds(builder: Any, block: list[Any], codes: list[Any]) -> Any:
    """Say of each lane whether it contains a point, of which one code is enough."""
    past = builder.sub(splat(builder, BYTES, builder.load(codes[0])), block[0])
    return builder.icmp_unsigned("<=", past, block[1])


def range_holds(builder: Any, block: list[Any], codes: list[Any]) -> Any:
    """Say of each lane whether its low is not above the one code, nor its high below the other."""
    low, length, _ = block
    below, above = (splat(builder, BYTES, builder.load(code)) for code in codes)
    under = builder.icmp_unsigned("<=", low, below)
    past = builder.sub(above, low)
    reached = builder.icmp_unsigned("<=", past, length)
    reached = builder.or_(reached, builder.icmp_unsigned("<=", above, low))
    return builder.and_(under, reached)


def held(builder: Any, block: list[Any], holds: Any) -> Any:
    """Give the weights of the lanes that hold, and 0 elsewhere."""
    return builder.select(holds, block[2], ir.Constant(BYTES, None))


def reach_typed(_: Any, sums: Any, first: Any, least: Any) -> Any:
    """Compare 64 sums of two bytes with one."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = data_of(context, builder, signature.args[0], arguments[0])
        numbers = load(builder, data, arguments[1], PAIRS)
        wanted = splat(builder, PAIRS, builder.trunc(arguments[2], PAIR))
        return builder.bitcast(builder.icmp_unsigned(">=", numbers, wanted), WORD)

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
    """Give the lanes with low <= below and above <= high."""
    mask = int64(0)
    for lane in range(LANES):
        if codes[lows + lane] <= below and above <= codes[highs + lane]:
            mask |= int64(1) << int64(lane)
    return mask


def weigh_plain(codes: UInt8s, block: Block, rows: Rows, few: Few) -> None:
    """Give for each event the lanes whose holding weights combine to its `least` or more."""
    first, attributes, greatest, _ = block
    _, starts, leasts, masks, sums = few
    for event in range(len(masks)):
        mask = int64(0)
        for lane in range(LANES):
            total = int64(0)
            for each in range(attributes):
                at = first + each * 3 * LANES + lane
                low, place = int64(codes[at]), starts[event] + each
                if low <= rows[0][place] and rows[1][place] <= low + codes[at + LANES]:
                    weight = int64(codes[at + 2 * LANES])
                    total = max(total, weight) if greatest else total + weight
            sums[event * LANES + lane] = total
            if total >= leasts[event]:
                mask |= int64(1) << int64(lane)
        masks[event] = mask


def reach_plain(sums: UInt16s, first: int, least: int) -> int:
    """Give the lanes whose sum is `least` or more."""
    mask = int64(0)
    for lane in range(LANES):
        if sums[first + lane] >= least:
            mask |= int64(1) << int64(lane)
    return mask


@inner
def stab_fast(codes: UInt8s, lows: int, highs: int, below: int, above: int) -> int:
    """Give the lanes with low <= below and above <= high."""
    mask: int = stab_vector(codes, lows, highs, below, above)
    return mask


@inlined
def weigh_fast(codes: UInt8s, block: Block, rows: Rows, few: Few) -> None:
    """Give for each of 1 or 4 events the lanes whose holding weights combine to its `least`.

    Ranges come one by one.
    """
    first, attributes, greatest, ranged = block
    if ranged and greatest:
        max_range(codes, first, attributes, rows, few)
    elif ranged:
        sum_range(codes, first, attributes, rows, few)
    elif len(few[0]) == 1 and greatest:
        max_one(codes, first, attributes, rows, few)
    elif len(few[0]) == 1:
        sum_one(codes, first, attributes, rows, few)
    elif greatest:
        max_four(codes, first, attributes, rows, few)
    else:
        sum_four(codes, first, attributes, rows, few)


@inner
def reach_fast(sums: UInt16s, first: int, least: int) -> int:
    """Give the lanes whose sum is `least` or more."""
    mask: int = reach_vector(sums, first, least)
    return mask


WIDE: Final = wide_vectors()
stab = stab_fast if WIDE else inner(stab_plain)
weigh = weigh_fast if WIDE else inner(weigh_plain)
reach = reach_fast if WIDE else inner(reach_plain)
