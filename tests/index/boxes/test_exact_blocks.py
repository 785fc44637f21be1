"""Exact blocks: how much a query compares."""

import numpy as np

from tidings.index.boxes import box_index
from tidings.index.boxes.exact_blocks import bands_of


def test_blocks_elsewhere_are_skipped():
    rng = np.random.default_rng(1)
    low = rng.random((20_000, 3))
    index = box_index("blocks", low, low + 0.01, rng.random(20_000))
    index.top([0.5, 0.5, 0.5], 10)
    assert index.counters()["blocks"] < 120


def test_bands_are_whole_directories_that_grow():
    assert bands_of(0) == []
    assert bands_of(100) == [(0, 100)]
    assert bands_of(70_000) == [(0, 4096), (4096, 16_384), (16_384, 65_536), (65_536, 70_000)]
