"""Scored R-trees beside other indexes: their levels, and the answers to windows."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.intervals.plain import Row, ends, many_rows, ranked, rows, within

from tidings.index.intervals.ranges import QueryBounds
from tidings.index.intervals.rtree import (
    FIRST_BATCH,
    RangeTree,
    in_batches,
    leaf_bounds,
    level_starts,
    rtree_over,
    scored_rtree,
    scored_rtree_from,
)


@pytest.mark.parametrize(
    ("size", "starts"),
    [
        (0, [0, 0]),
        (1, [0, 1]),
        (50, [0, 50]),
        (51, [0, 51, 53]),
        (2500, [0, 2500, 2550]),
        (2501, [0, 2501, 2552, 2554]),
    ],
)
def test_levels_grow_until_one_node_holds_a_level(size: int, starts: list[int]) -> None:
    assert level_starts(size).tolist() == starts


def test_an_entry_above_the_leaves_has_the_extent_of_its_node() -> None:
    intervals = ranked(many_rows(120))
    tree, half = scored_rtree(intervals), (120 + 3) + 64
    assert len(tree.extents) == 2 * half
    for node in range(3):
        own = slice(50 * node, min(120, 50 * node + 50))
        assert tree.extents[120 + node] == intervals.low[own].min()
        assert tree.extents[half + 120 + node] == intervals.high[own].max()
    assert np.isnan(tree.extents[123:half]).all()


@given(rows)
def test_the_leaves_hold_the_intervals_in_the_given_order(drawn: list[Row]) -> None:
    intervals = ranked(drawn)
    order = np.argsort(intervals.low, kind="stable")
    low, high = leaf_bounds(rtree_over(intervals, order, intervals.ids[order]))
    assert low.tolist() == intervals.low[order].tolist()
    assert high.tolist() == intervals.high[order].tolist()


@given(rows, st.randoms(use_true_random=False))
def test_columns_in_another_order_give_the_same_tree(drawn: list[Row], random: object) -> None:
    intervals = ranked(drawn)
    order = np.array(random.sample(range(len(drawn)), len(drawn)), np.int64)  # type: ignore[attr-defined]
    columns = intervals.low[order], intervals.high[order], intervals.ids[order]
    tree, expected = scored_rtree_from(order, *columns), scored_rtree(intervals)
    for column, other in zip(tree, expected, strict=True):
        np.testing.assert_array_equal(column, other)


@given(rows, st.lists(st.tuples(ends, ends), min_size=1, max_size=4), st.integers(0, 25))
def test_windows_are_answered_as_defined(
    drawn: list[Row], windows: list[tuple[float, float]], k: int
) -> None:
    tree = RangeTree(lambda: scored_rtree(ranked(drawn)))
    found, counts = tree.within_many(np.array(windows), k)
    for window, row, count in zip(windows, found.tolist(), counts.tolist(), strict=True):
        expected = within(drawn, *window)
        assert row == expected[:k] + [-1] * (k - count)
        assert list(tree.within(QueryBounds(*window))) == expected


@pytest.mark.parametrize("size", [49, 50, 51, 300])
def test_sizes_around_a_node(size: int) -> None:
    drawn = many_rows(size)
    answers = RangeTree(lambda: scored_rtree(ranked(drawn))).answers
    assert list(answers.iterate(3, 5)) == within(drawn, 5, 3)
    assert list(answers.iterate(3, 5, "contained")) == within(drawn, 3, 5)
    assert list(answers.iterate(-math.inf, math.inf)) == within(drawn, math.inf, -math.inf)


def test_the_tree_is_built_once_and_for_the_first_range_only() -> None:
    built = []
    kept = np.zeros(3)

    def make():
        built.append(1)
        return scored_rtree(ranked([(0.0, 1.0, 1.0)]))

    tree = RangeTree(make, (kept,))
    assert (tree.is_built, tree.nbytes) == (False, 24)
    assert tree.answers.top(0, 0, 1).tolist() == tree.answers.top(1, 1, 1).tolist() == [0]
    assert (tree.is_built, len(built)) == (True, 1)
    assert tree.nbytes > 24


@pytest.mark.parametrize("total", [0, 1, FIRST_BATCH - 1, FIRST_BATCH, FIRST_BATCH + 1, 500])
def test_batches_double_up_to_the_size_of_the_index(total: int) -> None:
    lengths, done = [], 0

    def fetch(out):
        nonlocal done
        lengths.append(len(out))
        count = min(len(out), total - done)
        out[:count] = np.arange(done, done + count)
        done += count
        return count

    assert list(in_batches(fetch, 200)) == list(range(total))
    assert lengths == [64, 128, 200, 200][: len(lengths)]
    assert len(lengths) == {500: 4, 64: 2, 65: 2}.get(total, 1)


def test_only_the_batches_that_are_asked_for_are_fetched() -> None:
    calls = []

    def fetch(out):
        calls.append(len(out))
        out[:] = 7
        return len(out)

    answers = in_batches(fetch, 10)
    assert [next(answers) for _ in range(FIRST_BATCH)] == [7] * FIRST_BATCH
    assert calls == [64]
    next(answers)
    assert calls == [64, 64]
