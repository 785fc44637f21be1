"""Bit operations on 64-bit masks: one instruction each, or plain Python without the JIT."""

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


def count_trailing_typed(_: Any, mask: Any) -> Any:
    """Emit tzcnt."""

    def generate(__: Any, builder: Any, ___: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), generate


count_trailing: Any = intrinsic(count_trailing_typed)


def count_leading_typed(_: Any, mask: Any) -> Any:
    """Emit lzcnt."""

    def generate(__: Any, builder: Any, ___: Any, arguments: Any) -> Any:
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), generate


count_leading: Any = intrinsic(count_leading_typed)


def count_ones_typed(_: Any, mask: Any) -> Any:
    """Emit popcnt."""

    def generate(__: Any, builder: Any, ___: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.int64), generate


count_ones: Any = intrinsic(count_ones_typed)


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
