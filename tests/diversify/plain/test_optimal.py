"""The set of largest divrank, found by trying every set."""

from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.diversify.small import (
    DISTANCES,
    SIGMAS,
    SQUARE_TIES,
    Between,
    by_rank,
    candidate,
    ids,
    mean,
    square,
    windows,
)
from tests.diversify.test_divrank import FIGURE_5

from tidings.diversify.optimal import Optimal
from tidings.diversify.plain.optimal import optimal
from tidings.diversify.protocol import Candidate, Distance
from tidings.errors import TidingsError


@given(windows(min_size=1), st.integers(1, 7), SIGMAS, DISTANCES)
def test_no_set_has_a_larger_divrank(
    window: list[Candidate], k: int, sigma: float, judged: tuple[Distance, Between]
) -> None:
    distance, exact = judged

    def divrank(chosen: tuple[Candidate, ...]) -> Fraction:
        div = mean(exact(one.event, other.event) for one, other in combinations(chosen, 2))
        rank = mean(Fraction(one.rank) for one in chosen)
        return Fraction(sigma) * rank + (1 - Fraction(sigma)) * div

    size = min(k, len(window))
    chosen = [window[i] for i in optimal(Optimal(sigma, distance), window, k)]
    assert len({id(one) for one in chosen}) == size
    assert chosen == sorted(chosen, key=by_rank)
    assert divrank(tuple(chosen)) == max(map(divrank, combinations(window, size)))


@pytest.mark.parametrize(("times", "pair"), SQUARE_TIES)
def test_ties_between_sets(times: tuple[int, ...], pair: str) -> None:
    window = square(times)
    assert set(ids(window, optimal(Optimal(0.5), window, 2))) == set(pair)


def test_members_are_returned_by_rank_then_newest() -> None:
    assert ids(FIGURE_5, optimal(Optimal(0.5), FIGURE_5, 4)) == ["e1", "e4", "e5", "e6"]
    assert ids(FIGURE_5, optimal(Optimal(1.0), FIGURE_5, 3)) == ["e1", "e4", "e3"]


def test_fewer_candidates_than_k_are_all_chosen() -> None:
    window = [candidate("a", 0.1), candidate("b", 0.9)]
    assert optimal(Optimal(), window, 5) == [1, 0]
    assert optimal(Optimal(), [], 5) == []


def test_more_sets_than_allowed_are_refused() -> None:
    part = Optimal().bounded(14)
    with pytest.raises(TidingsError, match="the sets of 4 of 6 events are more than"):
        optimal(part, FIGURE_5, 4)
    assert len(optimal(Optimal().bounded(15), FIGURE_5, 4)) == 4
