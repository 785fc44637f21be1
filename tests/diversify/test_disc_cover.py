"""Choices by neighbourhood, disc and maxdivrel alike, against independent dominating sets."""

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.diversify.cover import ALPHAS, Gain, cover, cut, fitting_cover, near
from tests.diversify.small import DISTANCES, Between, ids, names, overlap, windows

from tidings.diversify.disc import Disc
from tidings.diversify.maxdivrel import MaxDivRel
from tidings.diversify.protocol import Candidate, Distance


def most_neighbours(_: Candidate, white: list[Candidate], __: Between) -> Fraction:
    return Fraction(len(white))


def relevance_over_crowd(
    each: Candidate, white: list[Candidate], exact: Between
) -> Fraction | float:
    """r(p)² / sum of r(q) d(p, q); infinite where that is empty or 0."""
    around = sum((Fraction(q.rank) * exact(each.event, q.event) for q in white), Fraction(0))
    return Fraction(each.rank) ** 2 / around if around else math.inf


PARTS = pytest.mark.parametrize(
    ("part", "gain"), [(Disc, most_neighbours), (MaxDivRel, relevance_over_crowd)]
)


@PARTS
@given(windows(min_size=1), st.integers(1, 6), ALPHAS, DISTANCES)
def test_it_is_the_definition(
    part: Any,
    gain: Gain,
    window: list[Candidate],
    k: int,
    alpha: Fraction,
    judged: tuple[Distance, Between],
) -> None:
    distance, exact = judged
    k = min(k, len(window))
    found = part(alpha=float(alpha), distance=distance).choose(window, k)
    assert ids(window, found) == names(cut(cover(window, alpha, exact, gain), k))


@PARTS
@given(windows(min_size=1), st.integers(1, 6), DISTANCES)
def test_without_an_alpha_it_is_the_largest_that_yields_k(
    part: Any, gain: Gain, window: list[Candidate], k: int, judged: tuple[Distance, Between]
) -> None:
    distance, exact = judged
    k = min(k, len(window))
    found = part(distance=distance).choose(window, k)
    assert ids(window, found) == names(cut(fitting_cover(window, k, exact, gain), k))


@pytest.mark.parametrize("part", [Disc, MaxDivRel])
@given(windows(min_size=1), ALPHAS)
def test_before_the_cut_it_is_independent_and_dominating(
    part: Any, window: list[Candidate], alpha: Fraction
) -> None:
    chosen = [window[i] for i in part(alpha=float(alpha)).choose(window, len(window))]
    for each in window:
        covering = [other for other in chosen if near(each, other, alpha, overlap)]
        assert covering
        assert each not in chosen or covering == [each]
