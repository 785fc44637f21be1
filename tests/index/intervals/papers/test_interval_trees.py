"""Interval trees: the node at which an interval hangs, and the answers of both forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.intervals.plain import POINTS, Row, many_rows, ranked, rows, stabbed, within

from tidings.index.intervals.papers.interval_trees import (
    endpoint_tree,
    hang,
    node_extents,
    scored_interval_tree,
)

both_forms = pytest.mark.parametrize("make", [scored_interval_tree, endpoint_tree])


@both_forms
@given(drawn=rows, k=st.integers(0, 25))
def test_answers_are_those_of_the_definition(make, drawn: list[Row], k: int) -> None:
    index = make(ranked(drawn))
    for q in POINTS:
        expected = stabbed(drawn, q)
        assert index.top(q, k).tolist() == expected[:k]
        assert list(index.iterate(q)) == expected
    assert list(index.ranges.iterate(2.0, 4.0)) == within(drawn, 4.0, 2.0)
    assert list(index.ranges.iterate(2.0, 4.0, "contained")) == within(drawn, 2.0, 4.0)


@both_forms
def test_an_iterator_goes_on_beyond_its_first_batch(make) -> None:
    drawn = many_rows(400)
    index = make(ranked(drawn))
    expected = stabbed(drawn, 6.0)
    assert len(expected) > 64
    assert list(index.iterate(6.0)) == expected


@given(rows)
def test_the_intervals_of_a_node_share_a_low(drawn: list[Row]) -> None:
    intervals = ranked(drawn)
    hung = hang(intervals)
    lows = np.unique(intervals.low)
    numbers = {int(node): n for n, node in enumerate(hung.skeleton.node_of) if node >= 0}
    sizes = np.diff(hung.skeleton.starts)
    for node, number in numbers.items():
        own = hung.node == node
        assert own.sum() == sizes[node] > 0
        assert (intervals.low[own] <= lows[number - 1]).all()
        assert (lows[number - 1] <= intervals.high[own]).all()
    assert sizes.sum() == len(drawn)


@given(rows)
def test_an_interval_hangs_at_the_highest_number_that_it_contains(drawn: list[Row]) -> None:
    """The height of a number is its count of zeros at the end."""
    intervals = ranked(drawn)
    hung = hang(intervals)
    lows = np.unique(intervals.low).tolist()
    node_of = hung.skeleton.node_of.tolist()
    for rank, node in enumerate(hung.node.tolist()):
        within_it = [
            number
            for number, low in enumerate(lows, 1)
            if intervals.low[rank] <= low <= intervals.high[rank]
        ]
        highest = max(within_it, key=lambda number: number & -number)
        assert node_of.index(node) == highest


def test_the_extent_of_a_node_covers_its_entries() -> None:
    bounds = np.array([[2.0, 3.0], [1.0, 2.0], [5.0, 9.0]])
    starts = np.array([0, 2], np.int32)
    assert node_extents(bounds, starts).tolist() == [[1.0, 3.0], [5.0, 9.0]]
    assert node_extents(bounds[:0], starts[:0]).shape == (0, 2)


def test_the_conventional_tree_visits_all_that_it_stabs() -> None:
    intervals = ranked([(0.0, 9.0, float(score)) for score in range(50)])
    plain, scored = endpoint_tree(intervals), scored_interval_tree(intervals)
    assert plain.top(5.0, 3).tolist() == scored.top(5.0, 3).tolist() == [49, 48, 47]
    assert plain.counters()["intervals"] == 50
    assert scored.counters()["intervals"] == 4
