"""The kernels of boxes against their plain twins and plain Python."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.compiled.rounding import rounded
from tidings.index.boxes.kernels import simd_codes
from tidings.index.boxes.kernels.quantize import code_rows
from tidings.index.boxes.kernels.topk_heap import best_offer, best_sort


@given(st.floats(0, 1e300))
def test_rounding_is_that_of_python(score):
    assert rounded(score) == round(score, 12)


@given(st.integers(0, 10**15))
def test_rounding_near_halves_is_that_of_python(halves):
    score = (halves + 0.5) / 1e12
    for near in (np.nextafter(score, 0), score, np.nextafter(score, 1e9)):
        assert rounded(float(near)) == round(float(near), 12)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50)), unique=True), st.integers(0, 9))
def test_the_best_are_kept_in_order(entries, k):
    scores, ids, size = np.zeros((2, k)), np.zeros((2, k), np.int64), 0
    for score, id in entries:
        size = best_offer((scores, ids, 1), size, float(score), id)
    best_sort((scores, ids, 1), size)
    expected = sorted(entries, key=lambda entry: (-entry[0], entry[1]))[:k]
    assert list(zip(scores[1, :size], ids[1, :size], strict=True)) == expected


@pytest.mark.parametrize("greatest", [False, True])
@pytest.mark.parametrize(("events", "ranged"), [(1, False), (4, False), (1, True)])
@pytest.mark.parametrize("attributes", [1, 7, 8, 9, 40])
def test_vectors_weigh_as_their_plain_twin(greatest, events, ranged, attributes):
    rng = np.random.default_rng(attributes)
    codes = rng.integers(0, 256, 64 + attributes * 192).astype(np.uint8)
    codes.reshape(-1, 64)[3::3] //= 8  # the weights of a group fit a byte
    codes.reshape(-1, 64)[2::3] = 254 - codes.reshape(-1, 64)[1:-1:3].clip(0, 254)
    below = rng.integers(0, 256, (events, attributes)).astype(np.uint8).ravel()
    above = rng.integers(0, 256, len(below)).astype(np.uint8) if ranged else below
    results = []
    for weigh in (simd_codes.weigh, simd_codes.weigh_plain):
        few = (
            np.arange(events),
            np.arange(events) * attributes,
            np.full(events, 9 * attributes),
            np.zeros(events, np.int64),
            np.zeros(events * 64, np.uint16),
        )
        weigh(codes, (64, attributes, greatest, ranged), (below, above), few)
        results.append([each.tolist() for each in few])
    assert results[0] == results[1]


def test_vectors_compare_as_their_plain_twins():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 256, 200).astype(np.uint8)
    sums = rng.integers(0, 65536, 100).astype(np.uint16)
    for number in (0, 1, 127, 128, 254, 255):
        for other in (number, 40, 200):
            bytes_: Any = np.uint8(number), np.uint8(other)
            plain = simd_codes.stab_plain(codes, 3, 70, number, other)
            assert simd_codes.stab(codes, 3, 70, *bytes_) == plain
        wanted = 257 * number
        assert simd_codes.reach(sums, 9, wanted) == simd_codes.reach_plain(sums, 9, wanted)


def test_codes_keep_order_and_know_what_is_missing():
    cuts = np.array([[1.0, 2.0, 3.0, np.inf]]), np.array([3])
    rows = np.array([[-np.inf], [0.0], [1.0], [2.5], [3.0], [np.inf], [np.nan]])
    codes = np.empty(rows.shape, np.uint8)
    code_rows(cuts, rows, codes)
    assert codes.ravel().tolist() == [0, 0, 1, 2, 3, 3, 255]
