"""MAXDIVREL (TKS Def. 4.2.10, Alg. 4.1)."""

import pytest
from tests.diversify.small import candidate, ids

from tidings.diversify.maxdivrel import MaxDivRel


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
