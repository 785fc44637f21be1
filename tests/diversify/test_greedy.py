"""Greedy growth of candidates and of arrays gives the choice of the plain version."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.diversify.small import SIGMAS, candidate, ids, large_windows

from tidings.diversify.distance import Jaccard, Overlap
from tidings.diversify.greedy import DivRank, MaxAvg, MaxMin, MaxSum
from tidings.diversify.hashed_distances import Submatrix
from tidings.diversify.plain.diversifiers import PLAIN
from tidings.diversify.protocol import Candidate
from tidings.diversify.tie_order import order_of, ranks_and_keys
from tidings.model.records import Event

every_part = pytest.mark.parametrize("part", [DivRank, MaxMin, MaxSum, MaxAvg])


class Own(Jaccard):
    """A distance of a user: the difference of the attribute `at`, at most 1."""

    def between(self, one: Event, other: Event) -> float:
        apart = abs(one.attributes["at"] - other.attributes["at"])
        return min(1.0, float(apart))


def matrix_of(candidates: list[Candidate], distance: Any) -> Any:
    events = [candidate.event for candidate in candidates]
    rows = [[distance.between(event, other) for other in events] for event in events]
    return np.array(rows, np.float64).reshape(len(events), len(events))


@every_part
@settings(max_examples=40)
@given(candidates=large_windows(max_size=12), k=st.integers(1, 6), sigma=SIGMAS)
def test_a_choice_of_candidates_is_the_plain_one(
    part: Any, candidates: list[Candidate], k: int, sigma: float
) -> None:
    made = part(sigma)
    chosen = made.choose(candidates, k)
    assert chosen == PLAIN[made.name](made, candidates, k)


@every_part
@settings(max_examples=40)
@given(candidates=large_windows(max_size=12), k=st.integers(1, 6), sigma=SIGMAS)
def test_a_choice_of_arrays_is_the_plain_one(
    part: Any, candidates: list[Candidate], k: int, sigma: float
) -> None:
    made = part(sigma)
    ranks, keys = ranks_and_keys(candidates)
    order = order_of([candidate.event for candidate in candidates])
    matrix = matrix_of(candidates, Overlap())
    chosen = made.pick(ranks, keys, order, matrix, k)
    assert chosen.tolist() == PLAIN[made.name](made, candidates, k)


def test_candidates_may_be_rows_of_a_larger_matrix() -> None:
    window = [candidate(name, 0.5, n, a=n % 2, b=n) for n, name in enumerate("abcdef")]
    whole, members = matrix_of(window, Overlap()), np.array([5, 1, 2])
    some = [window[i] for i in members.tolist()]
    ranks, keys = ranks_and_keys(some)
    order = order_of([one.event for one in some])
    chosen = DivRank(0.25).pick(ranks, keys, order, Submatrix(whole, members), 2)
    assert chosen.tolist() == PLAIN["divrank"](DivRank(0.25), some, 2)


def test_one_is_chosen_by_its_key_where_ranks_have_vanished() -> None:
    window = [
        Candidate(Event("old", {}, 0), 0.0, -900.0),
        Candidate(Event("fresh", {}, 0), 0.0, -800.0),
    ]
    assert DivRank().choose(window, 1) == [1]
    ranks, keys = ranks_and_keys(window)
    order = order_of([one.event for one in window])
    picked = DivRank().pick(ranks, keys, order, np.zeros((2, 2)), 1)
    assert picked.tolist() == [1]


def test_no_candidates_are_no_choice() -> None:
    assert MaxSum().choose([], 3) == []


def test_a_distance_without_a_kernel_is_measured_in_python() -> None:
    window = [candidate(name, 0.5, at=at) for name, at in zip("abc", (0.0, 0.25, 1.0), strict=True)]
    chosen = DivRank(0.5, Own()).choose(window, 2)
    assert ids(window, chosen) == ["a", "c"]
