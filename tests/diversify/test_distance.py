"""Distances between events, and the diversity and divrank of sets (PREF Def. 7, 8 and 10)."""

import math
from datetime import UTC, datetime
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.diversify.small import DISTANCES, SIGMAS, Between, candidate, mean, windows

from tidings.diversify import diversity, set_divrank
from tidings.diversify.distance import Jaccard, Overlap
from tidings.diversify.protocol import Candidate, Distance
from tidings.errors import InvalidPolicy
from tidings.model.records import Event

BIG_FISH = {"genre": "drama", "director": "Burton", "year": 2003}


def event(**attributes: Any) -> Event:
    return Event("e", attributes, 0)


@pytest.mark.parametrize(
    ("other", "overlap", "jaccard"),
    [
        (BIG_FISH, 0, 0),
        (BIG_FISH | {"year": 2004}, 1 / 3, 1 / 2),
        (BIG_FISH | {"year": 2003.0}, 0, 0),
        (BIG_FISH | {"year": "2003"}, 1 / 3, 1 / 2),
        (BIG_FISH | {"year": datetime(1970, 1, 1, 0, 33, 23, tzinfo=UTC)}, 1 / 3, 1 / 2),
        (BIG_FISH | {"language": "en"}, 1 / 4, 1 / 4),
        ({"genre": "drama"}, 2 / 3, 2 / 3),
        ({"genre": ["drama", "fantasy"], "director": "Burton", "year": 2003}, 1 / 3, 1 / 4),
        ({"writer": "Burton"}, 1, 1),
        ({}, 1, 1),
    ],
)
def test_a_worked_distance(other: dict[str, Any], overlap: float, jaccard: float) -> None:
    one, two = event(**BIG_FISH), event(**other)
    assert Overlap().between(one, two) == pytest.approx(overlap, abs=1e-12)
    assert Jaccard().between(one, two) == pytest.approx(jaccard, abs=1e-12)


@pytest.mark.parametrize("distance", [Overlap(), Overlap({"genre": 0}), Jaccard()])
def test_lists_are_equal_as_sets(distance: Distance) -> None:
    one, other = event(genre=["drama", "comedy", "drama"]), event(genre=["comedy", "drama"])
    assert distance.between(one, other) == 0


@pytest.mark.parametrize("distance", [Overlap(), Jaccard()])
def test_events_without_attributes_are_equal(distance: Distance) -> None:
    assert distance.between(event(), event()) == 0


def test_weights_apply_by_attribute_and_default_to_1() -> None:
    one, other = event(**BIG_FISH), event(**BIG_FISH | {"genre": "comedy"})
    assert Overlap({"genre": 2}).between(one, other) == 2 / 4
    assert Overlap({"genre": 0}).between(one, other) == 0
    assert Overlap({"director": 0.5, "year": 0.5}).between(one, other) == 1 / 2


def test_the_distance_is_0_where_no_attribute_has_any_weight() -> None:
    assert Overlap({"genre": 0}).between(event(genre="a"), event(genre="b")) == 0


@given(windows(min_size=2, max_size=2), DISTANCES)
def test_it_is_the_definition(pair: list[Candidate], judged: tuple[Distance, Between]) -> None:
    distance, exact = judged
    one, other = (member.event for member in pair)
    assert distance.between(one, other) == pytest.approx(float(exact(one, other)), abs=1e-12)
    assert distance.between(one, other) == distance.between(other, one)
    assert distance.between(one, one) == 0


@given(windows(min_size=2, max_size=2), st.integers(1, 9))
def test_only_the_ratio_of_weights_matters(pair: list[Candidate], factor: int) -> None:
    one, other = (member.event for member in pair)
    weights = {"genre": 2.0, "director": 3.0, "year": 0.0}
    scaled = {name: factor * weight for name, weight in weights.items()}
    expected = pytest.approx(Overlap(weights).between(one, other), abs=1e-12)
    assert Overlap(scaled).between(one, other) == expected


@given(windows(min_size=1), SIGMAS, DISTANCES)
def test_diversity_and_divrank_are_the_definitions(
    chosen: list[Candidate], sigma: float, judged: tuple[Distance, Between]
) -> None:
    distance, exact = judged
    events = [member.event for member in chosen]
    div = mean(exact(one, other) for one, other in combinations(events, 2))
    rank = mean(Fraction(member.rank) for member in chosen)
    whole = Fraction(sigma) * rank + (1 - Fraction(sigma)) * div
    assert diversity(events, distance) == round(float(div), 12)
    assert set_divrank(chosen, sigma, distance) == round(float(whole), 12)


def test_one_event_has_diversity_0_and_an_empty_set_divrank_0() -> None:
    alone = candidate("e", 0.8, genre="drama")
    assert diversity([alone.event], Overlap()) == 0
    assert set_divrank([alone], 0.5, Overlap()) == 0.4
    assert set_divrank([], 0.5, Overlap()) == 0


@pytest.mark.parametrize(
    ("weights", "why"),
    [
        ({"genre": -1}, "the weight of genre is at least 0, not -1"),
        ({"genre": math.nan}, "the weight of genre is a finite number, not nan"),
        ({"genre": "high"}, "the weight of genre is a finite number, not 'high'"),
        ([1, 2], r"weights .*not \[1, 2\]"),
    ],
)
def test_bad_weights_are_refused(weights: Any, why: str) -> None:
    with pytest.raises(InvalidPolicy, match=why):
        Overlap(weights)
