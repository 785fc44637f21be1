"""Queries and changes over a run and a grid: outcomes, tombstones, and merged answers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.intervals.plain import Row, many_rows, rows, stabbed

from tidings.index.intervals.kernels.live import (
    FULL,
    IN_GRID,
    IN_RUN,
    MISSING,
    STAMP,
    TOGETHER,
    IntervalChanges,
    live_add_many,
    live_change_many,
    live_kill_many,
    live_top,
    live_top_many,
    place_of,
    run_kill,
    run_next,
    stamp,
    stamped_id,
)
from tidings.index.intervals.kernels.sopt_r_simd import STATE
from tidings.index.intervals.live.base_run import BaseRun, KeyedIntervals, build_run
from tidings.index.intervals.live.delta import empty_grid, empty_table
from tidings.index.intervals.protocol import score_keys

EXAMPLE = [(0.0, 5.0, 1.0), (3.0, 9.0, 2.0), (4.0, 4.0, 0.0)]


def base_of(drawn: list[Row], ids=None) -> BaseRun:
    low, high, score = np.array(drawn, float).reshape(-1, 3).T
    numbers = np.arange(len(drawn)) if ids is None else np.array(ids, np.int64)
    return build_run(KeyedIntervals(low, high, score_keys(score), numbers))


def changes(drawn, ids) -> IntervalChanges:
    columns = np.ascontiguousarray(np.array(drawn, float).reshape(-1, 3).T)
    return IntervalChanges(columns, np.array(ids, np.int64))


def top(base, grid, q, k=20, version=1):
    out = np.empty(k, np.int64)
    count = live_top(base.run, grid, version, q, np.zeros(STATE, np.int64), out)
    return out[:count].tolist()


@given(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1))
def test_a_stamp_holds_an_id_and_a_version(id: int, version: int) -> None:
    stamped = stamp(id, version)
    assert (stamped_id(stamped), stamped >> 32) == (id, version)


@given(st.sets(st.integers(0, 40), max_size=20), st.integers(-1, 45))
def test_places_are_found_among_ids_with_gaps(ids: set[int], asked: int) -> None:
    base = base_of([(0.0, 1.0, float(id % 3)) for id in sorted(ids)], sorted(ids))
    place = place_of(base.entries, asked)
    assert (place >= 0) == (asked in ids)
    assert place < 0 or base.ids[place] == asked


def test_an_entry_of_the_run_is_killed_once() -> None:
    base = base_of(EXAMPLE)
    place = run_kill(base.entries, 1, 7)
    assert base.run.notes[place, STAMP] == stamp(1, 7)
    assert run_kill(base.entries, 1, 8) == -1
    assert run_kill(base.entries, 3, 8) == -1


def test_a_change_says_where_the_interval_was() -> None:
    base = base_of(EXAMPLE)
    grid, table = empty_grid(base.cuts), empty_table()
    again = changes([(0.0, 9.0, 7.0), (0.0, 9.0, 8.0), (0.0, 9.0, 9.0)], [0, 0, 99])
    assert live_change_many(base.entries, grid, table, again, 1, 0) == (2, 1, MISSING)
    assert top(base, grid, 8.0) == [0, 1]
    rest = changes([(0.0, 9.0, 7.0)], [0])
    assert live_change_many(base.entries, grid, table, rest, 2, 0) == (1, 0, IN_GRID)
    first = changes([(0.0, 9.0, 7.0)], [1])
    assert live_change_many(base.entries, grid, table, first, 2, 0) == (1, 1, IN_RUN)


def test_a_change_with_a_low_of_nan_keeps_the_bounds() -> None:
    base = base_of(EXAMPLE)
    grid, table = empty_grid(base.cuts), empty_table()
    scored = changes([(np.nan, np.nan, 9.0)], [2])
    for version in (1, 2):
        live_change_many(base.entries, grid, table, scored, version, 0)
        assert top(base, grid, 4.0, version=version) == [2, 1, 0]
        assert top(base, grid, 5.0, version=version) == [1, 0]


def test_a_full_grid_changes_nothing() -> None:
    base = base_of(EXAMPLE)
    grid, table = empty_grid(base.cuts, chunks=1), empty_table()
    new = changes([(0.0, 9.0, 5.0)], [0])
    assert live_change_many(base.entries, grid, table, new, 1, 0) == (0, 0, FULL)
    assert live_add_many(grid, table, changes([(0.0, 9.0, 5.0)], [3]), 1, 0) == 0
    assert top(base, grid, 4.0) == [1, 0, 2]


def test_a_missing_interval_ends_a_removal_unless_it_is_skipped() -> None:
    base = base_of(EXAMPLE)
    grid, table = empty_grid(base.cuts), empty_table()
    assert live_add_many(grid, table, changes([(0.0, 9.0, 5.0)], [3]), 1, 0) == 1
    ids = np.array([0, 50, 3])
    assert live_kill_many(base.entries, grid, table, ids, 2, False) == (1, 1)
    assert top(base, grid, 4.0, version=2) == [3, 1, 2]
    assert live_kill_many(base.entries, grid, table, ids, 3, True) == (3, 0)
    assert top(base, grid, 4.0, version=3) == [1, 2]
    assert top(base, grid, 4.0, version=1) == [3, 1, 0, 2]


@given(rows, rows, st.integers(0, 12))
def test_the_best_of_run_and_grid_are_merged(old: list[Row], new: list[Row], k: int) -> None:
    base = base_of(old)
    grid, table = empty_grid(base.cuts), empty_table()
    ids = range(len(old), len(old) + len(new))
    assert live_add_many(grid, table, changes(new, ids), 1, 0) == len(new)
    for q in (0.0, 3.0, 4.5, 6.0):
        assert top(base, grid, q, k) == stabbed(old + new, q)[:k]
        assert top(base, grid, q, k, version=0) == stabbed(old, q)[:k]


@pytest.mark.parametrize("count", [0, 1, TOGETHER, TOGETHER + 1])
def test_a_batch_of_queries_is_answered_one_by_one(count: int) -> None:
    old, new = many_rows(150), many_rows(50)
    base = base_of(old)
    grid, table = empty_grid(base.cuts), empty_table()
    live_add_many(grid, table, changes(new, range(150, 200)), 1, 0)
    qs = np.arange(count) % 15
    out, counts = np.empty((count, 9), np.int64), np.empty(count, np.int64)
    live_top_many(base.run, grid, 1, qs.astype(float), out, counts)
    for q, row, size in zip(qs.tolist(), out.tolist(), counts.tolist(), strict=True):
        assert row[:size] == stabbed(old + new, q)[:9]


def test_no_width_has_no_answers() -> None:
    base = base_of(EXAMPLE)
    counts = np.full(2, 9)
    live_top_many(
        base.run, empty_grid(base.cuts), 1, np.zeros(2), np.empty((2, 0), np.int64), counts
    )
    assert counts.tolist() == [0, 0]


@pytest.mark.parametrize("step", [1, 7, 64])
def test_a_walk_over_the_run_resumes(step: int) -> None:
    drawn = many_rows(150)
    base, state = base_of(drawn), np.zeros(STATE, np.int64)
    found = list[int]()
    ids, keys = np.empty((2, step), np.int64)
    while (count := run_next(base.run, 5.0, 0, state, ids, keys)) > 0:
        scores = np.array([drawn[id][2] for id in ids[:count]])
        assert keys[:count].tolist() == score_keys(scores).tolist()
        found += ids[:count].tolist()
    assert found == stabbed(drawn, 5.0)
