"""Queries on one snapshot: a run and a grid, merged by key."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.intervals.plain import POINTS, Row, many_rows, rows, stabbed, within

from tidings.index.intervals.kernels.live import IntervalChanges, live_add_many, live_kill_many
from tidings.index.intervals.live.base_run import KeyedIntervals, build_run, without_dead
from tidings.index.intervals.live.delta import empty_grid, empty_table, with_room
from tidings.index.intervals.live.index import (
    FIRST_BATCH,
    SMALL_K,
    IntervalSnapshot,
    count_before_last,
    merged,
)
from tidings.index.intervals.protocol import score_keys
from tidings.index.intervals.ranges import QueryBounds


def snapshot_of(old: list[Row], new: list[Row], dead: set[int], version: int) -> IntervalSnapshot:
    """Return a snapshot: new intervals are born at version 1, the dead die at version 2."""
    low, high, score = np.array(old, float).reshape(-1, 3).T
    base = build_run(KeyedIntervals(low, high, score_keys(score), np.arange(len(old))))
    grid, table = empty_grid(base.cuts), empty_table()
    columns = np.ascontiguousarray(np.array(new, float).reshape(-1, 3).T)
    changes = IntervalChanges(columns, np.arange(len(old), len(old) + len(new)))
    done = 0
    while (done := live_add_many(grid, table, changes, 1, done)) < len(new):
        grid, table = with_room(grid, table)
    live_kill_many(base.entries, grid, table, np.array(sorted(dead), np.int64), 2, True)
    run = without_dead(base.run, version) if version > 1 else base.run
    return IntervalSnapshot(base, run, grid, version)


def expected(ids: list[int], old: int, dead: set[int], version: int) -> list[int]:
    alive = [id for id in ids if id < old or version >= 1]
    return [id for id in alive if id not in dead or version < 2]


@given(rows, rows, st.sets(st.integers(0, 39)), st.integers(0, 2), st.integers(0, 45))
def test_answers_are_those_of_the_version(
    old: list[Row], new: list[Row], dead: set[int], version: int, k: int
) -> None:
    snapshot = snapshot_of(old, new, dead, version)
    ids, counts = snapshot.top_many(np.array(POINTS), k)
    for q, row, count in zip(POINTS, ids.tolist(), counts.tolist(), strict=True):
        wanted = expected(stabbed(old + new, q), len(old), dead, version)
        assert row == wanted[:k] + [-1] * (k - count)
        assert snapshot.top(q, k)[0].tolist() == wanted[:k]
        assert list(snapshot.iterate(q)) == wanted


@given(rows, rows, st.sets(st.integers(0, 39)), st.integers(0, 2))
def test_windows_are_answered_from_both_sources(
    old: list[Row], new: list[Row], dead: set[int], version: int
) -> None:
    snapshot = snapshot_of(old, new, dead, version)
    for below, above in ((5.0, 2.0), (2.0, 5.0), (3.0, 3.0)):
        wanted = expected(within(old + new, below, above), len(old), dead, version)
        assert list(snapshot.within(QueryBounds(below, above))) == wanted


@pytest.mark.parametrize("k", [FIRST_BATCH, SMALL_K, SMALL_K + 1, 2000])
def test_a_large_k_sorts_the_grid_first_and_answers_alike(k: int) -> None:
    old, new, dead = many_rows(900), many_rows(700), set(range(0, 1600, 7))
    snapshot = snapshot_of(old, new, dead, 2)
    wanted = expected(stabbed(old + new, 4.0), 900, dead, 2)
    assert len(wanted) > FIRST_BATCH
    assert snapshot.top(4.0, k)[0].tolist() == wanted[:k]
    ids, counts = snapshot.top_many(np.array([4.0, 99.0]), k)
    assert ids[0, : counts[0]].tolist() == wanted[:k]
    assert counts[1] == 0
    assert list(islice(snapshot.iterate(4.0), k)) == wanted[:k]
    window = QueryBounds(5.0, 3.0)
    assert list(snapshot.within(window)) == expected(within(old + new, *window), 900, dead, 2)


entries = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 99)), unique_by=lambda one: one[1])


@given(entries, st.sets(st.integers(0, 99)), st.integers(1, 4))
def test_two_sources_are_merged_batch_by_batch(
    drawn: list[tuple[int, int]], new: set[int], step: int
) -> None:
    old = sorted(entry for entry in drawn if entry[1] not in new)
    late = sorted(entry for entry in drawn if entry[1] in new)
    done = 0

    def fetch(count: int) -> tuple[np.ndarray, np.ndarray, bool]:
        nonlocal done
        batch = old[done : done + step]
        done += len(batch)
        keys, ids = np.array(batch, np.int64).reshape(-1, 2).T
        return ids, keys, done == len(old)

    keys, ids = np.array(late, np.int64).reshape(-1, 2).T
    assert list(merged(fetch, ids, keys)) == [id for _, id in sorted(drawn)]


def test_a_batch_without_living_entries_holds_nothing_back() -> None:
    batches = [([], []), ([4], [-2])]

    def fetch(count: int) -> tuple[np.ndarray, np.ndarray, bool]:
        ids, keys = batches.pop(0)
        return np.array(ids, np.int64), np.array(keys, np.int64), not batches

    assert list(merged(fetch, np.array([1, 9]), np.array([-3, -2]))) == [1, 4, 9]


def test_new_entries_before_the_last_of_a_batch_are_counted() -> None:
    ids, keys = np.array([3, 5]), np.array([-4, -2])
    new_ids, new_keys = np.array([8, 1, 5, 6, 0]), np.array([-9, -2, -2, -2, -1])
    assert count_before_last(ids, keys, new_ids, new_keys) == 2
    assert count_before_last(ids[:0], keys[:0], new_ids, new_keys) == 0
