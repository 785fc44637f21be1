"""Packed ranks are read as they were written, however many different ones there are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.feed.columnar.rules.packed_ranks import PackedRanks
from tidings.feed.columnar.slab_pools import SlabMoves

CELLS = 24
ROOM = 2_000
"""Cells behind those that are written, without which packing many values would not pay."""


def written(
    rounds: list[dict[int, float]], cells: int, distinct: int
) -> tuple[PackedRanks, dict[int, float]]:
    pool, known = PackedRanks(), dict[int, float]()
    pool.lengthen(cells)
    pool.learn(np.arange(distinct) * 90.0 / max(1, distinct))
    for ranks in rounds:
        pool.put(np.array([*ranks], np.int64), np.array([*ranks.values()]))
        known |= ranks
    return pool, known


few, some, many = (st.integers(0, most - 1).map(lambda n: n / 512) for most in (16, 40, 50_000))
rounds = st.lists(
    st.dictionaries(st.integers(0, CELLS - 1), st.one_of(few, some, many), min_size=1), max_size=8
)


@pytest.mark.parametrize(("cells", "distinct"), [(CELLS, 0), (ROOM, 0), (ROOM, 250), (ROOM, 400)])
@given(rounds=rounds)
def test_cells_keep_their_ranks_when_more_values_come(
    rounds: list[dict[int, float]], cells: int, distinct: int
) -> None:
    pool, known = written(rounds, cells, distinct)
    assert pool.get(np.array([*known], np.int64)).tolist() == [*known.values()]


@pytest.mark.parametrize(
    ("values", "cells", "bits"),
    [
        *((1, 1, 4), (16, 16, 4), (17, 17, 8), (256, 256, 8)),
        *((257, 896, 64), (257, 1_100, 16), (1_000, 4_000, 16), (32_768, 140_000, 16)),
        (32_769, 140_000, 64),
    ],
)
def test_a_cell_has_as_few_bits_as_the_different_ranks_need(
    values: int, cells: int, bits: int
) -> None:
    pool, ranks = PackedRanks(), np.arange(values) / values
    pool.lengthen(cells)
    for part in np.array_split(ranks, min(values, 5)):
        pool.put(np.searchsorted(ranks, part), part)
    assert pool.bits == bits
    assert pool.get(np.arange(values)).tolist() == ranks.tolist()
    assert pool.nbytes <= cells * bits / 8 + values * (16 if bits < 64 else 0) + 24


def test_values_that_fill_the_gaps_are_spaced_anew_once_and_then_written_whole() -> None:
    pool, known = PackedRanks(), list[float]()
    pool.lengthen(8_000)
    for number in range(400):  # each below all others, so that one gap takes them all
        known.append(1 / (number + 1))
        pool.put(np.array([number]), np.array(known[-1:]))
        assert pool.get(np.arange(number + 1)).tolist() == known
    assert pool.bits == 64


@pytest.mark.parametrize("values", [3, 100, 140, 300])
def test_slabs_move_down_with_their_ranks(values: int) -> None:
    pool, ranks = PackedRanks(), np.arange(600) % values / values
    pool.lengthen(600 if values > 140 else 1_200)
    pool.put(np.arange(600), ranks)
    pool.move(SlabMoves(np.array([100, 400]), np.array([0, 80]), np.array([80, 200])))
    assert pool.get(np.arange(280)).tolist() == [*ranks[100:180], *ranks[400:600]]
