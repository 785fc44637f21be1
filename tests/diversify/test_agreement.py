"""Rank and diversity probability (TKS 7.3.2)."""

import pytest

from tidings.diversify import Agreement, agreement


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
def test_probabilities(choices: list[tuple[str, str]], diversity: float, rank: float) -> None:
    assert agreement(choices) == Agreement(diversity, rank)
