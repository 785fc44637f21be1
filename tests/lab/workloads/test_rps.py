"""The Zipfian intervals, boxes and points of RPS 4."""

from dataclasses import replace

import numpy as np
import pytest

from tidings.lab.workloads.rps import (
    TABLE_1,
    ZipfSpace,
    boxes,
    few_of_many,
    intervals,
    lengths,
    points,
    region_side,
    short_intervals,
)
from tidings.lab.workloads.zipf import zipf_weights


def arrays(workload):
    return list(vars(workload).values())


@pytest.mark.parametrize(
    "draw",
    [
        lambda seed: intervals(500, 20, seed),
        lambda seed: short_intervals(500, 20, seed),
        lambda seed: boxes(500, 3, 20, seed),
        lambda seed: few_of_many(500, 20, 20, seed),
    ],
)
def test_the_seed_decides_everything(draw):
    for first, second in zip(arrays(draw(5)), arrays(draw(5)), strict=True):
        assert np.array_equal(first, second)
    assert not np.array_equal(arrays(draw(5))[0], arrays(draw(6))[0])


def test_the_defaults_are_those_of_table_1():
    assert ZipfSpace(10, 100, 1 / 20, 0.0, 1.0, 0.75) == TABLE_1
    assert [region_side(TABLE_1, dimensions) for dimensions in (1, 2, 3)] == [5, 22, 37]


def test_the_score_of_an_interval_is_one_less_half_its_length():
    work = intervals(2000, 100, 3)
    half = (work.high - work.low) / 2
    assert np.allclose(work.score, 1 - half)
    assert half.min() > 0
    assert half.max() <= 1
    assert ((work.queries >= 0) & (work.queries < 1)).all()


def test_a_query_stabs_about_two_fifths_of_the_intervals():
    work = intervals(4000, 400, 1)
    stabbed = (work.low[None] <= work.queries[:, None]) & (work.queries[:, None] <= work.high[None])
    assert 0.25 < stabbed.mean() < 0.55


@pytest.mark.parametrize("skew", [0.0, 0.75, 2.0])
def test_lengths_follow_zipf(skew):
    space = replace(TABLE_1, skew_length=skew)
    drawn = lengths(np.random.default_rng(2), space, 20_000)
    cells = np.bincount((drawn * space.cells).astype(int), minlength=space.cells)[:5] / len(drawn)
    assert np.allclose(cells, zipf_weights(space.cells, skew)[:5], atol=0.01)


def test_points_lie_in_regions_by_the_skew_across_them():
    space = replace(TABLE_1, skew_across=1.0)
    corners = np.array([[0], [50]])
    drawn = points(np.random.default_rng(4), space, corners, 5, 9000)[:, 0]
    first = drawn < 0.05
    assert (first | ((drawn >= 0.5) & (drawn < 0.55))).all()
    assert abs(first.mean() - 2 / 3) < 0.02
    middle = ((drawn[first] * 100).astype(int) == 2).mean()
    assert abs(middle - zipf_weights(5)[0]) < 0.02


def test_boxes_have_a_weight_in_each_dimension():
    work = boxes(1000, 3, 50, 7)
    assert work.low.shape == work.high.shape == work.weight.shape == (1000, 3)
    assert np.allclose(work.weight, 1 - (work.high - work.low) / 2)
    assert np.allclose(work.score_paper, work.weight.mean(axis=1))
    assert boxes(10, 2, 1, 7, shrink=2.0).weight.min() >= 0.5


def test_few_of_many_dimensions_are_constrained():
    constrained = np.isfinite(few_of_many(2000, 40, 5, 7).low).sum(axis=1)
    assert 2 <= constrained.mean() <= 5
    assert constrained.max() <= 8
