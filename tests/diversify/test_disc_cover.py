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
    member: Candidate, white: list[Candidate], exact: Between
) -> Fraction | float:
    """r(p)² / sum of r(q) d(p, q); infinite where that is empty or 0."""
    around = sum((Fraction(q.rank) * exact(member.event, q.event) for q in white), Fraction(0))
    return Fraction(member.rank) ** 2 / around if around else math.inf


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
    chosen = part(alpha=float(alpha), distance=distance).choose(window, k)
    assert ids(window, chosen) == names(cut(cover(window, alpha, exact, gain), k))


@PARTS
@given(windows(min_size=1), st.integers(1, 6), DISTANCES)
def test_without_an_alpha_the_largest_that_yields_k_is_used(
    part: Any, gain: Gain, window: list[Candidate], k: int, judged: tuple[Distance, Between]
) -> None:
    distance, exact = judged
    k = min(k, len(window))
    chosen = part(distance=distance).choose(window, k)
    assert ids(window, chosen) == names(cut(fitting_cover(window, k, exact, gain), k))


@pytest.mark.parametrize("part", [Disc, MaxDivRel])
@given(windows(min_size=1), ALPHAS)
def test_a_cover_is_independent_and_dominating(
    part: Any, window: list[Candidate], alpha: Fraction
) -> None:
    chosen = [window[i] for i in part(alpha=float(alpha)).choose(window, len(window))]
    for member in window:
        covering = [other for other in chosen if near(member, other, alpha, overlap)]
        assert covering
        assert member not in chosen or covering == [member]
