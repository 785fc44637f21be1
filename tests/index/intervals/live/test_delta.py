"""The delta of a live interval index: a grid that grows, and changes that are replayed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.intervals.plain import Row, many_rows, rows, within

from tidings.index.intervals.kernels.delta_grid import LIVING, TAKEN, Grid
from tidings.index.intervals.kernels.hash_table import HashTable
from tidings.index.intervals.kernels.live import IntervalChanges, live_add_many, live_kill_many
from tidings.index.intervals.live.base_run import BaseRun, KeyedIntervals, build_run
from tidings.index.intervals.live.delta import (
    CHUNKS,
    TABLE_SLOTS,
    empty_grid,
    empty_table,
    entries_within,
    living_in,
    next_version,
    with_more_chunks,
    with_room,
)
from tidings.index.intervals.protocol import score_keys
from tidings.index.intervals.ranges import QueryBounds


def base_of(drawn: list[Row]) -> BaseRun:
    low, high, score = np.array(drawn, float).reshape(-1, 3).T
    return build_run(KeyedIntervals(low, high, score_keys(score), np.arange(len(drawn))))


BASES = {size: base_of(many_rows(size)) for size in (0, 200)}
any_base = pytest.mark.parametrize("size", BASES)


def added(
    grid: Grid, table: HashTable, drawn: list[Row], version: int, first: int = 0
) -> tuple[Grid, HashTable]:
    columns = np.ascontiguousarray(np.array(drawn, float).reshape(-1, 3).T)
    new = IntervalChanges(columns, np.arange(first, first + len(drawn)))
    done = 0
    while (done := live_add_many(grid, table, new, version, done)) < len(drawn):
        grid, table = with_room(grid, table)
    return grid, table


@any_base
def test_a_new_grid_has_no_entries(size: int) -> None:
    grid = empty_grid(BASES[size].cuts)
    assert len(living_in(grid, 0)) == 0
    assert [len(column) for column in entries_within(grid, QueryBounds(9.0, 0.0), 0)] == [0, 0]
    assert (len(grid.chunks), grid.pool[TAKEN]) == (CHUNKS, 0)


@any_base
@given(drawn=rows, window=st.tuples(st.integers(0, 7), st.integers(0, 7)))
def test_entries_are_found_once_and_in_order(
    size: int, drawn: list[Row], window: tuple[int, int]
) -> None:
    grid, _ = added(empty_grid(BASES[size].cuts), empty_table(), drawn, 1)
    bounds = QueryBounds(float(window[0]), float(window[1]))
    ids, keys = entries_within(grid, bounds, 1)
    assert ids.tolist() == within(drawn, *bounds)
    assert keys.tolist() == score_keys(np.array([drawn[id][2] for id in ids])).tolist()
    assert entries_within(grid, bounds, 0)[0].tolist() == []


@any_base
@given(first=rows, second=rows, dead=st.sets(st.integers(0, 39)))
def test_every_version_has_its_own_entries(
    size: int, first: list[Row], second: list[Row], dead: set[int]
) -> None:
    grid, table = added(empty_grid(BASES[size].cuts), empty_table(), first, 1)
    grid, table = added(grid, table, second, 2, len(first))
    gone = sorted(dead)
    live_kill_many(BASES[0].entries, grid, table, np.array(gone, np.int64), 3, True)
    old, all_ids = range(len(first)), range(len(first) + len(second))
    assert sorted(living_in(grid, 1).ids.tolist()) == [*old]
    assert sorted(living_in(grid, 2).ids.tolist()) == [*all_ids]
    assert sorted(living_in(grid, 3).ids.tolist()) == [id for id in all_ids if id not in dead]
    assert sorted(living_in(grid, 2, since=1).ids.tolist()) == [*all_ids][len(first) :]


@any_base
def test_living_entries_keep_their_columns(size: int) -> None:
    drawn = many_rows(40)
    grid, _ = added(empty_grid(BASES[size].cuts), empty_table(), drawn, 0)
    living = living_in(grid, 0)
    living = living.take(np.argsort(living.ids))
    columns = living.low, living.high, (-living.keys).view(np.float64)
    assert [*zip(*(column.tolist() for column in columns), strict=True)] == drawn


def test_a_grid_with_more_chunks_is_a_copy() -> None:
    drawn = many_rows(30)
    grid, table = added(empty_grid(BASES[200].cuts), empty_table(), drawn, 1)
    wider = with_more_chunks(grid)
    assert len(wider.chunks) == 2 * len(grid.chunks)
    assert wider.cuts is grid.cuts
    added(wider, table, drawn, 2, 30)
    assert len(living_in(grid, 9)) == 30
    assert len(living_in(wider, 9)) == 60


def test_room_doubles_only_where_it_is_needed() -> None:
    grid, table = empty_grid(BASES[0].cuts), empty_table()
    assert with_room(grid, table) == (grid, table)
    many = TABLE_SLOTS // 2 - 1
    grid, table = added(grid, table, [(0.0, 1.0, 1.0)] * many, 0)
    assert (len(table.keys), int(grid.pool[LIVING])) == (TABLE_SLOTS, many)
    same, wider = with_room(grid, added(grid, table, [(0.0, 1.0, 1.0)], 0, many)[1])
    assert same is grid
    assert len(wider.keys) == 2 * TABLE_SLOTS
    full = empty_grid(BASES[0].cuts, chunks=1)
    assert len(with_room(full, empty_table())[0].chunks) == 2


@given(st.sets(st.integers(0, 230)), rows)
def test_changes_are_replayed_on_a_new_base(killed: set[int], drawn: list[Row]) -> None:
    base = base_of(many_rows(200))
    following = next_version(base)
    assert following.changes == 0
    low, high, score = np.array(drawn, float).reshape(-1, 3).T
    ids = np.arange(300, 300 + len(drawn))
    following.replay(sorted(killed), KeyedIntervals(low, high, score_keys(score), ids))
    dead = {id for id in killed if id < 200}
    assert following.base.dead == len(dead)
    assert following.changes == len(dead) + len(drawn)
    assert sorted(base.living(0).ids.tolist()) == sorted(set(range(200)) - dead)
    found = entries_within(following.grid, QueryBounds(3.0, 3.0), 0)[0]
    assert (found - 300).tolist() == within(drawn, 3.0, 3.0)


def test_an_interval_may_be_killed_and_added_again() -> None:
    following = next_version(base_of(many_rows(200)))
    new = KeyedIntervals(np.zeros(1), np.ones(1), np.array([-5]), np.array([7]))
    following.replay([7, 7], new)
    following.replay([7], new)
    assert following.base.dead == 1
    assert living_in(following.grid, 0).ids.tolist() == [7]


def test_many_replayed_intervals_make_room() -> None:
    following = next_version(BASES[0])
    low = np.zeros(1000)
    added_now = KeyedIntervals(low, low + 1, score_keys(low), np.arange(1000))
    following.replay([], added_now)
    assert len(living_in(following.grid, 0)) == 1000
