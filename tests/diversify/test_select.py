"""One choice without a stream: `select`."""

import math
from typing import Any

import pytest

from tidings.diversify import DIVERSIFIERS, Candidate, select
from tidings.diversify.distance import Jaccard
from tidings.diversify.greedy import DivRank
from tidings.errors import InvalidPolicy, TidingsError
from tidings.model.records import Event

EVENTS = [
    Event("a", {"genre": "drama"}, 0),
    Event("b", {"genre": "drama"}, 1),
    Event("c", {"genre": "comedy"}, 2),
]
RANKS = [0.9, 0.8, 0.7]


def test_without_a_diversifier_the_best_are_selected() -> None:
    assert select(EVENTS, RANKS, 2) == [EVENTS[0], EVENTS[1]]


@pytest.mark.parametrize(
    "diversify",
    [
        "divrank",
        {"name": "divrank", "sigma": 0.5},
        {"name": "divrank", "distance": {"name": "overlap", "weights": {"genre": 2}}},
        DivRank(sigma=0.5, distance=Jaccard()),
    ],
)
def test_the_diversifier_is_a_name_a_form_or_a_part(diversify: object) -> None:
    assert select(EVENTS, RANKS, 2, diversify) == [EVENTS[0], EVENTS[2]]


def test_events_come_in_order_of_choice() -> None:
    assert [event.id for event in select(EVENTS, RANKS, 3, "divrank")] == ["a", "c", "b"]
    assert [event.id for event in select(EVENTS, [1, 2, 3], 3)] == ["c", "b", "a"]


@pytest.mark.parametrize("name", DIVERSIFIERS)
def test_the_selection_is_the_choice_of_the_diversifier(name: str) -> None:
    window = [Candidate(event, rank, rank) for event, rank in zip(EVENTS, RANKS, strict=True)]
    chosen = DIVERSIFIERS[name]().choose(window, 2)
    assert select(EVENTS, RANKS, 2, name) == [EVENTS[i] for i in chosen]


def test_no_events_select_nothing() -> None:
    assert select([], [], 3, "optimal") == []


@pytest.mark.parametrize(
    ("ranks", "k", "why"),
    [
        ([0.9], 2, "3 events have 1 ranks"),
        ([0.9, -0.1, 0.5], 2, "the rank of b is at least 0, not -0.1"),
        ([0.9, math.nan, 0.5], 2, "the rank of b is a finite number, not nan"),
        ([0.9, 0.5, math.inf], 2, "the rank of c is a finite number, not inf"),
        (["high", 0.5, 0.5], 2, "the rank of a is a finite number, not 'high'"),
        (RANKS, 0, "k is a whole number of at least 1, not 0"),
        (RANKS, 1.0, "k is a whole number of at least 1, not 1.0"),
    ],
)
def test_bad_ranks_and_k_are_refused(ranks: list[Any], k: Any, why: str) -> None:
    with pytest.raises(TidingsError, match=why):
        select(EVENTS, ranks, k)


@pytest.mark.parametrize(
    ("diversify", "why"),
    [
        ("nome", "unknown diversifier 'nome'; expected one of: none, divrank, optimal"),
        ({"name": "divrank", "sigma": 2}, "diversifier divrank: sigma is between 0 and 1, not 2"),
        ({"sigma": 0.5}, "a diversifier is a name or a form with a name"),
    ],
)
@pytest.mark.parametrize("events", [EVENTS, []])
def test_bad_diversifiers_are_refused(diversify: object, why: str, events: list[Event]) -> None:
    with pytest.raises(InvalidPolicy, match=why):
        select(events, RANKS[: len(events)], 2, diversify)
