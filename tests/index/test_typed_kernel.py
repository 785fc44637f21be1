"""Kernels called without type resolution: same results as by numba's dispatcher."""

from typing import NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s
from tidings.compiled.jit import kernel
from tidings.index import arguments
from tidings.index.typed_kernel import TypedKernel


class Pair(NamedTuple):
    numbers: Float64s
    factor: float


@kernel
def scaled_sum(pair: Pair, more: float) -> float:
    """Return the scaled sum of the numbers, and more."""
    total = more
    for number in pair.numbers:
        total += pair.factor * number
    return total


def test_calls_equal_those_of_the_kernel() -> None:
    typed = TypedKernel(scaled_sum)
    for size in (3, 0, 5):
        pair = Pair(np.arange(float(size)), 2.0)
        assert typed(pair, 1.0) == scaled_sum(pair, 1.0)


def test_arrays_from_arguments_have_one_layout() -> None:
    unaligned = np.frombuffer(bytes(25), np.uint8)[1:].view(np.float64)
    assert not unaligned.flags.aligned
    for values in (unaligned, np.zeros(6)[::2], [1, 2], np.zeros(3, ">f8")):
        array = arguments.numbers("values", values)
        assert array.flags.aligned
        assert array.flags.c_contiguous
        assert array.dtype == np.float64
