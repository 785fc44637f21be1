"""Sums without error, against `math.fsum`."""

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.compiled.exact_sum import PARTS, sum_add, sum_by_group, sum_total
from tidings.compiled.jit import kernel


@kernel
def total(numbers: np.ndarray) -> float:
    parts, size = np.empty(PARTS), 0
    for number in numbers:
        size = sum_add(parts, size, number)
    return sum_total(parts, size)


NUMBERS = st.floats(-1e100, 1e100) | st.sampled_from(
    [0.0, 0.1, 0.2, 0.3, 1e16, 1.0, 2**-53, 1e-300]
)


@given(st.lists(NUMBERS))
def test_it_is_fsum(numbers: list[float]) -> None:
    assert total(np.array(numbers)) == math.fsum(numbers)


@pytest.mark.parametrize(
    "numbers",
    [
        [1.0, 2**-53, 2**-106],  # above a half
        [1.0, 2**-53, -(2**-106)],  # below it
        [1.0, 2**-53],  # the half itself, to even
        [1e16, 1.0, 1e-16],
        [0.1] * 10,
    ],
)
def test_halves_look_at_what_lies_below(numbers: list[float]) -> None:
    assert total(np.array(numbers)) == math.fsum(numbers)


def test_the_order_does_not_matter() -> None:
    numbers = [0.1, 0.2, 0.3, 1e15, 1e-9]
    found = {total(np.array(order)) for order in permutations(numbers)}
    assert found == {math.fsum(numbers)}
    assert len({sum(order) for order in permutations(numbers)}) > 1


@given(st.lists(st.tuples(st.integers(0, 3), NUMBERS)))
def test_groups_are_summed_alone(pairs: list[tuple[int, float]]) -> None:
    groups = np.array([group for group, _ in pairs], np.int32)
    numbers = np.array([number for _, number in pairs], np.float64)
    sums = sum_by_group(groups, numbers, np.bincount(groups, minlength=4))
    expected = [math.fsum(number for own, number in pairs if own == group) for group in range(4)]
    assert sums.tolist() == expected
