"""Diversity-aware choice (PREF Alg. 1 with Def. 11)."""

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
    names,
    overlap,
    square,
    windows,
)

from tidings.diversify.distance import Overlap
from tidings.diversify.greedy import DivRank
from tidings.diversify.none import NoDiversity
from tidings.diversify.protocol import Candidate, Distance
from tidings.model.records import Event

GENRES = ("comedy", "drama", "drama", "drama", "horror", "sci-fi")
FIGURE_5 = [
    candidate(f"e{i}", rank, i, genre=genre)
    for i, (rank, genre) in enumerate(zip((0.9, 0.8, 0.8, 0.8, 0.7, 0.6), GENRES, strict=True), 1)
]


def gain(member: Candidate, chosen: Sequence[Candidate], sigma: float, exact: Between) -> Fraction:
    """sigma * rank + (1 - sigma) * distance to the nearest, every distance computed again."""
    nearest = min(exact(member.event, other.event) for other in chosen)
    return Fraction(sigma) * Fraction(member.rank) + (1 - Fraction(sigma)) * nearest


def pair_order(pair: Sequence[Candidate], sigma: float, exact: Between) -> tuple[object, ...]:
    one, other = pair
    rank = (Fraction(one.rank) + Fraction(other.rank)) / 2
    whole = Fraction(sigma) * rank + (1 - Fraction(sigma)) * exact(one.event, other.event)
    times = [member.event.published_us for member in pair]
    return (-whole, -sum(times), -max(times), sorted(names(pair)))


def choice(window: list[Candidate], k: int, sigma: float, exact: Between) -> list[Candidate]:
    """The text of semantics §5, with nothing remembered from step to step."""
    if k == 1 or len(window) < 2:
        return sorted(window, key=by_rank)[:k]
    pair = min(combinations(window, 2), key=lambda pair: pair_order(pair, sigma, exact))
    chosen = sorted(pair, key=lambda member: (member.event.published_us, member.event.id))
    while len(chosen) < min(k, len(window)):
        rest = [member for member in window if member not in chosen]
        rest.sort(key=lambda member: (-member.event.published_us, member.event.id))
        chosen.append(max(rest, key=lambda member: gain(member, chosen, sigma, exact)))
    return chosen


@given(windows(), st.integers(1, 7), SIGMAS, DISTANCES)
def test_it_is_the_definition(
    window: list[Candidate], k: int, sigma: float, judged: tuple[Distance, Between]
) -> None:
    distance, exact = judged
    chosen = DivRank(sigma=sigma, distance=distance).choose(window, k)
    assert ids(window, chosen) == names(choice(window, k, sigma, exact))


def test_figure_5() -> None:
    chosen = DivRank(sigma=0.5).choose(FIGURE_5, 4)
    assert ids(FIGURE_5, chosen) == ["e1", "e4", "e5", "e6"]


@pytest.mark.parametrize(
    ("chosen", "gains"),
    [([1, 4], {2: 0.4, 3: 0.4, 5: 0.85, 6: 0.8}), ([1, 4, 5], {2: 0.4, 3: 0.4, 6: 0.8})],
)
def test_the_gains_of_figure_5(chosen: list[int], gains: dict[int, float]) -> None:
    """The brute force above is the paper's."""
    before = [FIGURE_5[i - 1] for i in chosen]
    for i, expected in gains.items():
        assert float(gain(FIGURE_5[i - 1], before, 0.5, overlap)) == pytest.approx(expected)


def test_k_1_is_the_highest_rank_whatever_sigma() -> None:
    assert ids(FIGURE_5, DivRank(sigma=0).choose(FIGURE_5, 1)) == ["e1"]


@pytest.mark.parametrize(("times", "pair"), SQUARE_TIES)
def test_ties_between_pairs(times: tuple[int, ...], pair: str) -> None:
    window = square(times)
    assert set(ids(window, DivRank(sigma=0.5).choose(window, 2))) == set(pair)


def test_ties_of_pairs_do_not_depend_on_the_order_of_additions() -> None:
    """Both pairs have .1 * .6 + .9 = .96, but floats make a-b a little more."""
    window = square(times=(0, 0, 1, 1), ranks=(0.4, 0.8, 0.2, 1.0))
    assert ids(window, DivRank(sigma=0.1).choose(window, 2)) == ["c", "d"]


def test_the_older_of_the_pair_comes_first() -> None:
    window = square(times=(3, 2, 0, 0))
    assert ids(window, DivRank(sigma=0.5).choose(window, 2)) == ["b", "a"]


@given(windows(), st.integers(1, 7))
def test_sigma_1_is_the_k_best(window: list[Candidate], k: int) -> None:
    best = ids(window, NoDiversity().choose(window, k))
    chosen = ids(window, DivRank(sigma=1).choose(window, k))
    assert set(chosen[:2]) == set(best[:2])
    assert chosen[2:] == best[2:]


@given(windows(min_size=2), SIGMAS)
def test_a_choice_of_k_is_a_prefix_of_a_choice_of_more(
    window: list[Candidate], sigma: float
) -> None:
    part = DivRank(sigma=sigma)
    whole = part.choose(window, len(window))
    assert all(part.choose(window, k) == whole[:k] for k in range(2, len(window)))


class Counting:
    """A distance that counts its calls."""

    name = "counting"

    def __init__(self) -> None:
        self.asked = 0

    def between(self, one: Event, other: Event) -> float:
        self.asked += 1
        return Overlap().between(one, other)


@pytest.mark.parametrize(("n", "k"), [(6, 2), (6, 4), (9, 3), (5, 5)])
def test_proposition_1_saves_distances(n: int, k: int) -> None:
    """n(n-1)/2 for the pair, 2(n-2) for the next one, then one per candidate (PREF 4.1)."""
    part, counting = DivRank(), Counting()
    object.__setattr__(part, "distance", counting)
    part.choose([candidate(f"e{i}", 0.5, i, x=i % 3) for i in range(n)], k)
    later = sum(n - size for size in range(3, k + 1))
    assert counting.asked <= n * (n - 1) // 2 + 2 * (n - 2) + later
