"""Exponents of the relevance of chosen events, and what is claimed of them."""

import math

import pytest

from tidings.lab.papers.tks_table_7_11 import (
    TABLE,
    covers_fall,
    maxdivrel_is_smallest,
    maxmin_grows,
    maxmin_is_largest,
    pooled_exponent,
)

CLAIMS = (maxmin_is_largest, maxmin_grows, covers_fall, maxdivrel_is_smallest)


def test_the_exponent_is_pooled_over_all_choices() -> None:
    assert pooled_exponent([1, 1, math.e]) == pytest.approx(4)
    assert pooled_exponent([1, math.e, 1, math.e**3]) == pytest.approx(2)


@pytest.mark.parametrize("claim", CLAIMS)
def test_claims_hold_for_the_thesis_and_not_for_the_opposite(claim) -> None:
    assert claim(TABLE).holds
    opposite = {k: {"MAXMIN": 1.0, "DisC": 2 + k / 100, "MAXDIVREL": 3 + k / 100} for k in TABLE}
    assert not claim(opposite).holds
