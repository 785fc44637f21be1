"""Covers by neighbourhoods in plain Python, against independent dominating sets."""

import math
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.diversify import cover as definition
from tests.diversify.cover import ALPHAS, Gain
from tests.diversify.small import DISTANCES, Between, candidate, ids, names, windows
from tests.diversify.test_covers import most_neighbours, relevance_over_crowd

from tidings.diversify.covers import Disc, MaxDivRel
from tidings.diversify.distance import Overlap
from tidings.diversify.plain.cover import cover, disc, maxdivrel, pair_distances
from tidings.diversify.protocol import Candidate, Distance


class Rule(NamedTuple):
    """A plain choice, its part of a policy, and the gain by its definition."""

    choose: Any
    part: Any
    gain: Gain


RULES = [Rule(disc, Disc, most_neighbours), Rule(maxdivrel, MaxDivRel, relevance_over_crowd)]
BOTH = pytest.mark.parametrize("rule", RULES, ids=["disc", "maxdivrel"])

# a-b, b-c and c-d are neighbours at 1/3; any other two are farther apart.
CHAIN = [
    candidate("a", 0.4, 1, x=1, y=1, z=1),
    candidate("b", 0.3, 2, x=2, y=1, z=1),
    candidate("c", 0.2, 3, x=2, y=2, z=1),
    candidate("d", 0.1, 4, x=2, y=2, z=2),
]
THIRD = 1 / 3


@BOTH
@given(windows(min_size=1), st.integers(1, 6), ALPHAS, DISTANCES)
def test_a_choice_is_its_definition(
    rule: Rule,
    window: list[Candidate],
    k: int,
    alpha: Fraction,
    judged: tuple[Distance, Between],
) -> None:
    distance, exact = judged
    k = min(k, len(window))
    chosen = rule.choose(rule.part(alpha=float(alpha), distance=distance), window, k)
    covered = definition.cover(window, alpha, exact, rule.gain)
    assert ids(window, chosen) == names(definition.cut(covered, k))


@BOTH
@given(windows(min_size=1), st.integers(1, 6), DISTANCES)
def test_without_an_alpha_the_largest_that_yields_k_is_used(
    rule: Rule,
    window: list[Candidate],
    k: int,
    judged: tuple[Distance, Between],
) -> None:
    distance, exact = judged
    k = min(k, len(window))
    chosen = rule.choose(rule.part(distance=distance), window, k)
    covered = definition.fitting_cover(window, k, exact, rule.gain)
    assert ids(window, chosen) == names(definition.cut(covered, k))


def test_disc_counts_neighbours_that_are_still_white() -> None:
    """First b and c have two neighbours each, and b has the higher rank; then only d is white."""
    assert ids(CHAIN, disc(Disc(alpha=THIRD), CHAIN, 4)) == ["b", "d"]


def test_maxdivrel_divides_relevance_by_that_around() -> None:
    """Gains .16/.1, .09/.2, .04/.1333 and .01/.0667: a is first, then c, alone with d."""
    assert ids(CHAIN, maxdivrel(MaxDivRel(alpha=THIRD), CHAIN, 4)) == ["a", "c"]


def test_the_neighbours_at_exactly_alpha_are_covered() -> None:
    assert len(disc(Disc(alpha=THIRD), CHAIN, 4)) == 2
    assert len(disc(Disc(alpha=THIRD - 1e-9), CHAIN, 4)) == 4


def test_a_cover_is_cut_to_the_most_relevant_in_order_of_choice() -> None:
    window = [
        candidate("low", 0.1, x=1, y=1),
        candidate("low2", 0.1, x=1, y=1),
        candidate("mid", 0.5, x=2, y=2),
        candidate("high", 0.9, x=3, y=3),
    ]
    assert ids(window, disc(Disc(alpha=0.4), window, 3)) == ["low", "high", "mid"]
    assert ids(window, disc(Disc(alpha=0.4), window, 2)) == ["high", "mid"]


@BOTH
def test_fewer_candidates_than_k_are_all_chosen_by_rank(rule: Rule) -> None:
    assert ids(CHAIN, rule.choose(rule.part(alpha=1), CHAIN[::-1], 5)) == ["d", "c", "b", "a"]
    assert rule.choose(rule.part(), [], 1) == []


@BOTH
def test_duplicates_make_a_choice_smaller_than_k(rule: Rule) -> None:
    window = [candidate("a", 0.2, x=1), candidate("b", 0.9, x=1), candidate("c", 0.1, x=2)]
    assert sorted(ids(window, rule.choose(rule.part(), window, 3))) == ["b", "c"]


def test_distances_are_taken_in_both_directions() -> None:
    distances = pair_distances(CHAIN[:3], Overlap())
    assert distances == {
        (0, 1): THIRD,
        (1, 0): THIRD,
        (1, 2): THIRD,
        (2, 1): THIRD,
        (0, 2): 2 / 3,
        (2, 0): 2 / 3,
    }


def test_of_equal_gains_the_higher_rank_wins_and_then_the_newer() -> None:
    window = [
        candidate("old", 0.5, 1, x=1),
        candidate("new", 0.5, 2, x=2),
        candidate("best", 0.6, 0, x=3),
    ]
    distances = pair_distances(window, Overlap())
    chosen = cover(window, 0.5, distances, lambda *_: math.inf)
    assert ids(window, chosen) == ["best", "new", "old"]
