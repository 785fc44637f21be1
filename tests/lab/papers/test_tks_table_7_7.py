"""Exponents of votes, and what is claimed of them."""

import math

import numpy as np
import pytest

from tidings.lab.papers.tks_table_7_7 import (
    TABLE_7_7,
    TABLE_7_9,
    Exponents,
    exponent,
    falls,
    is_near_two,
    threshold_does_not_matter,
    views_agree,
)

THESIS = Exponents(
    {
        s: {w: {"Books": 1.0 * value, "Home": 1.0 * value} for w, value in by_w.items()}
        for s, by_w in TABLE_7_9.items()
    },
    {0.35: 51, 0.55: 34, 0.85: 12},
)
OURS = Exponents(
    {
        s: {w: {"Books": base + w / 1e4, "Home": base + 0.1} for w in TABLE_7_7}
        for s, base in ((0.35, 1.25), (0.55, 1.28), (0.85, 1.4))
    },
    {0.35: 51, 0.55: 34, 0.85: 12},
)


@pytest.mark.parametrize(
    ("votes", "expected"),
    [([1, 1, 0], math.inf), ([0, 2, 2], 1 + 1 / math.log(2)), ([1, 8], 1 + 2 / math.log(8))],
)
def test_the_exponent_is_that_of_the_thesis(votes: list[int], expected: float) -> None:
    assert exponent(np.array(votes)) == pytest.approx(expected)


def test_the_claims_hold_for_the_figures_of_the_thesis() -> None:
    for claim in (falls(THESIS, 0.55), is_near_two(THESIS, 0.55), views_agree(THESIS, 0.55)):
        assert claim.holds
    assert threshold_does_not_matter(THESIS, list(TABLE_7_9[0.55])).holds


def test_the_claims_fail_where_votes_are_near_the_number_of_tables() -> None:
    for claim in (falls(OURS, 0.55), is_near_two(OURS, 0.55)):
        assert not claim.holds
        assert "1.28" in claim.reason
    assert not views_agree(OURS, 0.55).holds
    assert not threshold_does_not_matter(OURS, list(TABLE_7_7)).holds
