"""Bit operations on 64-bit masks: one instruction each, or plain Python without the JIT."""

from collections.abc import Callable
from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tidings.compiled.jit import COMPILED, inner

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
