"""The layout of relaxed matching: packed rows, totals, and directory rows that bound a block."""

from typing import Any

import numpy as np
import pytest

from tidings.index.boxes.kernels.quantize import BoxBounds
from tidings.index.boxes.kernels.relaxed_layout import hulls, middles, pack, total_weights


def random_packed(size, attributes, seed=0):
    rng = np.random.default_rng(seed)
    low = rng.integers(0, 6, (size, attributes)).astype(float)
    high: Any = low + rng.integers(0, 4, low.shape)
    free = rng.random(low.shape) < 0.2
    low[free], high[free] = -np.inf, np.inf
    weight = rng.integers(0, 9, low.shape) / 4
    packed = np.empty((size, 3 * attributes))
    pack(BoxBounds(low, high), weight, np.arange(size, dtype=np.int32), packed)
    return low, high, weight, free, packed


def test_free_attributes_are_packed_so_that_nothing_holds():
    low, _, weight, free, packed = random_packed(50, 3)
    rows = packed.reshape(50, 3, 3)
    assert (rows[free] == [np.inf, -np.inf, 0.0]).all()
    assert (rows[~free][:, 0] == low[~free]).all()
    assert (rows[~free][:, 2] == weight[~free]).all()


@pytest.mark.parametrize("greatest", [False, True])
def test_totals_count_constrained_attributes(greatest):
    low, high, weight, free, _ = random_packed(50, 3)
    totals = np.empty(50)
    total_weights(BoxBounds(low, high), weight, greatest, totals)
    held = np.where(free, 0.0, weight)
    assert totals.tolist() == (held.max(axis=1) if greatest else held.sum(axis=1)).tolist()


@pytest.mark.parametrize("greatest", [False, True])
def test_a_hull_scores_at_least_as_much_as_its_boxes(greatest):
    *_, packed = random_packed(130, 4, seed=1)
    rows = np.empty((3, 15))
    hulls(packed, greatest, rows)
    for event in np.random.default_rng(2).integers(-1, 10, (30, 4)).astype(float):
        parts = packed.reshape(130, 4, 3)
        held = np.where((parts[:, :, 0] <= event) & (event <= parts[:, :, 1]), parts[:, :, 2], 0)
        scores = held.max(axis=1) if greatest else held.sum(axis=1)
        hull = rows.reshape(3, 5, 3)
        value = np.append(event, 0.0)
        held = np.where((hull[:, :, 0] <= value) & (value <= hull[:, :, 1]), hull[:, :, 2], 0)
        bounds = held.max(axis=1) if greatest else held.sum(axis=1)
        assert (scores <= np.repeat(bounds, 64)[:130] + 1e-12).all()


def test_middles_of_open_sides_are_finite():
    low, high = np.array([[-np.inf], [3.0]]), np.array([[2.0], [np.inf]])
    packed, out = np.empty((2, 3)), np.empty((1, 3))
    pack(BoxBounds(low, high), np.ones((2, 1)), np.arange(2, dtype=np.int32), packed)
    middles(packed, out)
    assert np.isfinite(out).all()
    assert out[0, 2] == 1.0
