"""Changes of preferences, and what remains of the top k."""

import numpy as np
import pytest

from tidings.lab.papers.tks_figure_7_5 import Agreement
from tidings.lab.papers.tks_figure_7_6 import (
    changed,
    ranks_do_not,
    sets_remain,
    small_changes_matter_less,
)
from tidings.model.records import Subscription


def test_a_share_of_the_preferences_is_raised_or_lowered() -> None:
    before = [Subscription("s", "a", any=[(f"n = {n}", 0.5) for n in range(400)])]
    (after,) = changed(before, 0.2, 0.5, np.random.default_rng(1))
    weights = [round(part.weight, 9) for part in after.groups[0]]
    assert {*weights} == {0.3, 0.5, 0.7}
    assert 160 < weights.count(0.5) < 240
    assert 70 < weights.count(0.3) < 130
    assert [part.predicate for part in after.groups[0]] == [
        p.predicate for p in before[0].groups[0]
    ]


def test_preferences_stay_positive_and_at_most_one() -> None:
    before = [Subscription("s", "a", any=[(f"n = {n}", 0.5) for n in range(20)])]
    (after,) = changed(before, 0.9, 1.0, np.random.default_rng(1))
    assert {part.weight for part in after.groups[0]} == {0.001, 1.0}


@pytest.mark.parametrize("claim", [sets_remain, ranks_do_not, small_changes_matter_less])
def test_claims_follow_from_the_probabilities(claim) -> None:
    assert claim({10: {0.1: Agreement(0.8, 0.4), 1.0: Agreement(0.5, 0.1)}}).holds
    assert not claim({10: {0.1: Agreement(0.3, 0.3), 1.0: Agreement(0.5, 0.5)}}).holds


def test_a_larger_change_in_between_counts_too() -> None:
    rises = {0.1: Agreement(0.6, 0.1), 0.5: Agreement(0.8, 0.1), 1.0: Agreement(0.5, 0.1)}
    assert not small_changes_matter_less({10: rises}).holds
