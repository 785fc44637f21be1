"""Covers: independent and dominating choices of DisC and MAXDIVREL."""

import math
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.diversify.cover import ALPHAS, Gain, cover, cut, fitting_cover, near
from tests.diversify.small import DISTANCES, Between, candidate, ids, names, overlap, windows

from tidings.diversify import covers
from tidings.diversify.covers import Disc, MaxDivRel
from tidings.diversify.plain.diversifiers import PLAIN
from tidings.diversify.protocol import Candidate, Distance
from tidings.model.records import Event


def most_neighbours(_: Candidate, white: list[Candidate], __: Between) -> Fraction:
    return Fraction(len(white))


def relevance_over_crowd(
    member: Candidate, white: list[Candidate], exact: Between
) -> Fraction | float:
    """r(p)² / sum of r(q) d(p, q); infinite where that is empty or 0."""
    around = sum((Fraction(q.rank) * exact(member.event, q.event) for q in white), Fraction(0))
    return Fraction(member.rank) ** 2 / around if around else math.inf


@pytest.fixture(params=["matrix", "lists", "levels"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Choose from a matrix as few candidates are, or from rows as if they shared few values."""
    if request.param != "matrix":
        monkeypatch.setattr(covers, "LEAST", 0)
        monkeypatch.setattr(covers, "SHARED", math.inf if request.param == "lists" else -1)


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
@pytest.mark.parametrize("alpha", [None, 0.3, 0.7])
@pytest.mark.parametrize("ranks", [(0.0, 1.0), (0.0, 5e-324), (1e249, 1e250)])
def test_many_candidates_are_the_plain_choice(
    part: Any, alpha: float | None, ranks: tuple[float, float]
) -> None:
    """More than fit into a word of counts, with missing attributes and none, and many ties."""
    chance = Random(7)
    rows = [
        {name: chance.randrange(2) for name in "abcdef" if chance.random() < 0.8} for _ in range(30)
    ]
    window = [
        candidate(f"e{number}", chance.choice([*ranks, sum(ranks) / 2]), number % 7, **row)
        for number, row in enumerate(rows)
    ]
    for k in (1, 4, 20):
        chosen = part(alpha=alpha).choose(window, k)
        assert chosen == PLAIN[part.name](part(alpha=alpha), window, k)


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


@pytest.mark.parametrize("part", [Disc, MaxDivRel])
@pytest.mark.parametrize("alpha", [0.3, 0.6, 0.95])
def test_frequent_and_rare_values_count_alike(part: Any, alpha: float) -> None:
    """With hundreds of values, only the most frequent ones are bits of a mask."""
    chance = Random(5)

    def value() -> int:
        return int(chance.paretovariate(0.7)) % 200

    window = [
        Candidate(Event(f"e{number}", {f"a{i}": value() for i in range(6)}, number), rank, rank)
        for number in range(90)
        if (rank := chance.randrange(1, 9) / 8)
    ]
    chosen = part(alpha=alpha).choose(window, 80)
    assert chosen == PLAIN[part.name](part(alpha=alpha), window, 80)


def test_the_middle_represents_both_sides() -> None:
    window = [
        candidate("left", 0.9, x=1, y=1),
        candidate("middle", 0.1, x=1, y=2),
        candidate("right", 0.9, x=2, y=2),
    ]
    assert ids(window, Disc(alpha=0.5).choose(window, 3)) == ["middle"]
    assert ids(window, Disc(alpha=0.4).choose(window, 3)) == ["left", "right", "middle"]


def test_only_white_neighbours_count() -> None:
    """The hub greys n, the only neighbour of far; so far and lone tie, and lone ranks higher."""
    rows = {"hub": (1, 1), "n": (1, 2), "m": (1, 3), "o": (6, 1), "far": (5, 2), "lone": (8, 8)}
    window = [candidate(name, float(name == "lone"), x=x, y=y) for name, (x, y) in rows.items()]
    assert ids(window, Disc(alpha=0.5).choose(window, 6)) == ["hub", "lone", "far"]


def test_the_cut_keeps_the_most_relevant_in_order_of_choice() -> None:
    """All are 1 apart but x and y, so x is chosen first."""
    window = [
        candidate("x", 0.5, a=1, b=1),
        candidate("y", 0.5, a=1, b=2),
        candidate("p", 0.1, c=1),
        candidate("q", 0.9, d=1),
    ]
    part = Disc(alpha=0.7)
    assert ids(window, part.choose(window, 4)) == ["x", "q", "p"]
    assert ids(window, part.choose(window, 2)) == ["x", "q"]
    assert ids(window, part.choose(window, 1)) == ["q"]


@pytest.mark.parametrize("alpha", [1 / 3, 2 / 3])
def test_a_neighbour_at_alpha_counts_even_if_decimals_round_up(alpha: float) -> None:
    other = {1 / 3: {"x": 1, "y": 1, "z": 2}, 2 / 3: {"x": 1, "y": 2, "z": 2}}[alpha]
    window = [candidate("a", 1, x=1, y=1, z=1), candidate("b", 0.5, **other)]
    assert ids(window, Disc(alpha=alpha).choose(window, 2)) == ["a"]


def test_a_worked_choice() -> None:
    """Gains at first: a .81/(.6/2) = 2.7, b .36/((.9 + .8)/2) = .42, c .64/(.6/2) = 2.13."""
    window = [
        candidate("a", 0.9, x=1, y=1),
        candidate("b", 0.6, x=1, y=2),
        candidate("c", 0.8, x=2, y=2),
    ]
    assert ids(window, MaxDivRel(alpha=0.5).choose(window, 3)) == ["a", "c"]


def test_weak_neighbours_raise_a_gain() -> None:
    """Not the highest rank: a has .9²/(.8/2) = 2.025, c has .5²/(.1/2) = 5."""
    window = [
        candidate("a", 0.9, x=1, y=1),
        candidate("b", 0.8, x=1, y=2),
        candidate("c", 0.5, p=1, q=1),
        candidate("d", 0.1, p=1, q=2),
    ]
    assert ids(window, MaxDivRel(alpha=0.7).choose(window, 4)) == ["c", "a"]


@pytest.mark.parametrize(
    ("ranks", "chosen"),
    [
        ({"lone": 0.1, "twin": 0.9, "same": 0.9}, ["same", "lone"]),  # d = 0: infinite, then r
        ({"lone": 0.0, "twin": 0.0, "same": 0.0}, ["same", "lone"]),  # then newer
        ({"lone": 1.0, "twin": 0.5, "same": 0.0}, ["lone", "twin"]),
    ],
)
def test_an_empty_or_zero_denominator_is_infinite(
    ranks: dict[str, float], chosen: list[str]
) -> None:
    window = [
        candidate("lone", ranks["lone"], 0, y=1),
        candidate("twin", ranks["twin"], 1, x=1),
        candidate("same", ranks["same"], 2, x=1),
    ]
    assert ids(window, MaxDivRel(alpha=0.5).choose(window, 3)) == chosen


def test_infinite_beats_every_finite_gain() -> None:
    """a has neighbours and a high rank, w none and a low one."""
    window = [
        candidate("a", 1.0, x=1, y=1),
        candidate("b", 0.1, x=1, y=2),
        candidate("w", 0.01, z=1),
    ]
    assert ids(window, MaxDivRel(alpha=0.7).choose(window, 3)) == ["w", "a"]
    assert ids(window, MaxDivRel(alpha=0.7).choose(window, 1)) == ["a"]


def test_without_an_alpha_the_distances_fit_k() -> None:
    """Two genres of two years: 2 are the genres' best, 3 and 4 need every difference."""
    window = [
        candidate("a", 0.9, genre="drama", actor="X", year=1),
        candidate("b", 0.8, genre="drama", actor="X", year=2),
        candidate("c", 0.7, genre="comedy", actor="Y", year=3),
        candidate("d", 0.6, genre="comedy", actor="Y", year=4),
    ]
    assert ids(window, MaxDivRel().choose(window, 2)) == ["a", "c"]
    assert sorted(ids(window, MaxDivRel().choose(window, 3))) == ["a", "b", "c"]


def test_equal_events_are_never_chosen_together() -> None:
    window = [candidate(name, 0.5, x=1) for name in "abc"]
    assert ids(window, MaxDivRel().choose(window, 2)) == ["a"]


@pytest.mark.parametrize("newest", "ap")
def test_gains_tie_in_any_order_of_distances(newest: str) -> None:
    """1 / (1/3 + 1/3) for a and 1 / (2/3) for p: the newer one is first."""
    rows = [
        ("a", 1.0, {"x": 1, "y": 1, "z": 1}),
        ("b", 1.0, {"x": 1, "y": 1, "z": 2}),
        ("c", 1.0, {"x": 1, "y": 2, "z": 1}),
        ("p", 1.0, {"i": 1, "j": 1, "k": 1}),
        ("q", 1.0, {"i": 1, "j": 2, "k": 2}),
    ]
    window = [
        candidate(name, rank, int(name == newest), **attributes) for name, rank, attributes in rows
    ]
    assert ids(window, MaxDivRel(alpha=2 / 3).choose(window, 5))[0] == newest


@pytest.mark.parametrize("newest", "ap")
def test_gains_tie_in_any_order_of_ranks(newest: str) -> None:
    """1 / (.1/2 + .2/2) for a and 1 / (.3/2) for p, which floats tell apart."""
    rows = [
        ("a", 1.0, {"x": 1, "y": 1}),
        ("b", 0.1, {"x": 1, "y": 2}),
        ("c", 0.2, {"x": 2, "y": 1}),
        ("p", 1.0, {"x": 5, "y": 5}),
        ("q", 0.3, {"x": 5, "y": 6}),
    ]
    window = [
        candidate(name, rank, int(name == newest), **attributes) for name, rank, attributes in rows
    ]
    assert ids(window, MaxDivRel(alpha=0.5).choose(window, 5))[0] == newest


def test_large_ranks_do_not_overflow() -> None:
    window = [candidate("a", 2e200, x=1, y=1), candidate("b", 1e200, x=1, y=2)]
    assert ids(window, MaxDivRel(alpha=0.5).choose(window, 2)) == ["a"]
