"""The threshold algorithm: aggregates, accesses, and the interval indexes under it."""

import numpy as np
import pytest

from tidings.index.boxes import box_index


def random_boxes(size, attributes):
    rng = np.random.default_rng(0)
    low = rng.random((size, attributes))
    return low, low + rng.random(low.shape) / 2, rng.random(low.shape), rng.random((4, attributes))


def euclid(contributions):
    return np.sqrt((contributions**2).sum(axis=1))


def least(contributions):
    return contributions.min(axis=1)


def second(contributions):
    return np.sort(contributions, axis=1)[:, -2]


@pytest.mark.parametrize("aggregate", [euclid, least, second])
def test_any_monotone_aggregate_gives_the_answers_of_the_scan(aggregate):
    low, high, weight, events = random_boxes(300, 4)
    index = box_index("threshold", low, high, weight, aggregate=aggregate)
    scan = box_index("scan", low, high, weight, aggregate=aggregate)
    for event in events:
        for column, expected in zip(index.top(event, 10), scan.top(event, 10), strict=True):
            assert column.tolist() == expected.tolist()


def test_it_stops_before_the_end():
    low, high, weight, events = random_boxes(2000, 2)
    index = box_index("threshold", low, high, weight)
    index.top(events[0], 1)
    for_one = index.counters()
    index.top(events[0], 2000)
    for_all = index.counters()
    assert 0 < for_one["sorted"] < for_all["sorted"] / 2
    assert 0 < for_one["random"] < for_all["random"] / 2


def test_accesses_by_hand():
    """Both lists yield 0 first; 4 is above the threshold of 2 + 1 only in the next round."""
    low, high = np.zeros((3, 2)), np.ones((3, 2))
    index = box_index("threshold", low, high, [[3.0, 1.0], [2.0, 1.0], [1.0, 1.0]])
    assert index.top([0, 0], 1)[0].tolist() == [0]
    assert index.counters() == {"sorted": 4, "random": 2}


@pytest.mark.parametrize("over", ["segment", "ir", "sopt-r-64"])
def test_any_interval_index_serves(over):
    low, high, weight, events = random_boxes(200, 3)
    index = box_index("threshold", low, high, weight, over=over)
    scan = box_index("scan", low, high, weight)
    assert index.top(events[0], 9)[0].tolist() == scan.top(events[0], 9)[0].tolist()
    assert over in index.describe()
