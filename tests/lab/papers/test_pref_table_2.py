"""PREF Table 2, at its own size."""

import pytest

from tidings.lab.papers.pref_table_2 import (
    TABLE,
    Checks,
    OverheadParameters,
    Shares,
    checks_of,
    exhibit,
    overhead_is_small,
    profile,
    same_counts,
    scenario,
    siena_checks_roots,
)
from tidings.model.conditions.implication import strictly_covers


@pytest.fixture(scope="module")
def checks():
    return {shares: checks_of(shares, OverheadParameters()) for shares in TABLE}


def test_siena_checks_the_roots_only(checks):
    for shares, counts in checks.items():
        assert counts.siena == TABLE[shares].siena == round((1 - shares.covered) * 100 * 100)


def test_ranking_costs_one_check_per_match_with_a_refinement(checks):
    for shares, counts in checks.items():
        added = round(100 * shares.matching) if shares.covered else 0
        assert counts.pref_siena - counts.siena == added


def test_the_table_is_reproduced_except_for_one_cell(checks):
    """At m = 20 %, c = 50 % the paper has the count of half as many matches."""
    other = [shares for shares, counts in checks.items() if counts != TABLE[shares]]
    assert other == [Shares(0.2, 0.5)]
    claim = same_counts(checks)
    assert not claim.holds
    assert "11 of 12 rows; not for m = 20% and c = 50%" in claim.ours
    assert not exhibit(checks).holds


def test_claims_depend_on_the_counts():
    assert same_counts(TABLE).holds
    assert siena_checks_roots(TABLE).holds
    assert overhead_is_small(TABLE).holds
    other = {**TABLE, Shares(0.2, 0.1): Checks(8000, 9020)}
    assert not siena_checks_roots(other).holds
    assert not overhead_is_small(other).holds


def test_a_profile_has_the_share_of_covered_subscriptions():
    wishes = profile(0.3, 20)
    covered = [
        wish
        for wish in wishes
        if any(strictly_covers(other.conjunctions, wish.conjunctions) for other in wishes)
    ]
    assert (len(wishes), len(covered)) == (20, 6)
    assert sum(event.attributes["topic"] != "other" for event in scenario(0.2, 50)) == 10
