"""The grid of later changes: masks, bands, twins, and the entries of a version."""

from bisect import bisect_right

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.intervals.plain import Row, rows, within

from tidings.index.intervals.kernels.delta_grid import (
    ALONE,
    BORN,
    BUSY,
    CHUNK_WIDTH,
    COPY,
    DIED,
    LIVING,
    NEVER,
    SLOTS,
    TAKEN,
    Grid,
    GridEntry,
    band_bits,
    band_of,
    bounds_at,
    grid_add,
    grid_gather,
    grid_kill,
    has_room,
    next_node,
    worthy,
)
from tidings.index.intervals.kernels.merge_by_key import key_of
from tidings.index.intervals.live.base_run import GridCuts
from tidings.index.intervals.live.delta import empty_grid, empty_table

FLAT = GridCuts(0, np.empty(0), np.empty((1, 0, 2), np.int64), 0)
BANDS = np.stack([np.sort([key_of(float(n % 4)) for n in range(15)]), np.arange(15)], axis=1)
CUT = GridCuts(1, np.arange(15) / 2, np.stack([BANDS, BANDS]), key_of(1.0))
"""Sixteen cells, cut at 0, 0.5, 1, ... 7, and a level above with one cell."""
every_grid = pytest.mark.parametrize("cuts", [FLAT, CUT], ids=["flat", "cut"])


def filled(cuts, drawn: list[Row], born: int = 1):
    grid, table = empty_grid(cuts), empty_table()
    for id, (low, high, score) in enumerate(drawn):
        grid_add(grid, table, GridEntry(low, high, key_of(score), id), born)
    return grid, table


def gathered(grid: Grid, below: float, above: float, version: int) -> list[tuple[int, int]]:
    ids, keys = np.empty((2, int(grid.pool[TAKEN]) * SLOTS), np.int64)
    count = grid_gather(grid, below, above, version, ids, keys)
    return sorted(zip(keys[:count].tolist(), ids[:count].tolist(), strict=True))


def test_worthy_slots_contain_the_query_and_score_enough() -> None:
    rng = np.random.default_rng(3)
    low = rng.integers(0, 6, (4, SLOTS)).astype(float)
    numbers = np.stack([low, low + rng.integers(0, 3, low.shape), rng.integers(0, 3, low.shape)], 1)
    numbers[3, 0], numbers[3, 1] = np.inf, -np.inf  # unused slots contain no point
    for chunk, (lows, highs, scores) in enumerate(numbers):
        for q in (-1.0, 2.0, 4.5, np.inf, np.nan):
            expected = (lows <= q) & (q <= highs) & (scores >= 1.0)
            mask = worthy(numbers.ravel(), chunk * CHUNK_WIDTH, q, 1.0)
            assert [mask >> slot & 1 for slot in range(SLOTS)] == expected.tolist()


@given(
    st.lists(st.tuples(st.integers(-3, 0), st.integers(0, 3)), max_size=6),
    st.integers(-4, 1),
    st.integers(-1, 4),
)
def test_a_band_counts_the_cuts_that_do_not_come_after(
    cuts: list[tuple[int, int]], key: int, id: int
) -> None:
    bands = np.array([sorted(cuts)], np.int64).reshape(1, -1, 2)
    assert band_of(bands, 0, key, id) == bisect_right(sorted(cuts), (key, id))


def test_higher_levels_have_more_bands() -> None:
    assert [1 << band_bits(level) for level in range(4)] == [1, 2, 32, 512]


@given(st.sets(st.integers(0, 99)), st.integers(0, 99), st.integers(0, 100))
def test_the_next_node_in_use_is_found(used: set[int], node: int, end: int) -> None:
    words = np.zeros(4, np.int64)
    for one in used:
        words[one >> 5] |= 1 << (one & 31)
    following = [one for one in used if node <= one < end]
    assert next_node(words, node, end) == min(following, default=end)


@every_grid
@given(drawn=rows, below=st.integers(0, 7), above=st.integers(0, 7))
def test_every_entry_is_gathered_once(cuts, drawn: list[Row], below: int, above: int) -> None:
    grid, _ = filled(cuts, drawn)
    expected = [(key_of(drawn[id][2]), id) for id in within(drawn, below, above)]
    assert gathered(grid, float(below), float(above), 1) == expected
    assert gathered(grid, float(below), float(above), 0) == []
    assert grid.pool[LIVING] == len(drawn)


@every_grid
@given(drawn=rows, dead=st.sets(st.integers(0, 19)))
def test_the_dead_are_gone_from_their_version_on(cuts, drawn: list[Row], dead: set[int]) -> None:
    grid, table = filled(cuts, drawn)
    gone = {id for id in dead if id < len(drawn)}
    for id in sorted(dead):
        slot = grid_kill(grid, table, id, 2)
        assert (slot >= 0) == (id in gone)
        assert slot < 0 or bounds_at(grid, slot) == drawn[id][:2]
        assert grid_kill(grid, table, id, 3) == -1
    everything = set(within(drawn, np.inf, -np.inf))
    assert {id for _, id in gathered(grid, np.inf, -np.inf, 1)} == everything
    assert {id for _, id in gathered(grid, np.inf, -np.inf, 2)} == everything - gone
    assert grid.pool[LIVING] == len(drawn) - len(gone)


def test_an_interval_over_two_cells_has_two_slots() -> None:
    grid, table = filled(CUT, [(1.0, 1.2, 1.0), (1.2, 1.7, 1.0)])
    used = np.flatnonzero(grid.slots[:, BORN] != NEVER)
    assert sorted(grid.twins[used].tolist())[:2] == [COPY, ALONE]
    assert len(used) == 3
    grid_kill(grid, table, 1, 5)
    assert sorted(grid.slots[used, DIED].tolist()) == [5, 5, NEVER]


def test_a_long_interval_lies_on_a_higher_level() -> None:
    grid, _ = filled(CUT, [(1.0, 1.2, 1.0), (1.0, 6.0, 1.0)])
    assert grid.pool[BUSY:].tolist() == [1, 1]


def test_a_full_chunk_is_followed_by_another() -> None:
    grid, _ = filled(FLAT, [(0.0, 1.0, 1.0)] * (SLOTS + 1))
    assert grid.pool[TAKEN] == 2
    assert grid.pool[BUSY] == 1
    assert grid.chunks[:2].tolist() == [[1, SLOTS], [-1, 1]]


def test_room_ends_with_the_chunks_or_with_the_table() -> None:
    grid, table = empty_grid(FLAT, chunks=2), empty_table(4)
    assert has_room(grid, table)
    assert not has_room(empty_grid(FLAT, chunks=1), table)
    grid_add(grid, table, GridEntry(0.0, 1.0, 0, 0), 0)
    assert not has_room(grid, table)
    grid = empty_grid(FLAT, chunks=8)
    for id in range(2):
        assert has_room(grid, table)
        grid_add(grid, table, GridEntry(0.0, 1.0, 0, id + 1), 0)
    assert not has_room(grid, table)
