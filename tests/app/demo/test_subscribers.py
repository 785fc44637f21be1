import pyarrow as pa
import pytest

from tidings import Event, Policy, loads_subscriber, loads_subscription
from tidings.app.demo.subscribers import GENRE_AND_DECADE, DemoSubscriber, demo_subscribers
from tidings.diversify import DIVERSIFIERS
from tidings.formats.arrow import read_events
from tidings.rank.matcher import Matcher
from tidings.rules import RULES
from tidings.score import SCORERS
from tidings.window import WINDOWS


@pytest.fixture
def subscribers() -> dict[str, DemoSubscriber]:
    return {subscriber.name: subscriber for subscriber in demo_subscribers()}


def rank(subscriber: DemoSubscriber, **attributes: object) -> float | None:
    matcher = Matcher([subscriber.subscriber], subscriber.subscriptions)
    matches = matcher.matches(Event("e", attributes, published_at=0))
    return matches[0].score if matches else None


def test_names_are_distinct(subscribers: dict[str, DemoSubscriber]) -> None:
    ids = [
        subscription.id
        for subscriber in subscribers.values()
        for subscription in subscriber.subscriptions
    ]
    assert len(subscribers) == len(demo_subscribers()) == 10
    assert len(set(ids)) == len(ids)


def test_preferences_are_over_own_subscriptions(subscribers: dict[str, DemoSubscriber]) -> None:
    for subscriber in subscribers.values():
        own = {subscription.id for subscription in subscriber.subscriptions}
        assert {subscription.subscriber for subscription in subscriber.subscriptions} == {
            subscriber.name
        }
        assert {name for pair in subscriber.subscriber.prefers for name in pair} <= own


def test_json_forms_round_trip(subscribers: dict[str, DemoSubscriber]) -> None:
    for subscriber in subscribers.values():
        assert loads_subscriber(subscriber.subscriber.to_dict()) == subscriber.subscriber
        for subscription in subscriber.subscriptions:
            assert loads_subscription(subscription.to_dict()).to_dict() == subscription.to_dict()


def test_every_scorer_and_every_window_is_used(subscribers: dict[str, DemoSubscriber]) -> None:
    policies = [subscriber.subscriber.policy for subscriber in subscribers.values()]
    assert {policy.scorer.name for policy in policies} == set(SCORERS)
    assert {policy.window.name for policy in policies} == set(WINDOWS)
    shown = {policy.diversify.name for policy in policies}
    assert {"none", "divrank", "maxdivrel", "maxdivrel-lsh"} == shown <= set(DIVERSIFIERS)
    assert any(policy.decay != Policy().decay for policy in policies)
    assert {rule.name for policy in policies for rule in policy.rules} == set(RULES)


def test_addison_and_carson_differ_about_burtons_dramas(
    subscribers: dict[str, DemoSubscriber],
) -> None:
    both = subscribers["addison-burton"], subscribers["carson"]
    assert [rank(subscriber, genre="drama", director="T. Burton") for subscriber in both] == [
        0.9,
        0.5,
    ]
    assert [rank(subscriber, genre="drama", director="S. Spielberg") for subscriber in both] == [
        0.7,
        0.7,
    ]
    assert [rank(subscriber, genre="comedy", director="T. Burton") for subscriber in both] == [
        None,
        None,
    ]


def test_big_fish_of_the_catalogue_has_the_same_ranks(
    subscribers: dict[str, DemoSubscriber], films: pa.Table
) -> None:
    row = films.filter(pa.compute.field("title") == "Big Fish")
    attributes = next(read_events(row)).attributes  # type: ignore[union-attr]
    assert rank(subscribers["addison-burton"], **attributes) == 0.9
    assert rank(subscribers["carson"], **attributes) == 0.5


@pytest.mark.parametrize(
    ("genre", "expected"),
    [("comedy", 0.9), ("romance", 0.9), ("drama", 0.8), ("horror", 0.6), ("western", None)],
)
def test_addison_ranks_genres_as_printed(
    subscribers: dict[str, DemoSubscriber], genre: str, expected: float | None
) -> None:
    assert rank(subscribers["addison"], genre=genre) == expected


def test_dana_ranks_by_levels(subscribers: dict[str, DemoSubscriber]) -> None:
    dana = subscribers["dana"]
    assert rank(dana, genre=["documentary", "short"], rating=9.0) == 1
    assert rank(dana, genre=["documentary", "short"], rating=5.0) == pytest.approx(2 / 3)
    assert rank(dana, genre="documentary", rating=5.0) == pytest.approx(1 / 3)


def test_films_are_compared_by_genre_and_decade_only() -> None:
    one = Event("a", {"title": "A", "rating": 1, "genre": ("drama", "short"), "decade": 1990}, 0)
    two = Event("b", {"title": "B", "votes": 9, "genre": ("short", "drama"), "decade": 1990}, 0)
    assert GENRE_AND_DECADE.between(one, two) == 0
