"""Decay, keys and means of the kernels are those of the plain form to the last bit."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.compiled.exact_sum import PARTS, mean_without, sum_add, sum_total
from tidings.diversify import Candidate, set_divrank
from tidings.diversify.distance import Overlap
from tidings.feed.columnar import policy_codes
from tidings.feed.columnar.kernels.decay import fresh_rank, order_keys
from tidings.model.records import Event
from tidings.policy import Policy

decays = st.sampled_from(
    [
        "none",
        {"name": "exponential", "rate": 1e-5},
        {"name": "exponential", "rate": 700.0, "landmark": 1e9},
        {"name": "polynomial", "exponent": 0.5},
        {"name": "polynomial", "exponent": 3, "landmark": 100},
        "logarithmic",
        {"name": "logarithmic", "landmark": 1e9},
    ]
)
scores = st.one_of(st.sampled_from([0.0, 1.0, 1e100, 1e-300]), st.floats(0, 10))
times = st.one_of(st.integers(-(10**9), 10**9), st.integers(0, 2 * 10**15))
ranks = st.one_of(st.sampled_from([0.3, 0.1, 0.8, 0.8 + 1e-13, 1e100]), st.floats(0, 1e4))


@given(decays, st.lists(st.tuples(scores, times, st.integers(0, 10**12)), min_size=1))
def test_keys_and_fresh_ranks_are_those_of_the_decay(
    form: object, rows: list[tuple[float, int, int]]
) -> None:
    policy = Policy(decay=form)
    numbers = policy_codes.decay_codes(policy)
    score, us = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    keys = np.empty(len(rows))
    order_keys(numbers, score, us, keys)
    assert keys.tolist() == [policy.decay.key(score, us) for score, us, _ in rows]
    for rank, then, later in rows:
        fresh = fresh_rank(numbers, rank, then, then + later)
        assert fresh == policy.decay.fresh(rank, then, then + later)


@given(st.lists(st.floats(-1e100, 1e100), max_size=30))
def test_a_sum_is_exact_but_for_one_rounding(values: list[float]) -> None:
    partials, count = np.empty(PARTS), 0
    for value in values:
        count = sum_add(partials, count, value)
    assert sum_total(partials, count) == math.fsum(values)


def test_a_sum_that_lies_between_two_doubles_goes_to_the_even_one() -> None:
    """2^53 + 1 lies in the middle; the smallest of further terms decides."""
    partials = np.empty(PARTS)
    for values in ([2.0**53, 1.0], [2.0**53, 1.0, 1e-30], [2.0**53, 1.0, -1e-30]):
        count = 0
        for value in values:
            count = sum_add(partials, count, value)
        assert sum_total(partials, count) == math.fsum(values)


@given(st.lists(ranks, min_size=2, max_size=12), st.data())
def test_the_mean_of_a_set_is_its_divrank_without_diversity(
    values: list[float], data: st.DataObject
) -> None:
    left_out = data.draw(st.integers(-1, len(values) - 1))
    event = Event("e", {}, published_at=0)
    chosen = [Candidate(event, rank, 0) for i, rank in enumerate(values) if i != left_out]
    mean = mean_without(np.array(values), len(values), left_out, np.empty(PARTS))
    assert mean == set_divrank(chosen, 1.0, Overlap())
