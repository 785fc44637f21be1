"""The seeded workload: the same for the same seed, with every kind of part, and many ties."""

from collections import Counter
from itertools import pairwise

import pytest

from tidings.conditions import Condition
from tidings.policy import Policy
from tidings.testing import DECAYS, DIVERSIFIERS, SCORERS, WINDOWS, workload


def test_the_same_seed_gives_the_same_workload() -> None:
    assert workload(seed=3) == workload(seed=3)
    assert workload(seed=3).events != workload(seed=4).events
    assert workload(seed=3).subscriptions != workload(seed=4).subscriptions


@pytest.mark.parametrize(("events", "subscribers"), [(0, 0), (1, 3), (20, 1)])
def test_a_workload_has_the_given_size(events: int, subscribers: int) -> None:
    made = workload(events=events, subscribers=subscribers)
    assert [event.sequence for event in made.events] == [*range(1, events + 1)]
    assert [owner.id for owner in made.subscribers] == [f"u{n:02d}" for n in range(subscribers)]


def test_more_events_do_not_change_the_first_ones() -> None:
    assert workload(events=20).events == workload(events=60).events[:20]


def test_events_are_in_order_and_times_are_shared() -> None:
    times = [event.published_us for event in workload().events]
    assert times == sorted(times)
    assert any(one == other for one, other in pairwise(times))


def test_events_have_one_or_two_genres_and_sometimes_no_judgement() -> None:
    events = workload().events
    genres = [event.attributes["genre"] for event in events]
    assert {len(each) if isinstance(each, tuple) else 1 for each in genres} == {1, 2}
    assert Counter("good" in event.attributes for event in events).keys() == {False, True}


def test_twelve_subscribers_use_every_window() -> None:
    found = [owner.policy.window for owner in workload().subscribers]
    assert found == [Policy(k=1, window=window).window for window in WINDOWS]


def test_many_subscribers_use_every_part() -> None:
    policies = [owner.policy for owner in workload(subscribers=400).subscribers]
    assert {repr(p.scorer) for p in policies} == {repr(Policy(scorer=s).scorer) for s in SCORERS}
    assert {repr(p.decay) for p in policies} == {repr(Policy(decay=d).decay) for d in DECAYS}
    chosen = {repr(Policy(diversify=each).diversify) for each in DIVERSIFIERS}
    assert {repr(p.diversify) for p in policies} == chosen
    assert {p.k for p in policies} == {1, 2, 3}


def test_each_subscriber_owns_two_to_four_subscriptions() -> None:
    made = workload(subscribers=40)
    owned = Counter(subscription.subscriber for subscription in made.subscriptions)
    assert owned.keys() == {owner.id for owner in made.subscribers}
    assert set(owned.values()) == {2, 3, 4}
    assert len({subscription.id for subscription in made.subscriptions}) == owned.total()


def test_every_subscription_matches_some_events_and_not_others() -> None:
    made = workload(subscribers=40)
    for subscription in made.subscriptions:
        assert isinstance(subscription.where, Condition)
        matched = [subscription.where.holds(event.tokens) for event in made.events]
        assert set(matched) == {False, True}
