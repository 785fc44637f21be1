"""Intersection of iterators: accesses, and the interval indexes under it."""

import numpy as np
import pytest

from tidings.index.boxes import box_index


def test_accesses_by_hand():
    """Ranks 1 2 and 0 1 2: the first advances once, the second twice, and both are at 1."""
    index = box_index("intersection", [[5, 0], [0, 0], [0, 0]], [[9, 9], [9, 9], [9, 9]], [3, 2, 1])
    assert index.top([1, 1], 1)[0].tolist() == [1]
    assert index.counters() == {"sorted": 3}


@pytest.mark.parametrize("over", ["segment", "ir", "sopt-r-64"])
def test_any_interval_index_serves(over):
    rng = np.random.default_rng(0)
    low, score = rng.random((200, 3)), rng.random(200)
    high, event = low + rng.random(low.shape) / 2, rng.random(3)
    index = box_index("intersection", low, high, score, over=over)
    scan = box_index("scan", low, high, score)
    assert index.top(event, 9)[0].tolist() == scan.top(event, 9)[0].tolist()
    assert over in index.describe()
