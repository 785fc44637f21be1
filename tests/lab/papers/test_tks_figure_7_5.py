"""The agreement of choices with a reference (TKS 7.3.2)."""

import pytest

from tidings.lab.papers.tks_figure_7_5 import (
    Agreement,
    agreement,
    ranks_agree_less,
    ranks_fall,
    sets_agree,
    with_a_choice,
)


@pytest.mark.parametrize(
    ("choices", "diversity", "rank"),
    [
        ([("abcd", "abcd")], 1, 1),
        ([("abcd", "dcba")], 1, 0),
        ([("abcd", "abxy")], 0.5, 0.5),
        ([("bacd", "abxy")], 0.5, 0),
        ([("ab", "abcd")], 0.5, 0.5),  # what is missing counts
        ([("abcd", "ab")], 1, 1),  # what is more does not
        ([("ab", "ab"), ("cd", "xy")], 0.5, 0.5),
        ([("", "ab"), ("abcdef", "abcdef")], 0.75, 0.75),
        ([], 1, 1),
    ],
)
def test_agreement_is_the_share_of_the_reference_and_of_its_positions(
    choices: list[tuple[str, str]], diversity: float, rank: float
) -> None:
    assert agreement(choices) == (diversity, rank)


@pytest.mark.parametrize("claim", [sets_agree, ranks_agree_less, ranks_fall])
def test_claims_follow_from_the_probabilities(claim) -> None:
    thesis = {0.35: {10: Agreement(0.9, 0.8), 1000: Agreement(0.6, 0.2)}}
    opposite = {0.35: {10: Agreement(0.3, 0.4), 1000: Agreement(0.6, 0.7)}}
    assert claim(thesis).holds
    assert not claim(opposite).holds


def test_windows_from_which_everything_is_chosen_prove_nothing() -> None:
    both = Agreement(0.5, 0.2)
    agreements = {0.35: {10: Agreement(1.0, 1.0), 20: both}}
    assert with_a_choice(agreements, 10) == {0.35: {20: both}}
    assert not sets_agree(with_a_choice(agreements, 10)).holds
