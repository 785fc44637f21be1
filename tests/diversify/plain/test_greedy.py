"""Greedy growth in plain Python: the best pair, then one candidate at a time."""

import operator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.diversify.small import (
    DISTANCES,
    SIGMAS,
    SQUARE_TIES,
    Between,
    candidate,
    ids,
    names,
    square,
    windows,
)
from tests.diversify.test_dispersion import choice as dispersed
from tests.diversify.test_divrank import FIGURE_5
from tests.diversify.test_divrank import choice as diverse

from tidings.diversify.dispersion import MaxAvg, MaxMin, MaxSum
from tidings.diversify.distance import Jaccard, Overlap
from tidings.diversify.divrank import DivRank
from tidings.diversify.plain.greedy import (
    GrowthRule,
    divrank,
    grow,
    maxavg,
    maxmin,
    maxsum,
    pair_rank,
)
from tidings.diversify.protocol import Candidate, Distance
from tidings.errors import TidingsError
from tidings.model.records import Event

# On a line: near and far are 1/3 apart, and so are far and odd; near and odd are 2/3 apart.
LINE = [
    candidate("near", 0.0, 1, a=1, b=1, c=1),
    candidate("far", 0.0, 2, a=1, b=1, c=2),
    candidate("odd", 0.0, 3, a=1, b=2, c=2),
    candidate("best", 1.0, 4, a=1, b=1, c=1),
]


class Broken(Jaccard):
    """A distance that is no number from 0 on."""

    def between(self, one: Event, other: Event) -> float:
        return -1.0


@given(windows(), st.integers(1, 7), SIGMAS, DISTANCES)
def test_divrank_is_its_definition(
    window: list[Candidate], k: int, sigma: float, judged: tuple[Distance, Between]
) -> None:
    distance, exact = judged
    chosen = divrank(DivRank(sigma, distance), window, k)
    assert ids(window, chosen) == names(diverse(window, k, sigma, exact))


@pytest.mark.parametrize(("choose", "part"), [(maxmin, MaxMin), (maxsum, MaxSum), (maxavg, MaxAvg)])
@given(windows(), st.integers(1, 7), SIGMAS, DISTANCES)
def test_dispersion_is_its_definition(
    choose: Any,
    part: Any,
    window: list[Candidate],
    k: int,
    sigma: float,
    judged: tuple[Distance, Between],
) -> None:
    distance, exact = judged
    chosen = choose(part(sigma, distance), window, k)
    assert ids(window, chosen) == names(dispersed(part, window, k, sigma, exact))


def test_the_weight_of_a_pair_mixes_mean_rank_and_distance() -> None:
    value = pair_rank(0.25, Overlap())
    assert value(LINE[0], LINE[2]) == pytest.approx(0.75 * 2 / 3)
    assert value(LINE[2], LINE[3]) == pytest.approx(0.25 * 0.5 + 0.75 * 2 / 3)
    assert value(LINE[0], LINE[3]) == pytest.approx(0.25 * 0.5)


def test_figure_5_of_pref() -> None:
    assert ids(FIGURE_5, divrank(DivRank(0.5), FIGURE_5, 4)) == ["e1", "e4", "e5", "e6"]


@pytest.mark.parametrize("choose", [divrank, maxmin, maxsum, maxavg])
@pytest.mark.parametrize(("times", "pair"), SQUARE_TIES)
def test_ties_between_pairs(choose: Any, times: tuple[int, ...], pair: str) -> None:
    window = square(times)
    assert set(ids(window, choose(DivRank(0.5), window, 2))) == set(pair)


@pytest.mark.parametrize("choose", [divrank, maxmin, maxsum, maxavg])
def test_fewer_than_two_are_chosen_by_rank_alone(choose: Any) -> None:
    part = DivRank(0.0, Broken())
    assert choose(part, LINE, 1) == [3]
    assert choose(part, LINE[:1], 5) == [0]
    assert choose(part, [], 5) == []


@pytest.mark.parametrize("choose", [divrank, maxmin, maxsum, maxavg])
def test_all_are_chosen_where_there_are_fewer_than_k(choose: Any) -> None:
    assert sorted(choose(DivRank(0.5), LINE, 9)) == [0, 1, 2, 3]


def test_links_to_the_chosen_are_combined_and_given_to_the_rule_with_their_number() -> None:
    seen = list[tuple[str, float, int]]()

    def value(one: Candidate, links: float, size: int) -> float:
        seen.append((one.event.id, links, size))
        return links

    rule = GrowthRule(
        link=lambda one, other: abs(one.rank - other.rank), combine=operator.add, value=value
    )
    window = [candidate(name, rank) for name, rank in zip("abcd", (0, 1, 4, 9), strict=True)]
    pair_sum = grow(window, 4, lambda one, other: one.rank + other.rank, rule)
    assert ids(window, pair_sum) == ["c", "d", "a", "b"]
    assert seen == [("a", 13.0, 2), ("b", 11.0, 2), ("b", 12.0, 3)]


def test_of_equal_values_the_newest_is_added_and_then_the_smaller_id() -> None:
    window = [
        candidate("old", 0.5, 1, x=3),
        candidate("b", 0.5, 2, x=4),
        candidate("a", 0.5, 2, x=5),
        candidate("one", 0.9, 0, x=1),
        candidate("two", 0.9, 0, x=2),
    ]
    assert ids(window, divrank(DivRank(0.5), window, 5)) == ["one", "two", "a", "b", "old"]


@pytest.mark.parametrize("choose", [divrank, maxmin, maxsum, maxavg])
def test_a_wrong_distance_is_refused(choose: Any) -> None:
    with pytest.raises(TidingsError, match="distance"):
        choose(DivRank(0.5, Broken()), LINE, 2)
