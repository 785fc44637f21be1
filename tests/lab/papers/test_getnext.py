"""The calls of the Threshold Algorithm, counted without running it, against the shipped one."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.index.boxes import box_index
from tidings.lab.papers.getnext import (
    LABELS,
    event_cost,
    getnext_calls,
    look_up_cost,
    mean_calls,
)
from tidings.lab.workloads.rps import WeightedBoxes, boxes


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 60), st.integers(1, 8))
def test_calls_are_those_that_the_threshold_algorithm_makes(seed, dimensions, size, k):
    # Few distinct values, so that ties of weights and sums are common.
    rng = np.random.default_rng(seed)
    low = rng.integers(0, 6, (size, dimensions)).astype(float)
    high = low + rng.integers(0, 4, (size, dimensions)).astype(float)
    weight = rng.integers(1, 5, (size, dimensions)) / 4
    events = rng.integers(0, 9, (3, dimensions)).astype(float)
    work = WeightedBoxes(low, high, weight, np.zeros(size), events)
    counts = getnext_calls(work, k)
    index = box_index("threshold", low, high, weight)
    for event, calls in zip(events, counts.calls, strict=True):
        index.top(event, k)
        assert calls.sum() == index.counters()["sorted"]


def test_stabbed_intervals_are_counted_in_each_dimension():
    work = boxes(200, 2, 3, 1)
    stabs = (work.low[None] <= work.events[:, None]) & (work.events[:, None] <= work.high[None])
    assert (getnext_calls(work, 5).stabbed == stabs.sum(axis=1)).all()


def test_the_cost_of_an_event_counts_what_it_visits():
    work = boxes(2_000, 2, 5, 1)
    calls = mean_calls(getnext_calls(work, 5))
    costs = {name: event_cost(name, work, calls, 1) for name in LABELS}
    assert costs["segment"].query.intervals == sum(calls)
    assert costs["interval"].query.intervals > costs["segment"].query.intervals
    assert costs["r"].query.leaves >= costs["sopt-r"].query.leaves
    assert costs["segment"].nbytes > costs["r"].nbytes


def test_one_dimension_needs_no_look_ups():
    assert look_up_cost(boxes(100, 1, 3, 1), [5], 1) == 0
    assert look_up_cost(boxes(100, 2, 3, 1), [5, 5], 1) > 0
