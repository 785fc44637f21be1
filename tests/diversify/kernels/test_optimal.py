"""The best set, and how few sets are summed."""

import math
from collections.abc import Iterable
from itertools import combinations
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.diversify.kernels.optimal import BestSet, SetProblem, best_set
from tidings.diversify.optimal import Optimal
from tidings.diversify.protocol import TieOrder

FAR = (0.0, 0.25, 1 / 3, 0.5, 2 / 3, 1.0)


def case(seed: int, count: int, kinds: int) -> tuple[np.ndarray, np.ndarray, TieOrder]:
    """Distances of few kinds, so that many sets tie; times and names in any order."""
    chance = Random(seed)
    matrix = np.zeros((count, count))
    for i in range(count):
        for j in range(i):
            matrix[i, j] = matrix[j, i] = chance.choice(FAR[-kinds:])
    ranks = np.array([chance.choice([0.1, 0.2, 0.3, 0.7]) for _ in range(count)])
    times = np.array([chance.randrange(3) for _ in range(count)])
    names = np.array(chance.sample(range(count), count))
    newest = np.empty(count, np.int64)
    newest[np.lexsort((names, -times))] = np.arange(count)
    return matrix, ranks, TieOrder(newest, times, names)


def best_by_definition(
    drawn: tuple[np.ndarray, np.ndarray, TieOrder], k: int, sigma: float
) -> set[int]:
    matrix, ranks, order = drawn

    def key(members: Iterable[int]) -> Any:
        members = list(members)
        pairs = [matrix[i, j] for i, j in combinations(members, 2)]
        div = math.fsum(pairs) / len(pairs) if pairs else 0.0
        rank = math.fsum(ranks[members]) / k
        times = sorted(-int(order.times[i]) for i in members)
        names = sorted(int(order.names[i]) for i in members)
        return (-round(sigma * rank + (1 - sigma) * div, 12), sum(times), times, names)

    return set(min(combinations(range(len(ranks)), k), key=key))


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    count=st.integers(2, 9),
    k=st.integers(1, 8),
    kinds=st.integers(1, 6),
    sigma=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
)
def test_it_is_the_best_of_all_sets(
    seed: int, count: int, k: int, kinds: int, sigma: float
) -> None:
    drawn = case(seed, count, kinds)
    matrix, ranks, order = drawn
    members = Optimal(sigma=sigma).pick(ranks, ranks, order, matrix, k)
    assert set(members.tolist()) == best_by_definition(drawn, min(k, count), sigma)
    ordered = sorted(members.tolist(), key=lambda i: (-ranks[i], order.newest[i]))
    assert members.tolist() == ordered


@pytest.mark.parametrize(("count", "k"), [(18, 6), (18, 9), (24, 5)])
@pytest.mark.parametrize("sigma", [0.25, 0.5])
def test_the_bound_rules_out_most_sets(count: int, k: int, sigma: float) -> None:
    """From any initial set."""
    chance = Random(count)
    points = np.array([[chance.random() for _ in range(4)] for _ in range(count)])
    matrix = np.abs(points[:, None] - points[None]).mean(axis=2)
    ranks = np.array([chance.random() for _ in range(count)])
    order = TieOrder(np.arange(count), np.arange(count)[::-1].copy(), np.arange(count))
    best = BestSet(np.arange(k), np.empty(1))
    most = Optimal(sigma=sigma)._contributions(matrix, ranks, k)
    examined = best_set(SetProblem(matrix, ranks, sigma), order, most, best)
    assert examined < math.comb(count, k) / 10
    other = BestSet(np.arange(count - k, count), np.empty(1))
    best_set(SetProblem(matrix, ranks, sigma), order, most, other)
    assert best[0].tolist() == other[0].tolist()
