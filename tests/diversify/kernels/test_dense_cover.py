"""Covers over matrices: how far alpha reaches, and the largest one that yields k.

`test_cover` compares those of a given alpha with Algorithm 4.1.
"""

from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.diversify.kernels.test_cover import Matrix, cases, reference

from tidings.compiled.rounding import rounded
from tidings.diversify.kernels.cover import Relevance
from tidings.diversify.kernels.dense_cover import fitting_dense_cover, reach_below, reach_of

LEVELS = st.floats(0, 2) | st.sampled_from([0.0, 1e-12, 0.1, 1 / 3, 0.5, 1.0, 9007.5, 1e300])


@given(LEVELS)
def test_a_reach_is_the_last_distance_that_rounds_to_it(level: float) -> None:
    alpha = float(rounded(level))
    reach = reach_of(alpha)
    assert rounded(reach) <= alpha < rounded(np.nextafter(reach, np.inf))
    below = reach_below(alpha)
    assert rounded(below) < alpha <= rounded(np.nextafter(below, np.inf))


@given(cases(), st.integers(1, 9), st.booleans())
def test_a_fitting_cover_has_the_largest_alpha_that_yields_k(
    case: tuple[Matrix, list[float], list[int]], k: int, relevant: bool
) -> None:
    matrix, ranks, places = case
    chosen = np.empty(len(ranks), np.int64)
    worth = Relevance(np.array(ranks), np.array(places), relevant)
    size = fitting_dense_cover(matrix, worth, k, chosen)
    levels = sorted({0.0, *(round(value, 12) for value in matrix.ravel())}, reverse=True)
    covers = [reference(case, level, relevant) for level in levels]
    expected = next((value for value in covers if len(value) >= k), covers[-1])
    assert list(chosen[:size]) == expected


def test_a_smaller_alpha_may_yield_fewer() -> None:
    """So all of them are tried, in order: counts here are 1, 2, 4, 3, ... as alpha falls."""
    chance = Random(0)
    for seed in range(2000):
        chance.seed(seed)
        count = 7
        matrix = np.zeros((count, count))
        for i in range(count):
            for j in range(i):
                matrix[i, j] = matrix[j, i] = chance.choice([0.1, 0.2, 0.3, 0.4, 0.5])
        case = (matrix, [chance.random() for _ in range(count)], list(range(count)))
        sizes = [len(reference(case, alpha, relevant=True)) for alpha in (0.5, 0.4, 0.3, 0.2, 0.1)]
        if sizes != sorted(sizes):
            break
    else:
        pytest.fail("no such case among those drawn")
    k = max(one for one, other in pairwise(sizes) if one > other)
    worth = Relevance(np.array(case[1]), np.array(case[2]), True)
    chosen = np.empty(count, np.int64)
    size = fitting_dense_cover(matrix, worth, k, chosen)
    assert size == next(value for value in sizes if value >= k)
