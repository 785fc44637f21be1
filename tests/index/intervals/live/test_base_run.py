"""The base of a live interval index: entries by key, deaths, and the cuts of its grid."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.intervals.plain import POINTS, Row, many_rows, rows, stabbed

from tidings.index.intervals.kernels.delta_grid import NEVER
from tidings.index.intervals.kernels.live import STAMP, Run, run_next
from tidings.index.intervals.kernels.rtree import STATE as RANGE_STATE
from tidings.index.intervals.kernels.rtree import window_walk
from tidings.index.intervals.kernels.sopt_r_simd import STATE
from tidings.index.intervals.live.base_run import (
    GRID_SIZES,
    KeyedIntervals,
    build_run,
    cuts_for,
    grid_levels,
    key_order,
    without_dead,
)
from tidings.index.intervals.protocol import score_keys


def keyed(drawn: list[Row], ids: list[int] | None = None) -> KeyedIntervals:
    low, high, score = np.array(drawn, float).reshape(-1, 3).T
    numbers = range(len(drawn)) if ids is None else ids
    return KeyedIntervals(low, high, score_keys(score), np.array(numbers, np.int64))


def walked(run: Run, q: float, version: int, size: int) -> list[int]:
    ids, keys = np.empty((2, size + 1), np.int64)
    count = run_next(run, q, version, np.zeros(STATE, np.int64), ids, keys)
    return [int(id) for id in ids[:count]]


def kill(base, ids, version):
    for id in ids:
        place = np.flatnonzero(base.ids == id)[0]
        base.run.notes[place, STAMP] = version << 32 | id


@given(rows)
def test_a_run_is_walked_in_the_order_of_scores_and_ids(drawn: list[Row]) -> None:
    base = build_run(keyed(drawn))
    assert len(base) == len(drawn)
    for q in POINTS:
        assert walked(base.run, q, 0, len(drawn)) == stabbed(drawn, q)


@given(rows, st.sets(st.integers(0, 19)))
def test_the_dead_are_skipped_from_their_version_on(drawn: list[Row], dead: set[int]) -> None:
    base = build_run(keyed(drawn))
    gone = sorted(id for id in dead if id < len(drawn))
    kill(base, gone, 5)
    skipping = without_dead(base.run, 5)
    for q in (0.0, 3.0, math.inf):
        all_ids = stabbed(drawn, q)
        left = [id for id in all_ids if id not in gone]
        assert walked(base.run, q, 4, len(drawn)) == all_ids
        assert walked(base.run, q, 5, len(drawn)) == left
        assert walked(skipping, q, 5, len(drawn)) == left
    assert sorted(base.living(4).ids.tolist()) == list(range(len(drawn)))
    assert sorted(base.living(5).ids.tolist()) == sorted(set(range(len(drawn))) - set(gone))


def test_a_copy_without_the_dead_shares_all_but_the_blocks() -> None:
    base = build_run(keyed([(0.0, 1.0, 1.0), (0.0, 1.0, 2.0)]))
    kill(base, [1], 3)
    copy = without_dead(base.run, 3)
    assert copy.notes is base.run.notes
    assert copy.blocks is not base.run.blocks
    assert np.isinf(copy.blocks).sum() == np.isinf(base.run.blocks).sum() + 1


def test_ids_may_have_gaps_and_any_order() -> None:
    base = build_run(keyed([(0.0, 9.0, 1.0), (0.0, 9.0, 1.0), (0.0, 9.0, 2.0)], [70, 5, 9]))
    assert walked(base.run, 3.0, 0, 3) == [9, 5, 70]
    assert base.entries.sorted_ids.tolist() == [5, 9, 70]
    assert base.ids[base.entries.places].tolist() == [5, 9, 70]
    assert (base.run.notes[:, STAMP] >> 32 == NEVER).all()


def test_living_entries_keep_their_bounds_and_keys() -> None:
    drawn = many_rows(70)
    living = build_run(keyed(drawn)).living(0)
    order = np.argsort(living.ids)
    found = living.take(order)
    expected = keyed(drawn)
    assert found.low.tolist() == expected.low.tolist()
    assert found.high.tolist() == expected.high.tolist()
    assert found.keys.tolist() == expected.keys.tolist()


def test_the_tree_of_ranges_has_places_in_the_order_of_answers() -> None:
    drawn = many_rows(120)
    base = build_run(keyed(drawn))
    before = base.nbytes
    places = np.empty(200, np.int64)
    state = np.zeros(RANGE_STATE, np.int64)
    count = window_walk(base.range_tree, 4.0, 4.0, state, places)
    assert base.ids[places[:count]].tolist() == stabbed(drawn, 4.0)
    assert base.nbytes > before


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=8, unique=True))
def test_keys_are_ordered_and_then_ids(entries: list[tuple[int, int]]) -> None:
    keys, ids = np.array(entries, np.int64).reshape(-1, 2).T
    order = key_order(keys, ids)
    assert [entries[place] for place in order] == sorted(entries)


@pytest.mark.parametrize(
    ("size", "height"), [(0, 0), (GRID_SIZES[0] - 1, 0), (GRID_SIZES[0], 1), (GRID_SIZES[1], 2)]
)
def test_a_larger_run_has_a_higher_grid(size: int, height: int) -> None:
    ranked = keyed(many_rows(size, 500))
    ranked = ranked.take(key_order(ranked.keys, ranked.ids))
    cuts = cuts_for(ranked, min(20, size) - 1)
    cells = 16**height
    assert cuts.height == height
    assert len(cuts.places) == cells - 1
    assert (np.diff(cuts.places) >= 0).all()
    assert cuts.bands.shape == (height + 1, cells - 1, 2)
    for level in cuts.bands.tolist():
        assert level == sorted(level)
    assert cuts.usual_key == (ranked.keys[min(20, size) - 1] if size else 0)


@given(st.lists(st.tuples(st.integers(0, 4095), st.integers(0, 4095)).map(sorted), max_size=8))
def test_an_interval_touches_at_most_two_cells_of_its_level(spans: list[list[int]]) -> None:
    first, last = np.array(spans, np.int64).reshape(-1, 2).T
    for level, (begin, end) in zip(grid_levels(first, last).tolist(), spans, strict=True):
        assert (end >> 4 * level) - (begin >> 4 * level) <= 1
        assert level == 0 or (end >> 4 * (level - 1)) - (begin >> 4 * (level - 1)) > 1
