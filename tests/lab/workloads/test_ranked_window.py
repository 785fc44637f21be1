"""Windows that are ranked for one subscriber."""

import pytest

from tidings.lab.workloads.catalogue import (
    Category,
    SubscriptionLaw,
    SyntheticCategory,
    View,
    publications,
)
from tidings.lab.workloads.ranked_window import best_matching_window, ranked, subscriptions_of
from tidings.score.graph import Graph


@pytest.fixture(scope="module")
def view() -> View:
    return View("Tea", SyntheticCategory(Category("Tea", 5, 0, 12)).products(80))


def test_ranks_are_those_of_the_preference_graph(view: View) -> None:
    asked = subscriptions_of(view, seed=2, law=SubscriptionLaw(sizes=(2, 3)), count=2)
    events = publications(view, 60, seed=2)
    judge = Graph().prepare(asked, ())
    expected = {event.id: judge.rank(event, asked) for event in events}
    found = {candidate.event.id: candidate.rank for candidate in ranked(events, asked)}
    assert 0 < len(found) < 60
    assert found == {name: rank for name, rank in expected.items() if rank is not None}


def test_a_best_matching_window_is_full_and_in_order(view: View) -> None:
    window = best_matching_window(view, 100, seed=1)
    assert len(window) == 100
    assert min(candidate.rank for candidate in window) > 0
    times = [candidate.event.published_us for candidate in window]
    assert times == sorted(times)
    assert window == best_matching_window(view, 100, seed=1)
    assert window != best_matching_window(view, 100, seed=2)
