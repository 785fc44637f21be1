"""Exact matching (RPS): all predicates hold, and the subscription's own score counts."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.model.records import Event, Subscription
from tidings.score.exact import Exact

BIG_FISH = Event("e1", {"genre": ("drama", "fantasy"), "year": 2003}, 0)


def score(where: str, own: float | None = None) -> float | None:
    subscription = Subscription("s1", "addison", where=where, score=own)
    return Exact().prepare([subscription], []).score(BIG_FISH, subscription)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("genre = 'drama' and year >= 2003", 12.5),
        ("genre = 'drama' and year > 2003", None),
        ("genre = 'drama' and title = 'Big Fish'", None),
        ("genre = 'horror' or year = 2003", 12.5),
        ("genre = 'drama' or year = 2003", 12.5),
    ],
)
def test_the_score_is_the_subscriptions_own_if_all_predicates_hold(
    where: str, expected: float | None
) -> None:
    assert score(where, 12.5) == expected


def test_without_a_score_it_is_one_and_zero_stays_zero() -> None:
    assert score("year = 2003") == 1
    assert score("year = 2003", 0) == 0


PREDICATES = st.sets(st.sampled_from("abcd"), min_size=1)
SUBSCRIPTIONS = st.lists(st.tuples(PREDICATES, st.none() | st.integers(0, 3)), max_size=4)


@given(SUBSCRIPTIONS, st.sets(st.sampled_from("abcd")))
def test_the_rank_of_a_subscriber_is_its_best_matching_score(
    written: list[tuple[set[str], int | None]], true: set[str]
) -> None:
    subscriptions = [
        Subscription(f"s{n}", "x", where=" and ".join(f"{name} = 1" for name in names), score=own)
        for n, (names, own) in enumerate(written)
    ]
    event = Event("e", dict.fromkeys(true, 1), 0)
    scores = [1 if own is None else own for names, own in written if names <= true]
    ranker = Exact().prepare(subscriptions, [])
    assert ranker.rank(event, subscriptions) == max(scores, default=None)


@pytest.mark.parametrize(("state", "expected"), [("active", None), ("inactive", 1), ("dead", 1)])
def test_only_active_predicates_must_hold(state: Any, expected: float | None) -> None:
    subscription = Subscription(
        "s1", "bob", any=[["year = 2003", 1], ["genre = 'horror'", 1, state]]
    )
    assert Exact().score(BIG_FISH, subscription) == expected
