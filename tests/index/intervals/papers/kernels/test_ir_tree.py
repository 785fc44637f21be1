"""The IR-tree's kernels: halving points, and inserts and removals that leave nothing behind."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.intervals.plain import POINTS, Row, many_rows, rows, stabbed

from tidings.index.intervals.papers.ir_tree import empty_store
from tidings.index.intervals.papers.kernels.ir_blocks import HEIGHTS, MOST, ROOTS, SLOTS, IrStore
from tidings.index.intervals.papers.kernels.ir_tree import (
    STATE,
    IntervalsById,
    first_stabbed,
    halving_point,
    halving_points,
    has_room,
    ir_add,
    ir_insert_many,
    ir_remove,
    ir_remove_many,
    ir_walk,
    ir_walk_many,
    ordered,
    slots_plain,
    slots_stabbed,
)
from tidings.index.intervals.protocol import score_keys

numbers = st.one_of(
    st.floats(allow_nan=False), st.sampled_from([-math.inf, math.inf, 0.0, -0.0, 5e-324, 1.0])
)


def by_id_of(drawn: list[Row]) -> IntervalsById:
    low, high, score = np.array(drawn, float).reshape(-1, 3).T.copy()
    return IntervalsById(low, high, score_keys(score), np.zeros(len(drawn), np.bool_))


def tree_of(drawn: list[Row]) -> tuple[IrStore, IntervalsById]:
    store, by_id = empty_store(max(1000, len(drawn))), by_id_of(drawn)
    assert ir_insert_many(store, by_id, np.arange(len(drawn)), 0) == len(drawn)
    return store, by_id


def walked(store: IrStore, q: float, step: int = 64) -> list[int]:
    state, out, found = np.zeros(STATE, np.int64), np.empty(step, np.int64), list[int]()
    while (count := ir_walk(store, q, state, out)) > 0:
        found += out[:count].tolist()
    return found


@given(numbers, numbers)
def test_integers_have_the_order_of_the_floats(one: float, other: float) -> None:
    assert (ordered(one) < ordered(other)) == (one < other)
    assert (ordered(one) == ordered(other)) == (one == other)


@given(st.tuples(numbers, numbers).map(sorted))
def test_the_halving_point_is_the_highest_number_of_an_interval(ends: list[float]) -> None:
    """No number of the interval has more zeros at its end; 0 is above all others."""
    begin, end = (int(ordered(number)) for number in ends)
    point, height = (int(part) for part in halving_point(*ends))
    assert begin <= point <= end
    if begin <= 0 <= end:
        assert (point, height) == (0, 63)
    else:
        assert point % (1 << height) == 0
        assert end // (2 << height) == (begin - 1) // (2 << height)


def test_many_halving_points_are_those_of_each() -> None:
    low, high = np.array([-1.0, 2.0, 3.0]), np.array([1.0, 9.0, 3.0])
    found = np.empty(3, np.int64)
    halving_points(low, high, found)
    ends = zip(low, high, strict=True)
    assert found.tolist() == [halving_point(*pair)[0] for pair in ends]


def test_masks_are_those_of_the_plain_twin() -> None:
    rng = np.random.default_rng(2)
    low = rng.integers(0, 6, 2 * MOST).astype(float)
    bounds = np.stack([low, low + rng.integers(0, 3, len(low))])
    for first in (0, 7, MOST):
        for q in (-1.0, 2.0, 4.5, np.nan):
            assert slots_stabbed(bounds, first, q) == slots_plain(bounds, first, q)


def test_the_first_stabbed_slot_is_found_or_the_end() -> None:
    bounds = np.stack([np.full(100, 9.0), np.full(100, 9.5)])
    bounds[:, 5], bounds[:, 8] = (0.0, 2.0), (1.0, 3.0)
    assert [first_stabbed(bounds, 1.0, slot, 10) for slot in (0, 5, 6, 9, 10)] == [5, 5, 8, 10, 10]
    assert first_stabbed(bounds, 1.0, 6, 8) == 8


@given(rows)
def test_a_walk_is_in_the_order_of_scores_and_ids(drawn: list[Row]) -> None:
    store, _ = tree_of(drawn)
    for q in POINTS:
        assert walked(store, q) == stabbed(drawn, q)


@pytest.mark.parametrize("step", [1, 7, 64])
def test_a_walk_over_many_blocks_resumes(step: int) -> None:
    """All intervals of one node: a B-tree of several levels."""
    drawn = [(0.0, 1.0 + id % 3, float(id * 7 % 11)) for id in range(700)]
    store, _ = tree_of(drawn)
    assert store.pool[ROOTS] == 1
    assert walked(store, 2.5, step) == stabbed(drawn, 2.5)


@given(rows, st.sets(st.integers(0, 19)))
def test_removed_intervals_are_gone(drawn: list[Row], dead: set[int]) -> None:
    store, by_id = tree_of(drawn)
    path = np.empty(32, np.int64)
    gone = {id for id in dead if id < len(drawn)}
    for id in gone:
        assert ir_remove(store, by_id, id, path)
        assert not ir_remove(store, by_id, id, path)
    for q in (0.0, 3.0, 5.5):
        assert walked(store, q) == [id for id in stabbed(drawn, q) if id not in gone]


def test_an_emptied_tree_uses_its_slots_again() -> None:
    drawn = many_rows(400)
    store, by_id = tree_of(drawn)
    used, path = int(store.pool[SLOTS]), np.empty(32, np.int64)
    for _ in range(3):
        order = np.random.default_rng(1).permutation(400)
        assert ir_remove_many(store, by_id, order, path) == 400
        assert store.pool[ROOTS] == 0
        assert not store.pool[HEIGHTS:].any()
        assert not by_id.alive.any()
        assert walked(store, 5.0) == []
        assert ir_insert_many(store, by_id, np.arange(400), 0) == 400
        assert store.pool[SLOTS] <= 2 * used
    assert walked(store, 5.0) == stabbed(drawn, 5.0)


def test_a_removal_ends_at_an_interval_that_does_not_exist() -> None:
    store, by_id = tree_of([(0.0, 1.0, 1.0)] * 3)
    path = np.empty(32, np.int64)
    assert ir_remove_many(store, by_id, np.array([2, 2, 0]), path) == 1
    assert walked(store, 0.5) == [0, 1]


def test_a_full_store_takes_nothing_more() -> None:
    drawn = [(float(id), float(id), 1.0) for id in range(4000)]
    store, by_id = empty_store(0), by_id_of(drawn)
    done = ir_insert_many(store, by_id, np.arange(4000), 0)
    assert 0 < done < 4000
    assert not has_room(store)
    assert not ir_add(store, by_id, done, 0.0, 1.0, 1.0)
    assert not by_id.alive[done:].any()
    assert walked(store, 1.0) == [1]


def test_an_added_interval_is_recorded_by_its_id() -> None:
    store, by_id = tree_of([(0.0, 1.0, 1.0)])
    by_id = IntervalsById(*(np.append(column, column) for column in by_id))  # type: ignore[arg-type]
    assert ir_add(store, by_id, 1, 0.5, 3.0, 2.0)
    assert (by_id.low[1], by_id.high[1], bool(by_id.alive[1])) == (0.5, 3.0, True)
    assert by_id.keys[1] == score_keys(np.array([2.0]))[0]
    assert walked(store, 0.75) == [1, 0]


def test_each_query_of_a_batch_begins_anew() -> None:
    drawn = many_rows(200)
    store, _ = tree_of(drawn)
    out, counts = np.empty((len(POINTS), 7), np.int64), np.empty(len(POINTS), np.int64)
    ir_walk_many(store, np.array(POINTS), out, counts)
    for q, row, count in zip(POINTS, out.tolist(), counts.tolist(), strict=True):
        assert row[:count] == stabbed(drawn, q)[:7]
