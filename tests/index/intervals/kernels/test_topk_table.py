"""The sweep over cells: the K best as intervals begin and end, and the lists that are written."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.intervals.plain import POINTS, Row, ranked, rows, stabbed

from tidings.index.intervals.elementary_cells import cells_of
from tidings.index.intervals.kernels.bitset import bitset_add, bitset_discard, empty_bitset
from tidings.index.intervals.kernels.btree_search import search_tree
from tidings.index.intervals.kernels.topk_table import (
    CELL,
    LISTS,
    PLACE,
    RANKS,
    STATE,
    SWEEP,
    SweepCells,
    SweepLists,
    TopkLists,
    best_insert,
    best_remove,
    sweep,
    table_walk,
    table_walk_many,
)


@given(st.integers(1, 4), st.lists(st.integers(0, 9), max_size=30))
def test_the_k_best_follow_the_active_ranks(k: int, toggled: list[int]) -> None:
    active, best, size, plain = empty_bitset(10), np.empty(k, np.int64), 0, set[int]()
    for rank in toggled:
        if rank in plain:
            plain.remove(rank)
            bitset_discard(active, rank)
            size = best_remove(active, best, size, rank)
        else:
            plain.add(rank)
            bitset_add(active, rank)
            size = best_insert(best, size, rank)
        assert best[:size].tolist() == sorted(plain)[:k]


def swept(drawn: list[Row], depth: int, room: int) -> tuple[TopkLists, int]:
    """Sweep into arrays that grow by `room` lists; return the table and the number of lists."""
    intervals = ranked(drawn)
    cells = cells_of(intervals)
    columns = SweepCells(cells.starts, cells.first, cells.last, cells.by_low, cells.by_high)
    active, best = empty_bitset(len(drawn)), np.empty(depth, np.int64)
    state = np.zeros(SWEEP, np.int64)
    state[CELL] = 1
    lists = SweepLists(np.empty(0), np.zeros(2, np.int64), np.empty(0, np.int32))
    while not sweep(columns, active, best, lists, state):
        lists = SweepLists(
            np.append(lists.holds_from, np.empty(room)),
            np.append(lists.places, np.zeros(room, np.int64)),
            np.append(lists.ranks, np.empty(room * depth, np.int32)),
        )
    count = int(state[LISTS])
    ids = intervals.ids[lists.ranks[: state[RANKS]]].astype(np.int32)
    starts = search_tree(lists.holds_from[:count])
    return TopkLists(starts, lists.places[: count + 2].copy(), ids), count


@given(rows, st.integers(1, 5), st.sampled_from([1, 3, 100]))
def test_each_point_has_the_list_of_its_k_best(drawn: list[Row], depth: int, room: int) -> None:
    table, count = swept(drawn, depth, room)
    assert count <= 2 * len(drawn)
    out, counts = np.empty((len(POINTS), depth), np.int64), np.empty(len(POINTS), np.int64)
    table_walk_many(table, np.array(POINTS), out, counts)
    for q, row, size in zip(POINTS, out.tolist(), counts.tolist(), strict=True):
        assert row[:size] == stabbed(drawn, q)[:depth]


def test_a_list_is_written_only_where_the_best_change() -> None:
    """The long interval hides those below it at depth 1; at depth 2 each begins and ends."""
    drawn = [(0.0, 9.0, 5.0), (2.0, 3.0, 1.0), (5.0, 6.0, 1.0)]
    assert swept(drawn, 1, 10)[1] == 2
    assert swept(drawn, 2, 10)[1] == 6


@pytest.mark.parametrize("step", [1, 2, 5])
def test_a_walk_resumes_in_its_list(step: int) -> None:
    drawn = [(0.0, 9.0, float(score)) for score in (3, 1, 2)]
    table, _ = swept(drawn, 3, 10)
    state, found = np.zeros(STATE, np.int64), list[int]()
    out = np.empty(step, np.int64)
    while (count := table_walk(table, 4.0, state, out)) > 0:
        found += out[:count].tolist()
    assert found == [0, 2, 1]
    assert state[PLACE] == 3
