"""Casts to machine numbers: the same in kernels as in Python."""

from typing import Any

import numpy as np
import pytest

from tidings.compiled.ints import float32, int64, uint64
from tidings.compiled.jit import kernel


@kernel
def high_bits(word: int) -> int:
    return int(uint64(word) >> uint64(60))


@kernel
def rounded(number: float) -> float:
    return float(float32(number))


@kernel
def cut(number: float) -> int:
    return int64(number)


def test_a_negative_word_is_shifted_without_its_sign() -> None:
    words: Any = np.array([-1, 1, -(2**63)])
    assert [high_bits(word) for word in words] == [15, 0, 8]


@pytest.mark.parametrize("number", [0.1, -0.1, 1.0, 16_777_217.0, 1e-50])
def test_a_single_is_the_nearest(number: float) -> None:
    single: Any = np.array([number]).astype(np.float32)[0]
    assert rounded(number) == float(single) == float(float32(number))


@pytest.mark.parametrize(("number", "whole"), [(2.9, 2), (-2.9, -2), (-0.5, 0)])
def test_a_number_is_cut_towards_zero(number: float, whole: int) -> None:
    assert cut(number) == int64(number) == whole
