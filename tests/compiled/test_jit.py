"""The decorators of kernels; direct calls return the same results as numba's dispatcher."""

from typing import NamedTuple

import numpy as np

from tidings.compiled.array_types import Float64s
from tidings.compiled.jit import TypedKernel, inner, kernel
from tidings.index import arguments


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


@inner
def scaled(number: float, factor: float) -> float:
    return number * factor


@kernel
def scaled_twice(number: float, factor: float) -> float:
    return scaled(scaled(number, factor), factor)


def test_a_kernel_that_others_call_has_an_entry_of_its_own() -> None:
    """The form that is linked into others has no machine code to go to."""
    assert scaled_twice(3.0, 2.0) == 12
    typed = TypedKernel(scaled)
    assert [typed(3.0, 2.0), typed(4.0, 2.0)] == [6, 8]


def test_arrays_from_arguments_have_one_layout() -> None:
    unaligned = np.frombuffer(bytes(25), np.uint8)[1:].view(np.float64)
    assert not unaligned.flags.aligned
    for values in (unaligned, np.zeros(6)[::2], [1, 2], np.zeros(3, ">f8")):
        array = arguments.numbers("values", values)
        assert array.flags.aligned
        assert array.flags.c_contiguous
        assert array.dtype == np.float64
