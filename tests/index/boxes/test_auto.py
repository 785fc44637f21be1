"""The choice of a box index, and its reason."""

from typing import Any

import numpy as np
import pytest

from tidings.index import boxes
from tidings.index.boxes.scan import RelaxedBoxScan


def auto(*columns: Any, **options: Any) -> Any:
    return boxes.box_index("auto", *columns, **options)


def euclid(contributions):
    return np.sqrt((contributions**2).sum(axis=1))


@pytest.fixture
def few_constrained():
    """Boxes of which one attribute in 40 is constrained."""
    low, high = np.full((50, 40), -np.inf), np.full((50, 40), np.inf)
    low[:, 0] = 0.0
    return low, high


def test_lists_where_few_attributes_are_constrained(few_constrained):
    index = auto(*few_constrained, np.ones((50, 40)))
    assert index.describe().startswith("sparse, since 2.5% of the attributes are constrained.")


def test_blocks_where_most_attributes_are_constrained():
    index = auto(np.zeros((50, 1)), np.full((50, 1), np.inf), np.ones((50, 1)))
    assert index.describe().startswith("blocks, since 100.0%")


def test_blocks_for_exact_matching(few_constrained):
    index = auto(*few_constrained, np.ones(50))
    assert index.describe().startswith("blocks, since it serves all exact matching")


@pytest.mark.parametrize("size", [0, 3, 500])
def test_the_scan_for_a_function(size):
    """No structure that calls a Python aggregate is faster than the scan."""
    rng = np.random.default_rng(size)
    low = rng.random((size, 4))
    index = auto(low, low + 0.5, rng.random(low.shape), aggregate=euclid)
    assert isinstance(index.chosen, RelaxedBoxScan)
    assert index.describe().startswith("scan, since the aggregate is a function")
