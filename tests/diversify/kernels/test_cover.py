"""Covers over lists of neighbours and over matrices, against Algorithm 4.1."""

import math
from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tidings.compiled.arrays import offsets
from tidings.diversify.covers import most_relevant
from tidings.diversify.kernels.cover import Neighbourhoods, Relevance, cover
from tidings.diversify.kernels.dense_cover import cover_within

Matrix = np.ndarray
FAR = st.sampled_from([0.0, 1e-13, 0.1, 0.2, 0.3, 1 / 3, 0.5, 0.7, 1.0])
RANKS = st.sampled_from([0.0, 1e-200, 1e-9, 0.1, 0.2, 0.3, 0.5, 1.0, 1e6])


@st.composite
def cases(draw: st.DrawFn) -> tuple[Matrix, list[float], list[int]]:
    """Any symmetric distances, ranks, and places by rank that need not follow them."""
    count = draw(st.integers(1, 9))
    matrix = np.zeros((count, count))
    for i in range(count):
        for j in range(i):
            matrix[i, j] = matrix[j, i] = draw(FAR)
    ranks = draw(st.lists(RANKS, min_size=count, max_size=count))
    return matrix, ranks, draw(st.permutations(range(count)))


def gain(case: tuple[Matrix, list[float], list[int]], i: int, white: set[int]) -> float:
    matrix, ranks, _ = case
    around = math.fsum(ranks[j] * matrix[i, j] for j in white)
    return round(ranks[i] * (ranks[i] / around), 12) if around else math.inf


def reference(
    case: tuple[Matrix, list[float], list[int]], alpha: float, relevant: bool
) -> list[int]:
    matrix, _, places = case
    white, chosen = set(range(len(matrix))), []
    near = {
        i: {j for j in white - {i} if round(matrix[i, j], 12) <= round(alpha, 12)} for i in white
    }
    while white:

        def value(i: int, white: set[int] = white) -> tuple[float, int]:
            around = near[i] & white
            return (-(gain(case, i, around) if relevant else len(around)), places[i])

        chosen.append(min(white, key=value))
        white = white - near[chosen[-1]] - {chosen[-1]}
    return chosen


def lists_of(matrix: Matrix, alpha: float) -> Neighbourhoods:
    """Return the lists of neighbours within alpha."""
    near = np.round(matrix, 12) <= round(alpha, 12)
    np.fill_diagonal(near, False)
    starts = offsets(near.sum(axis=1))
    return Neighbourhoods(starts[:-1].copy(), np.diff(starts), near.nonzero()[1], matrix[near])


def covered(case: tuple[Matrix, list[float], list[int]], alpha: float, relevant: bool) -> list[int]:
    """Return the cover by lists, which is that by the matrix."""
    matrix, ranks, places = case
    chosen, same = np.empty(len(ranks), np.int64), np.empty(len(ranks), np.int64)
    worth = Relevance(np.array(ranks), np.array(places), relevant)
    size = cover(lists_of(matrix, alpha), worth, np.arange(len(ranks)), chosen)
    assert cover_within(matrix, worth, round(alpha, 12), same) == size
    assert list(same[:size]) == list(chosen[:size])
    return list(chosen[:size])


@given(cases(), FAR, st.booleans())
def test_it_is_algorithm_4_1(
    case: tuple[Matrix, list[float], list[int]], alpha: float, relevant: bool
) -> None:
    assert covered(case, alpha, relevant) == reference(case, alpha, relevant)


@pytest.mark.parametrize("order", [1, -1])
def test_ties_of_sums_do_not_depend_on_order(order: int) -> None:
    """Around 0 lie .1, .2 and .3, around 4 the same the other way round; 4 is the better place."""
    away = [0.1, 0.2, 0.3][::order]
    matrix = np.ones((8, 8))
    for centre, around in ((0, away), (4, away[::-1])):
        for step, value in enumerate(around, start=1):
            matrix[centre, centre + step] = matrix[centre + step, centre] = value
    np.fill_diagonal(matrix, 0)
    ranks = [1.0, 1e-6, 1e-6, 1e-6] * 2
    case = (matrix, ranks, [4, 5, 6, 7, 0, 1, 2, 3])
    assert covered(case, 0.5, relevant=True)[0] == 4 == reference(case, 0.5, relevant=True)[0]


@pytest.mark.slow
@settings(max_examples=200)
@example(35129)
@given(st.integers(0, 10**6))
def test_sums_keep_their_precision_as_neighbours_leave(seed: int) -> None:
    """Many neighbours leave one after the other, down to nothing; ranks span many decades."""
    chance = Random(seed)
    count = 40
    points = [chance.random() for _ in range(count)]
    matrix = np.array([[abs(point - other) for other in points] for point in points])
    ranks = [10 ** chance.uniform(-8, 3) for _ in range(count)]
    case = (matrix, ranks, list(range(count)))
    for alpha in (0.02, 0.1, 0.4):
        assert covered(case, alpha, relevant=True) == reference(case, alpha, relevant=True)


def test_only_listed_members_are_covered() -> None:
    matrix = np.zeros((4, 4))
    worth = Relevance(np.ones(4), np.arange(4), True)
    chosen = np.empty(4, np.int64)
    assert cover(lists_of(matrix, 0.5), worth, np.array([1, 3]), chosen) == 1
    assert chosen[0] == 1


@pytest.mark.parametrize(("k", "kept"), [(1, [2]), (2, [2, 0]), (3, [2, 0, 1]), (9, [2, 0, 1])])
def test_most_relevant_keeps_the_best_in_order_of_choice(k: int, kept: list[int]) -> None:
    assert most_relevant(np.array([2, 0, 1]), np.array([5, 7, 3]), k).tolist() == kept
