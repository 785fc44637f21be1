"""The brute force over boxes, against a plain reading of the definition."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import TidingsError
from tidings.index.boxes.protocol import Boxes, boxes_of, range_events
from tidings.index.boxes.scan import ExactBoxScan, RelaxedBoxScan
from tidings.model.values import Range

FREE = (-math.inf, math.inf)
sides = st.one_of(
    st.just(FREE),
    st.tuples(st.integers(0, 3), st.integers(0, 3)).map(lambda ends: tuple(sorted(ends))),
    st.integers(0, 3).map(lambda low: (low, math.inf)),
)
weights = st.sampled_from([0.0, 0.1, 0.2, 0.3, 1.0])
boxes = st.lists(st.lists(st.tuples(sides, weights), min_size=2, max_size=2), max_size=8)
events = st.lists(st.one_of(st.integers(0, 3), st.just(math.nan)), min_size=2, max_size=2)


def columns(rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    flat = np.array([[(*side, weight) for side, weight in row] for row in rows], float)
    low, high, weight = np.moveaxis(flat.reshape(-1, 2, 3), 2, 0)
    return low, high, weight


def exact(rows) -> ExactBoxScan:
    low, high, weight = columns(rows)
    return ExactBoxScan(boxes_of(low, high, weight[:, 0].copy()))


def relaxed(rows, aggregate="sum") -> RelaxedBoxScan:
    return RelaxedBoxScan(boxes_of(*columns(rows)), aggregate)


def best(scored, k):
    ranked = sorted((-score, id) for id, score in scored if score is not None)[:k]
    return [id for _, id in ranked], [-minus for minus, _ in ranked]


@given(boxes, events, st.integers(0, 9))
def test_exact_matching_needs_every_predicate(rows, event, k):
    def score(row):
        holds = [
            side == FREE or side[0] <= value <= side[1]
            for (side, _), value in zip(row, event, strict=True)
        ]
        return row[0][1] if all(holds) else None

    answer = exact(rows).top(event, k)
    expected = best(enumerate(map(score, rows)), k)
    assert (answer.ids.tolist(), answer.scores.tolist()) == expected


@given(boxes, events, st.integers(0, 9), st.sampled_from(["sum", "max"]))
def test_relaxed_matching_aggregates_the_weights_that_hold(rows, event, k, aggregate):
    def score(row):
        held = [
            weight
            for (side, weight), value in zip(row, event, strict=True)
            if side != FREE and side[0] <= value <= side[1]
        ]
        return round(sum(held) if aggregate == "sum" else max(held), 12) if held else None

    answer = relaxed(rows, aggregate).top(event, k)
    expected = best(enumerate(map(score, rows)), k)
    assert (answer.ids.tolist(), answer.scores.tolist()) == expected


def test_sums_that_differ_in_the_last_bit_tie_by_id():
    rows = [[0.3, 0.2, 0.1], [0.1, 0.2, 0.3]]
    scan = RelaxedBoxScan(Boxes(np.zeros((2, 3)), np.ones((2, 3)), np.array(rows)))
    assert scan.top([0, 0, 0], 1).ids.tolist() == [0]
    assert scan.top([0, 0, 0], 2).scores.tolist() == [0.6, 0.6]


def test_any_function_may_aggregate():
    scan = relaxed(
        [[((0, 1), 0.2), ((0, 1), 0.4)], [((0, 1), 0.5), (FREE, 0.0)]], lambda rows: rows.min(1)
    )
    assert scan.top([1, 1], 2).scores.tolist() == [0.2, 0.0]


def test_ranges_and_probabilities_count():
    scan = relaxed([[((2, 4), 1.0), ((0, 0), 0.5)]])
    overlapping = range_events([[Range(0, 2), 0.0]], [0.25, 1.0])
    assert scan.top(overlapping, 1).scores.tolist() == [0.75]
    contained = range_events([[Range(0, 2, "contained"), 0.0]], [0.25, 1.0])
    assert scan.top(contained, 1).scores.tolist() == [0.5]


@pytest.mark.parametrize("make", [exact, relaxed])
def test_many_events_have_padded_rows(make):
    scan = make([[((0, 1), 0.5), (FREE, 0.0)], [((1, 2), 0.7), (FREE, 0.0)]])
    answers = scan.top_many([[1, 0], [0, 0], [9, 9]], 3)
    assert answers.ids.tolist() == [[1, 0, -1], [0, -1, -1], [-1, -1, -1]]
    assert answers.counts.tolist() == [2, 1, 0]
    np.testing.assert_array_equal(answers.scores[0], [0.7, 0.5, np.nan])


@pytest.mark.parametrize("make", [exact, relaxed])
def test_the_scan_compares_every_box(make):
    scan = make([[((0, 1), 0.5), (FREE, 0.0)]] * 3)
    assert scan.counters() == {"boxes": 3}
    assert "3 subscriptions over 2 attributes" in scan.describe()
    assert scan.nbytes == (2 * 3 * 2 + (3 if make is exact else 6)) * 8


@pytest.mark.parametrize("make", [exact, relaxed])
def test_wrong_queries_are_refused(make):
    scan = make([[((0, 1), 0.5), (FREE, 0.0)]])
    with pytest.raises(TidingsError, match="k = -1 is below 0"):
        scan.top([0, 0], -1)
    with pytest.raises(TidingsError, match="rows of 2 numbers"):
        scan.top([0], 1)
