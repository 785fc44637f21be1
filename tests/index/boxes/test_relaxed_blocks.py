"""Relaxed blocks: how much a query compares, ties, and limits."""

import numpy as np
import pytest

from tidings.errors import TidingsError
from tidings.index.boxes import box_index


def test_the_search_ends_when_no_total_can_enter():
    size = 6400
    weight = np.linspace(1, 0.1, size)[:, None]
    index = box_index("blocks", np.zeros((size, 1)), np.ones((size, 1)), weight)
    assert index.top([0.5], 10)[0].tolist() == list(range(10))
    assert index.counters()["blocks"] <= 64


def test_scores_do_not_depend_on_the_order_of_additions():
    """0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 differ in the last bit, and tie after rounding."""
    weight = [[0.3, 0.2, 0.1], [0.1, 0.2, 0.3]] * 40
    index = box_index("blocks", np.zeros((80, 3)), np.ones((80, 3)), weight)
    ids, scores = index.top([0, 0, 0], 80)
    assert ids.tolist() == list(range(80))
    assert set(scores.tolist()) == {0.6}


def test_too_many_attributes_are_refused():
    with pytest.raises(TidingsError, match="at most 2040 attributes, not 2041"):
        box_index("blocks", np.zeros((1, 2041)), np.ones((1, 2041)), np.ones((1, 2041)))
