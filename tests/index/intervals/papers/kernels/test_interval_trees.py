"""The walks of interval trees: paths, lists, and walks that resume."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.intervals.plain import POINTS, many_rows, ranked, stabbed

from tidings.index.intervals.papers.interval_trees import endpoint_tree, scored_interval_tree
from tidings.index.intervals.papers.kernels.interval_trees import (
    STATE,
    NodeList,
    endpoint_offer,
    endpoint_walk,
    endpoint_walk_many,
    next_stabbed,
    path_node,
    scored_walk,
    scored_walk_many,
)

DRAWN = many_rows(120)
WALKS = [
    (scored_interval_tree, scored_walk, scored_walk_many),
    (endpoint_tree, endpoint_walk, endpoint_walk_many),
]
both_forms = pytest.mark.parametrize(("make", "walk", "walk_many"), WALKS)


def test_a_path_leads_from_a_gap_to_the_root():
    """In the tree of 15 numbers, the gap after 5 lies below 5, 6, 4 and 8."""
    node_of = np.arange(16, dtype=np.int32)
    assert [path_node(node_of, 5, height) for height in range(4)] == [5, 6, 4, 8]
    assert [path_node(node_of, 0, height) for height in range(4)] == [1, 2, 4, 8]
    assert [path_node(node_of, 15, height) for height in range(4)] == [15, 14, 12, 8]


def test_a_number_without_a_node_has_none():
    node_of = np.array([-1, 0, -1], np.int32)
    assert path_node(node_of, 0, 0) == 0
    assert path_node(node_of, 0, 1) == -1
    assert path_node(node_of, 2, 0) == -1


def test_the_next_stabbed_entry_is_found_or_the_end():
    bounds = np.array([[0.0, 1.0], [5.0, 6.0], [0.0, 9.0]])
    assert [next_stabbed(bounds, 1.0, place, 3) for place in range(4)] == [0, 2, 2, 3]
    assert next_stabbed(bounds, 1.0, 1, 2) == 2
    assert next_stabbed(bounds, np.nan, 0, 3) == 3


@given(st.permutations(range(6)), st.integers(0, 6), st.integers(0, 6), st.integers(0, 4))
def test_ranks_are_offered_up_to_the_first_bound_below_the_query(ranks, q, floor, k):
    bounds = np.array([6.0, 4.0, 4.0, 3.0, 1.0, 0.0])
    node = NodeList(bounds, np.array(ranks, np.int32), 0, 6)
    out = np.empty(k, np.int64)
    size, place = endpoint_offer(node, float(q), floor, out, 0)
    above = [rank for rank, bound in zip(ranks, bounds, strict=True) if bound >= q]
    assert place == len(above)
    assert sorted(out[:size].tolist()) == sorted(rank for rank in above if rank >= floor)[:k]


@both_forms
@pytest.mark.parametrize("step", [1, 3, 200])
def test_a_walk_resumes_where_it_stopped(make, walk, walk_many, step):
    tree = make(ranked(DRAWN)).tree
    state, out, found = np.zeros(STATE, np.int64), np.empty(step, np.int64), []
    while (count := walk(tree, 5.0, state, out)) > 0:
        found += out[:count].tolist()
    assert found == stabbed(DRAWN, 5.0)
    assert walk(tree, 5.0, state, out) == 0


@both_forms
def test_each_query_of_a_batch_begins_anew(make, walk, walk_many):
    tree = make(ranked(DRAWN)).tree
    out, counts = np.empty((len(POINTS), 7), np.int64), np.empty(len(POINTS), np.int64)
    walk_many(tree, np.array(POINTS), out, counts)
    for q, row, count in zip(POINTS, out.tolist(), counts.tolist(), strict=True):
        assert row[:count] == stabbed(DRAWN, q)[:7]
