"""The set of largest divrank (PREF Def. 10 to 12)."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.diversify.small import (
    DISTANCES,
    SIGMAS,
    SQUARE_TIES,
    Between,
    by_rank,
    candidate,
    ids,
    mean,
    names,
    overlap,
    square,
    windows,
)

from tidings.diversify import DIVERSIFIERS
from tidings.diversify.none import NoDiversity
from tidings.diversify.optimal import Optimal
from tidings.diversify.protocol import Candidate, Distance


def set_rank(chosen: Sequence[Candidate], sigma: float, exact: Between) -> Fraction:
    pairs = combinations([member.event for member in chosen], 2)
    div = mean(exact(one, other) for one, other in pairs)
    rank = mean(Fraction(member.rank) for member in chosen)
    return Fraction(sigma) * rank + (1 - Fraction(sigma)) * div


@given(windows(), st.integers(1, 7), SIGMAS, DISTANCES)
def test_it_is_the_definition(
    window: list[Candidate], k: int, sigma: float, judged: tuple[Distance, Between]
) -> None:
    distance, exact = judged

    def order(chosen: Sequence[Candidate]) -> tuple[object, ...]:
        times = sorted((member.event.published_us for member in chosen), reverse=True)
        newer = [-time for time in times]
        return (-set_rank(chosen, sigma, exact), -sum(times), newer, sorted(names(chosen)))

    best = min(combinations(window, min(k, len(window))), key=order)
    chosen = Optimal(sigma=sigma, distance=distance).choose(window, k)
    assert ids(window, chosen) == names(sorted(best, key=by_rank))


@pytest.mark.parametrize("name", DIVERSIFIERS)
@given(window=windows(), k=st.integers(1, 6))
def test_no_other_diversifier_has_a_larger_divrank(
    name: str, window: list[Candidate], k: int
) -> None:
    other = [window[i] for i in DIVERSIFIERS[name]().choose(window, k)]
    best = [window[i] for i in Optimal(sigma=0.5).choose(window, len(other))]
    if other:
        assert set_rank(best, 0.5, overlap) >= set_rank(other, 0.5, overlap)


@given(windows(), st.integers(1, 7))
def test_sigma_1_is_the_k_best(window: list[Candidate], k: int) -> None:
    assert Optimal(sigma=1).choose(window, k) == NoDiversity().choose(window, k)


@pytest.mark.parametrize(("times", "pair"), SQUARE_TIES)
def test_ties_between_sets(times: tuple[int, ...], pair: str) -> None:
    window = square(times)
    assert set(ids(window, Optimal(sigma=0.5).choose(window, 2))) == set(pair)


def test_it_beats_the_greedy_choice() -> None:
    """Of the far pairs a-b has the smaller ids, but c, d and e are farther from each other."""
    window = [
        candidate("a", 0.0, x=1, y=1, z=1, w=1),
        candidate("b", 0.0, x=2, y=2, z=2, w=2),
        candidate("c", 0.0, x=1, y=1, z=2, w=3),
        candidate("d", 0.0, x=2, y=3, z=1, w=1),
        candidate("e", 0.0, x=1, y=2, z=3, w=2),
    ]
    best = [window[i] for i in Optimal(sigma=0).choose(window, 3)]
    greedy = [window[i] for i in DIVERSIFIERS["divrank"](sigma=0).choose(window, 3)]  # type: ignore[call-arg]
    assert set_rank(best, 0, overlap) > set_rank(greedy, 0, overlap)
