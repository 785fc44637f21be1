"""Vector, bit and prefetch instructions, or plain Python where the JIT is off."""

from collections.abc import Callable
from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tidings.compiled.ints import int64
from tidings.compiled.jit import COMPILED, inner, wide_vectors

# Kernels that compare many numbers at once by vector instructions, or one by one without them.


LANES: Final = 64
WORDS: Final = 8
"""How many words `equal_words` compares."""


def splat(builder: Any, vector: Any, number: Any) -> Any:
    """Return a vector that holds one number in every lane."""
    lane = ir.IntType(32)
    empty = ir.Constant(vector, ir.Undefined)
    filled = builder.insert_element(empty, number, ir.Constant(lane, 0))
    return builder.shuffle_vector(
        filled, empty, ir.Constant(ir.VectorType(lane, vector.count), None)
    )


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


# Bit operations on 64-bit masks: one instruction each, or plain Python without the JIT.

WORD: Final = 1 << 64


def lowest_bit_plain(mask: int) -> int:
    """Return the position of the lowest set bit; the mask is not 0."""
    word = int(mask) % WORD
    return (word & -word).bit_length() - 1


def highest_bit_plain(mask: int) -> int:
    """Return the position of the highest set bit; the mask is not 0."""
    return (int(mask) % WORD).bit_length() - 1


def without_lowest_plain(mask: int) -> int:
    """Return the mask, as a signed word, without its lowest set bit."""
    word = int(mask) % WORD
    rest = word & (word - 1)
    return rest - WORD if rest >> 63 else rest


def ones_plain(mask: int) -> int:
    """Return the number of set bits."""
    return (int(mask) % WORD).bit_count()


def instruction(emit: Callable[[Any, Any], Any]) -> Any:
    """Return an intrinsic that is one instruction on a word."""

    def typed(_: Any, mask: Any) -> Any:
        def generate(__: Any, builder: Any, ___: Any, arguments: Any) -> Any:
            return emit(builder, arguments[0])

        return types.int64(types.int64), generate

    return intrinsic(typed)


# Masks are never 0, so that the result for 0 may be undefined: one instruction on every CPU.
_NEVER_ZERO: Final = ir.Constant(ir.IntType(1), 1)
count_trailing: Final = instruction(lambda builder, word: builder.cttz(word, _NEVER_ZERO))
count_leading: Final = instruction(lambda builder, word: builder.ctlz(word, _NEVER_ZERO))
count_ones: Final = instruction(lambda builder, word: builder.ctpop(word))


@inner
def ones_fast(mask: int) -> int:
    """Return the number of set bits."""
    ones: int = count_ones(mask)
    return ones


@inner
def lowest_bit_fast(mask: int) -> int:
    """Return the position of the lowest set bit; the mask is not 0."""
    position: int = count_trailing(mask)
    return position


@inner
def highest_bit_fast(mask: int) -> int:
    """Return the position of the highest set bit; the mask is not 0."""
    position: int = 63 - count_leading(mask)
    return position


@inner
def without_lowest_fast(mask: int) -> int:
    """Return the mask without its lowest set bit."""
    return mask & (mask - 1)


lowest_bit = lowest_bit_fast if COMPILED else lowest_bit_plain
highest_bit = highest_bit_fast if COMPILED else highest_bit_plain
without_lowest = without_lowest_fast if COMPILED else without_lowest_plain
ones = ones_fast if COMPILED else ones_plain


# Copies of short texts: one load and one store of a block, instead of a loop over its bytes.

BLOCK: Final = 32
"""How many bytes `copy_block` copies."""


def copy_plain(source: Any, first: int, out: Any, at: int) -> None:
    """Copy a block of bytes; the two may overlap."""
    out[at : at + BLOCK] = source[first : first + BLOCK]


def typed_copy(_: Any, source: Any, first: Any, out: Any, at: Any) -> Any:
    """Return the signature and the code of `copy_plain`, as one load and one store."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        block = ir.VectorType(ir.IntType(8), BLOCK).as_pointer()
        pointers = []
        for side in (0, 2):
            array = context.make_array(signature.args[side])(context, builder, arguments[side])
            place = builder.gep(array.data, [arguments[side + 1]])
            pointers.append(builder.bitcast(place, block))
        builder.store(builder.load(pointers[0], align=1), pointers[1], align=1)
        return context.get_dummy_value()

    return types.void(source, types.int64, out, types.int64), generate


copy_block: Final[Any] = intrinsic(typed_copy) if COMPILED else copy_plain


# LLVM prefetch intrinsic: hints that a cache line will be read soon.

_FLAGS: Final = (0, 3, 1)  # read, keep in all cache levels, data rather than code


def _typed(_: Any, array: Any, index: Any) -> Any:
    """Emit the hint for the line of `array[index]`; the array is taken as flat."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        pointer = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        call = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        builder.call(call, [pointer, *(word(flag) for flag in _FLAGS)])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


def _nothing(_array: Any, _index: int) -> None:
    """Do nothing: without compilation there is no latency to hide."""


prefetch: Final[Any] = intrinsic(_typed) if COMPILED else _nothing
