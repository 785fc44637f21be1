"""Choices that compare all pairs or all sets of candidates are limited."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.diversify import DIVERSIFIERS
from tidings.diversify.memory_limits import DENSE, check_dense, check_sets, is_dense
from tidings.errors import InvalidEvent, InvalidPolicy, TidingsError


def test_covers_and_the_best_set_compare_all_pairs_at_once():
    dense = {name for name, kind in DIVERSIFIERS.items() if is_dense(kind())}
    assert dense == {"disc", "maxdivrel", "optimal"}


def test_more_candidates_than_the_limit_are_refused_with_both_numbers():
    check_dense("disc", DENSE)
    with pytest.raises(InvalidPolicy, match=r"^disc compares all pairs of at most 10,000 candid"):
        check_dense("disc", DENSE + 1)
    with pytest.raises(InvalidEvent, match=r"not 12,345$"):
        check_dense("disc", 12_345, InvalidEvent)


def allowed(count: int, k: int, most: int) -> bool:
    try:
        check_sets(count, k, most)
    except TidingsError:
        return False
    return True


@given(st.integers(0, 12), st.integers(1, 14), st.integers(1, 1000))
def test_the_number_of_sets_is_the_binomial_coefficient(count, k, most):
    assert allowed(count, k, most) == (math.comb(count, k) <= most)


def test_the_limit_itself_is_allowed():
    check_sets(9, 3, most=84)
    with pytest.raises(TidingsError, match=r"the sets of 3 of 9 events .* optimal_sets = 83"):
        check_sets(9, 3, most=83)


def test_all_candidates_are_a_single_set():
    check_sets(5, 5, most=1)
    check_sets(3, 5, most=1)


def test_a_huge_number_of_sets_is_refused_without_being_counted():
    with pytest.raises(InvalidPolicy, match="the sets of 500,000,000 of 1,000,000,000 events"):
        check_sets(10**9, 5 * 10**8, most=10**6, error=InvalidPolicy)
