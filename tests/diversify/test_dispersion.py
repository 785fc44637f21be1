"""MAXMIN, MAXSUM and MAXAVG with relevance (TKS 4.2.3.1 and 4.2.3.2)."""

from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.diversify.small import (
    DISTANCES,
    SIGMAS,
    Between,
    by_rank,
    candidate,
    ids,
    jaccard,
    mean,
    names,
    windows,
)

from tidings.diversify.distance import Jaccard
from tidings.diversify.greedy import DivRank, MaxAvg, MaxMin, MaxSum
from tidings.diversify.protocol import Candidate, Distance

Part = type[MaxMin] | type[MaxSum] | type[MaxAvg]
PARTS: dict[Part, Callable[[Iterable[Fraction]], Fraction]] = {
    MaxMin: min,
    MaxSum: lambda weights: sum(weights, Fraction(0)),
    MaxAvg: mean,
}


def weight(one: Candidate, other: Candidate, sigma: float, exact: Between) -> Fraction:
    rank = (Fraction(one.rank) + Fraction(other.rank)) / 2
    return Fraction(sigma) * rank + (1 - Fraction(sigma)) * exact(one.event, other.event)


def choice(
    part: Part, window: list[Candidate], k: int, sigma: float, exact: Between
) -> list[Candidate]:
    """Grow from the best pair by the best weight to the chosen."""

    def pair_order(pair: tuple[Candidate, Candidate]) -> tuple[object, ...]:
        times = [member.event.published_us for member in pair]
        return (-weight(*pair, sigma, exact), -sum(times), -max(times), sorted(names(pair)))

    def value(member: Candidate) -> Fraction:
        return PARTS[part](weight(member, other, sigma, exact) for other in chosen)

    if k == 1 or len(window) < 2:
        return sorted(window, key=by_rank)[:k]
    pair = min(combinations(window, 2), key=pair_order)
    chosen = sorted(pair, key=lambda member: (member.event.published_us, member.event.id))
    while len(chosen) < min(k, len(window)):
        rest = [member for member in window if member not in chosen]
        rest.sort(key=lambda member: (-member.event.published_us, member.event.id))
        chosen.append(max(rest, key=value))
    return chosen


@pytest.mark.parametrize("part", PARTS)
@given(window=windows(), k=st.integers(1, 7), sigma=SIGMAS, judged=DISTANCES)
def test_it_is_the_definition(
    part: Part, window: list[Candidate], k: int, sigma: float, judged: tuple[Distance, Between]
) -> None:
    distance, exact = judged
    chosen = part(sigma=sigma, distance=distance).choose(window, k)
    assert ids(window, chosen) == names(choice(part, window, k, sigma, exact))


@given(windows(), st.integers(1, 7), SIGMAS, DISTANCES)
def test_maxavg_is_maxsum_for_a_fixed_k(
    window: list[Candidate], k: int, sigma: float, judged: tuple[Distance, Between]
) -> None:
    summed = MaxSum(sigma=sigma, distance=judged[0]).choose(window, k)
    assert MaxAvg(sigma=sigma, distance=judged[0]).choose(window, k) == summed


@given(windows(), st.integers(1, 7))
def test_maxmin_of_distances_alone_is_divrank_of_distances_alone(
    window: list[Candidate], k: int
) -> None:
    assert MaxMin(sigma=0).choose(window, k) == DivRank(sigma=0).choose(window, k)


@given(windows(min_size=2), st.integers(2, 4))
def test_maxmin_is_at_least_half_as_good_as_the_best(window: list[Candidate], k: int) -> None:
    """The known guarantee of this greedy choice, for distances that obey the triangle."""

    def smallest(chosen: Iterable[Candidate]) -> Fraction:
        return min(jaccard(one.event, other.event) for one, other in combinations(chosen, 2))

    chosen = MaxMin(sigma=0, distance=Jaccard()).choose(window, k)
    best = max(map(smallest, combinations(window, min(k, len(window)))))
    assert 2 * smallest(window[i] for i in chosen) >= best


@pytest.mark.parametrize(
    ("part", "third"),
    [(MaxMin, "c"), (MaxSum, "d"), (MaxAvg, "d")],
)
def test_a_near_neighbour_hurts_maxmin_only(part: Part, third: str) -> None:
    """From a and b, 1 apart: c is 1/2 and 1/2 away, d is 1/4 and 1."""
    window = [
        candidate("a", 0, x=1, y=1, z=1, w=1),
        candidate("b", 0, x=2, y=2, z=2, w=2),
        candidate("c", 0, x=1, y=1, z=2, w=2),
        candidate("d", 0, x=1, y=1, z=1, w=3),
    ]
    assert ids(window, part(sigma=0).choose(window, 3)) == ["a", "b", third]


@pytest.mark.parametrize("part", [MaxSum, MaxAvg])
def test_ties_do_not_depend_on_the_order_of_additions(part: Part) -> None:
    """From a and b: c is .9 and .3 away, d is .8 and .4, which floats make a little more."""
    texts = {"a": "aaaaaaaaaa", "b": "bbbbbbbbbb", "c": "abbbbbbbcc", "d": "aabbbbbbdd"}
    window = [
        candidate(name, 0, 0 if name == "d" else 1, **dict(zip("0123456789", text, strict=True)))
        for name, text in texts.items()
    ]
    assert ids(window, part(sigma=0).choose(window, 3)) == ["a", "b", "c"]


@pytest.mark.parametrize("part", [MaxSum, MaxAvg])
def test_sums_of_thirds_tie_in_any_order(part: Part) -> None:
    """From a and b: c is 2/3 and 2/3 away, d is 1/3 and 1; the newer one wins."""
    window = [
        candidate("a", 0, 8, x=1, y=1, z=1),
        candidate("b", 0, 9, x=2, y=2, z=2),
        candidate("c", 0, 2, x=1, y=2, z=3),
        candidate("d", 0, 1, x=1, y=1, z=3),
    ]
    assert ids(window, part(sigma=0).choose(window, 3)) == ["a", "b", "c"]
    newer = [*window[:3], candidate("d", 0, 3, x=1, y=1, z=3)]
    assert ids(newer, part(sigma=0).choose(newer, 3)) == ["a", "b", "d"]
