"""Masks of a block of 64 against their plain twins, and the rounding of queries."""

from typing import Any

import numpy as np
import pytest

from tidings.index.intervals.kernels.sopt_r_simd import (
    TreeFrame,
    inside,
    inside_plain,
    round_query,
    strictly_inside,
    strictly_inside_plain,
)


def test_masks_are_those_of_the_plain_twins():
    rng = np.random.default_rng(1)
    low = rng.integers(0, 9, 64).astype(np.float32)
    block = np.concatenate([low, low + rng.integers(0, 4, 64).astype(np.float32)])
    for number in range(12):
        q: Any = np.float32(number)
        assert inside(block, 0, q, q) == inside_plain(block, 0, q, q)
        assert strictly_inside(block, 0, q, q) == strictly_inside_plain(block, 0, q, q)


@pytest.mark.parametrize("q", [0.1, -0.1, 0.5, 1e300, -1e300, np.inf, -np.inf, 3.0])
def test_a_query_lies_between_its_roundings(q):
    down, up = round_query(TreeFrame(0.0, 8.0, 0.25), q)
    framed = np.clip(q, -8.0, 8.0) * 0.25 if np.isfinite(q) else q
    assert down <= framed <= up
