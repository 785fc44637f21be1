"""The diversity probability at the thesis' settings (TKS 7.3.2), on seeded streams."""

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.bench
Load = Callable[[str], Any]


@pytest.mark.parametrize("ranked", ["preferences", "chance"])
@pytest.mark.parametrize("threshold", [0.35, 0.55, 0.85])
def test_lsh_agrees_with_greedy_as_often_as_in_the_thesis(
    module: Load, ranked: str, threshold: float
) -> None:
    agreeing = module("agreeing")
    assert threshold in agreeing.THRESHOLDS
    rows = [agreeing.agreed(ranked, threshold, w) for w in agreeing.WINDOWS]
    assert agreeing.mean(rows, ranked, threshold) >= 0.7
    assert all(row["rank"] <= row["diversity"] <= 1 for row in rows)
    assert rows[0]["diversity"] == 1  # w = k


def test_a_window_holds_only_matching_events(module: Load) -> None:
    agreeing = module("agreeing")
    window = agreeing.by_wishes(0, 30, 1)
    weights = agreeing._shop(0, 1).wishes(agreeing.TUPLES)
    assert len(window) == 30
    for match in window:
        met = [weights[token] for token in match.event.attributes.items() if token in weights]
        assert met
        assert match.rank == pytest.approx(sum(met) / len(met))


def test_the_page_has_the_mean_over_windows(module: Load) -> None:
    row = {"ranked": "chance", "s": 0.35, "shape": (51, 4), "rank": 0.25, "tuned": 0.5}
    rows = [{**row, "w": 10, "diversity": 1.0}, {**row, "w": 20, "diversity": 0.5}]
    lines = module("diversity_page").agreements(rows)
    assert "- ranked by chance, s = 0.35: mean 0.75" in lines
    assert lines[-1] == "| chance | 0.35 | 51 x 4 | 20 | 0.50 | 0.25 | 0.50 |"


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
    module: Load, choices: list[tuple[str, str]], diversity: float, rank: float
) -> None:
    assert module("agreeing").agreement(choices) == (diversity, rank)
