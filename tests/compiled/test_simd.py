"""Masks of comparisons against plain Python, bit by bit."""

from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import types

from tidings.compiled.jit import COMPILED, kernel
from tidings.compiled.simd import (
    BLOCK,
    LANES,
    WORDS,
    bounds_mask,
    copy_block,
    copy_plain,
    equal_plain,
    equal_words,
    ones,
    ones_plain,
    plain_mask,
    prefetch,
)

_within = bounds_mask("<=", types.float64)
_strictly_within = bounds_mask("<", types.float64)
_four_within = bounds_mask("<=", types.float64, 4)
_single_within = bounds_mask("<=", types.float32)


@kernel
def within(bounds: Any, lows: int, highs: int, below: float, above: float) -> int:
    return _within(bounds, lows, highs, below, above)


@kernel
def strictly_within(bounds: Any, lows: int, highs: int, below: float, above: float) -> int:
    return _strictly_within(bounds, lows, highs, below, above)


@kernel
def four_within(bounds: Any, lows: int, highs: int, below: float, above: float) -> int:
    return _four_within(bounds, lows, highs, below, above)


@kernel
def single_within(bounds: Any, lows: int, highs: int, below: float, above: float) -> int:
    return _single_within(bounds, lows, highs, below, above)


def signed(bits: list[bool]) -> int:
    """Return a mask as a signed number of 64 bits."""
    mask = sum(bit << place for place, bit in enumerate(bits))
    return mask - 2**64 if mask >= 2**63 else mask


NUMBERS = st.sampled_from([0.0, -0.0, 1.0, 2.0, 3.0, float("inf"), float("-inf"), float("nan")])
QUERIES = st.sampled_from([0.0, 1.0, 2.0, 3.0, float("inf"), float("-inf")])


@given(st.lists(NUMBERS, min_size=7, max_size=7), st.integers(0, 3), QUERIES, QUERIES)
def test_masks_are_those_of_plain_comparisons(
    some: list[float], start: int, below: float, above: float
) -> None:
    bounds = np.resize(np.array(some), start + 2 * LANES)
    lows, highs = bounds[start : start + LANES], bounds[start + LANES : start + 2 * LANES]
    pairs = list(zip(lows.tolist(), highs.tolist(), strict=True))
    inside = [low <= below and above <= high for low, high in pairs]
    strictly = [low < below and above < high for low, high in pairs]
    place = (start, start + LANES)
    assert within(bounds, *place, below, above) == signed(inside)
    assert strictly_within(bounds, *place, below, above) == signed(strictly)
    one: Any = bounds.astype(np.float32)
    assert single_within(one, *place, below, above) == signed(inside)
    assert four_within(bounds, *place, below, above) == signed(inside[:4])
    # The twin of CPUs without wide vectors.
    assert plain_mask("<=")(bounds, *place, below, above) == signed(inside)
    assert plain_mask("<", 4)(bounds, *place, below, above) == signed(strictly[:4])


def test_the_last_lane_is_the_sign_of_the_mask() -> None:
    bounds = np.zeros(2 * LANES)
    bounds[: LANES - 1] = 1.0
    assert within(bounds, 0, LANES, 0.0, 0.0) == -(2**63)
    assert within(bounds, 0, LANES, 1.0, 0.0) == -1
    assert four_within(bounds, 0, LANES, 1.0, 0.0) == 0b1111


@kernel
def equal(words: Any, one: int, other: int) -> int:
    return equal_words(words, one, other)


@given(st.lists(st.sampled_from([0, 1, 2**63, 2**64 - 1]), min_size=20, max_size=20), st.data())
def test_words_are_compared_as_one_by_one(numbers: list[int], data: st.DataObject) -> None:
    words = np.array(numbers, np.uint64)
    one, other = (data.draw(st.integers(0, len(numbers) - WORDS)) for _ in range(2))
    expected = [numbers[one + lane] == numbers[other + lane] for lane in range(WORDS)]
    assert equal(words, one, other) == signed(expected) == equal_plain(words, one, other)


@kernel
def copied(source: Any, first: int, out: Any, at: int) -> None:
    copy_block(source, first, out, at)


@given(st.binary(min_size=2 * BLOCK, max_size=2 * BLOCK), st.data())
def test_a_block_is_copied_even_onto_itself(text: bytes, data: st.DataObject) -> None:
    first, at = (data.draw(st.integers(0, BLOCK)) for _ in range(2))
    for way in (copied, copy_plain):
        out = np.frombuffer(text, np.uint8).copy()
        way(out, first, out, at)
        assert bytes(out) == text[:at] + text[first : first + BLOCK] + text[at + BLOCK :]


@pytest.mark.parametrize(
    ("mask", "count"), [(0, 0), (1, 1), (-1, 64), (-(2**63), 1), (0b1011, 3), (2**62 + 2**31, 2)]
)
def test_ones(mask: int, count: int) -> None:
    assert ones(mask) == ones_plain(mask) == count


def _hinted(array: Any, index: int) -> float:
    prefetch(array, index)
    return float(array[0])


hinted = kernel(_hinted)


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.uint8])
@pytest.mark.parametrize("index", [0, 2, -1, 10**9])
def test_any_index_may_be_hinted_at(dtype: type, index: int) -> None:
    array: Any = np.array([3, 4, 5], dtype)
    assert hinted(array, index) == 3.0
    assert array.tolist() == [3, 4, 5]


@pytest.mark.skipif(not COMPILED, reason="without compilation there is no hint")
def test_the_hint_is_an_instruction_to_read_and_keep() -> None:
    compiled: Any = numba.njit(_hinted)  # code from a cache cannot be inspected
    compiled(np.array([1.0]), 0)
    code = "\n".join(compiled.inspect_llvm().values())
    assert "llvm.prefetch" in code
    assert "i32 0, i32 3, i32 1)" in code
