"""Packed ranks are read as they were written, however many different ones there are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.feed.columnar.cohort_arrays import SlabMoves
from tidings.feed.columnar.rules.packed_ranks import PackedRanks

CELLS = 24


def written(rounds: list[dict[int, float]]) -> tuple[PackedRanks, dict[int, float]]:
    pool, known = PackedRanks(), dict[int, float]()
    pool.lengthen(CELLS)
    for ranks in rounds:
        pool.put(np.array([*ranks], np.int64), np.array([*ranks.values()]))
        known |= ranks
    return pool, known


few, some, many = (st.integers(0, most - 1).map(lambda n: n / 512) for most in (16, 40, 5_000))
rounds = st.lists(
    st.dictionaries(st.integers(0, CELLS - 1), st.one_of(few, some, many), min_size=1), max_size=8
)


@given(rounds)
def test_cells_keep_their_ranks_when_more_values_come(rounds: list[dict[int, float]]) -> None:
    pool, known = written(rounds)
    assert pool.get(np.array([*known], np.int64)).tolist() == [*known.values()]


@pytest.mark.parametrize(
    ("values", "bits"), [(1, 4), (16, 4), (17, 8), (256, 8), (257, 64), (1_000, 64)]
)
def test_a_cell_has_as_few_bits_as_the_different_ranks_need(values: int, bits: int) -> None:
    pool, ranks = PackedRanks(), np.arange(values) / values
    pool.lengthen(values)
    for part in np.array_split(ranks, min(values, 5)):
        pool.put(np.searchsorted(ranks, part), part)
    assert pool.bits == bits
    assert pool.get(np.arange(values)).tolist() == ranks.tolist()
    assert pool.nbytes <= values * (bits / 8 + 8) + 24


@pytest.mark.parametrize("values", [3, 100, 300])
def test_slabs_move_down_with_their_ranks(values: int) -> None:
    pool, ranks = PackedRanks(), np.arange(600) % values / values
    pool.lengthen(600)
    pool.put(np.arange(600), ranks)
    pool.move(SlabMoves(np.array([100, 400]), np.array([0, 80]), np.array([80, 200])))
    assert pool.get(np.arange(280)).tolist() == [*ranks[100:180], *ranks[400:600]]
