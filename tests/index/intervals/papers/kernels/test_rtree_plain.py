"""The conventional R-tree: all stabbed intervals are visited, the best are kept."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.intervals.plain import POINTS, Row, many_rows, ranked, rows, stabbed

from tidings.index.intervals.kernels.rtree import INTERVALS, STATE
from tidings.index.intervals.papers.kernels.rtree_plain import plain_walk, plain_walk_many
from tidings.index.intervals.papers.rtrees import r_plain


@given(rows, st.integers(0, 8))
def test_each_query_of_a_batch_begins_anew(drawn: list[Row], k: int) -> None:
    tree: Any = r_plain(ranked(drawn)).tree
    out, counts = np.empty((len(POINTS), k), np.int64), np.empty(len(POINTS), np.int64)
    plain_walk_many(tree, np.array(POINTS), out, counts)
    for q, row, count in zip(POINTS, out.tolist(), counts.tolist(), strict=True):
        assert row[:count] == stabbed(drawn, q)[:k]


@pytest.mark.parametrize("size", [120, 900])
@pytest.mark.parametrize("step", [1, 60])
def test_a_walk_resumes_at_the_first_rank_not_yet_written(size: int, step: int) -> None:
    """Of 900, more are stabbed than one batch of the walk holds."""
    drawn = many_rows(size, 4)
    tree: Any = r_plain(ranked(drawn)).tree
    expected = stabbed(drawn, 2.0)
    assert size == 120 or len(expected) > 256
    state, out, found = np.zeros(STATE, np.int64), np.empty(step, np.int64), list[int]()
    for _ in range(5):
        count = plain_walk(tree, 2.0, state, out)
        found += out[:count].tolist()
    assert found == expected[: 5 * step]


def test_every_stabbed_interval_is_visited_for_any_k() -> None:
    drawn = [(0.0, 1.0, float(score)) for score in range(40)] + [(5.0, 6.0, 9.0)] * 40
    tree: Any = r_plain(ranked(drawn)).tree
    state, out = np.zeros(STATE, np.int64), np.empty(1, np.int64)
    assert plain_walk(tree, 0.5, state, out) == 1
    assert out.tolist() == [39]
    assert state[INTERVALS] >= 40


def test_a_walk_that_has_ended_writes_nothing() -> None:
    tree: Any = r_plain(ranked([(0.0, 1.0, 1.0)])).tree
    state, out = np.zeros(STATE, np.int64), np.empty(4, np.int64)
    assert [plain_walk(tree, 0.5, state, out) for _ in range(3)] == [1, 0, 0]
    assert plain_walk(tree, 7.0, np.zeros(STATE, np.int64), out) == 0
