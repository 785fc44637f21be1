"""The SOPT-R-tree in blocks of 64: float32 frames, rounding, and how few blocks a query enters."""

import os

import numpy as np

from tidings.index.intervals.protocol import rank_intervals
from tidings.index.intervals.sopt_r_simd import (
    block_starts,
    frame_of,
    framed,
    rounded_down,
    sopt_r_64,
)

JIT = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"


def test_at_most_2k_blocks_where_rounding_changes_nothing():
    rng = np.random.default_rng(7)
    low = rng.integers(0, 1000, 5000 if JIT else 300) / 1024
    high = low + rng.integers(0, 20, len(low)) / 1024
    index = sopt_r_64(rank_intervals(low, high, rng.random(len(low))))
    for q in rng.integers(0, 1000, 50) / 1024:
        index.top(q, 5)
        assert index.counters()["leaves"] <= 10


def test_rounding_down_is_never_up():
    numbers = np.array([0.1, -0.1, np.inf, -np.inf, 0.5, 1e-60])
    rounded = rounded_down(numbers).astype(float)
    assert (rounded <= numbers).all()
    assert rounded[4] == 0.5


def test_times_close_together_and_far_from_zero_stay_distinct():
    """Seconds of one day in 2026: plain float32 would resolve only every second minute."""
    rng = np.random.default_rng(1)
    low = 1_790_000_000 + rng.integers(0, 86_400, 3000 if JIT else 300).astype(float)
    index = sopt_r_64(rank_intervals(low, low + 5, rng.random(len(low))))
    for q in low[:50]:
        ids = index.top(q, 20)
        assert index.counters()["intervals"] == len(ids)


def test_a_frame_reaches_all_bounds():
    low, high = np.array([-1e308, 5.0, -np.inf]), np.array([1.7e308, 6.0, np.inf])
    frame = frame_of(low, high)
    assert np.abs(framed(frame, np.array([-1e308, 1.7e308, 5.0]))).max() <= 1
    assert frame_of(low[2:], high[2:]) == (0.0, 2.0, 1.0)
    assert frame_of(low[1:2], low[1:2]).base == 5.0


def test_levels_end_with_one_block():
    assert block_starts(0).tolist() == [0, 1]
    assert block_starts(64).tolist() == [0, 1]
    assert block_starts(65).tolist() == [0, 2, 3]
    assert block_starts(64 * 64 + 1).tolist() == [0, 65, 67, 68]
