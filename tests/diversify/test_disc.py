"""DisC diversity (TKS Def. 4.2.8): independent and dominating, most uncovered neighbours first."""

import pytest
from tests.diversify.small import candidate, ids

from tidings.diversify.disc import Disc


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
