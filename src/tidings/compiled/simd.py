"""Kernels that compare many numbers at once by vector instructions, or one by one without them."""

from collections.abc import Callable
from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tidings.compiled.ints import int64
from tidings.compiled.jit import COMPILED, inner, wide_vectors

LANES: Final = 64
WORDS: Final = 8
"""How many words `equal_words` compares."""


def splat(builder: Any, vector: Any, number: Any) -> Any:
    """Return a vector that holds one number in every lane."""
    lane = ir.IntType(32)
    empty = ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(empty, number, ir.Constant(lane, 0))
    return builder.shuffle_vector(one, empty, ir.Constant(ir.VectorType(lane, vector.count), None))


def compare_bounds(comparison: str, number: Any, lanes: int = LANES) -> Any:
    """Return f(bounds, lows, highs, below, above), a mask of `lanes` bits, for arrays of `number`.

    Bit i is set where bounds[lows + i] < below and above < bounds[highs + i], or with <=.
    """

    def typed(_: Any, bounds: Any, lows: Any, highs: Any, below: Any, above: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            vector = ir.VectorType(context.get_value_type(number), lanes)
            masks = []
            for side, sign in enumerate((comparison, comparison.replace("<", ">"))):
                pointer = builder.gep(array.data, [arguments[1 + side]])
                pointer = builder.bitcast(pointer, vector.as_pointer())
                numbers = builder.load(pointer, align=number.bitwidth // 8)
                limit = splat(builder, vector, arguments[3 + side])
                masks.append(builder.fcmp_ordered(sign, numbers, limit))
            mask = builder.bitcast(builder.and_(*masks), ir.IntType(lanes))
            return mask if lanes == LANES else builder.zext(mask, ir.IntType(LANES))

        return types.int64(bounds, types.int64, types.int64, number, number), generate

    return intrinsic(typed)


def plain_mask(comparison: str, lanes: int = LANES) -> Callable[..., int]:
    """Return the same comparison, lane by lane."""
    strict = comparison == "<"

    def plain(bounds: Any, lows: int, highs: int, below: float, above: float) -> int:
        mask = int64(0)
        for lane in range(lanes):
            low, high = bounds[lows + lane], bounds[highs + lane]
            # NaN fails both, as it does in a vector comparison: it pads blocks.
            if (low < below and above < high) if strict else (low <= below and above <= high):
                mask |= int64(1) << int64(lane)
        return mask

    return plain


def bounds_mask(comparison: str, number: Any, lanes: int = LANES) -> Callable[..., int]:
    """Return the comparison as a kernel for other kernels: the intrinsic, if this CPU has AVX2."""
    compare = compare_bounds(comparison, number, lanes)

    def fast(bounds: Any, lows: int, highs: int, below: float, above: float) -> int:
        mask: int = compare(bounds, lows, highs, below, above)
        return mask

    return inner(fast if wide_vectors() else plain_mask(comparison, lanes))


def equal_plain(words: Any, one: int, other: int) -> int:
    """Return a mask of 8 bits: bit i is set where words[one + i] == words[other + i]."""
    return sum(1 << lane for lane in range(WORDS) if words[one + lane] == words[other + lane])


def typed_equality(_: Any, words: Any, one: Any, other: Any) -> Any:
    """Return the signature and the code of `equal_plain`, as one comparison of vectors."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        vector = ir.VectorType(ir.IntType(64), WORDS)
        sides = []
        for start in arguments[1:]:
            pointer = builder.bitcast(builder.gep(array.data, [start]), vector.as_pointer())
            sides.append(builder.load(pointer, align=8))
        mask = builder.bitcast(builder.icmp_unsigned("==", *sides), ir.IntType(WORDS))
        return builder.zext(mask, ir.IntType(64))

    return types.int64(words, types.int64, types.int64), generate


compare_words: Any = intrinsic(typed_equality)


@inner
def equal_fast(words: Any, one: int, other: int) -> int:
    """Return a mask of 8 bits: bit i is set where words[one + i] == words[other + i]."""
    mask: int = compare_words(words, one, other)
    return mask


equal_words = equal_fast if COMPILED else equal_plain
