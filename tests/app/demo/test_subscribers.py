import pyarrow as pa
import pytest

from tidings import Event, Policy, loads_subscriber, loads_subscription
from tidings.app.demo.subscribers import KIND, Role, cast
from tidings.diversify import DIVERSIFIERS
from tidings.formats.arrow import read_events
from tidings.rank.matcher import Matcher
from tidings.score import SCORERS
from tidings.window import WINDOWS


@pytest.fixture
def roles() -> dict[str, Role]:
    return {role.name: role for role in cast()}


def rank(role: Role, **attributes: object) -> float | None:
    matcher = Matcher([role.subscriber], role.subscriptions)
    found = matcher.matches(Event("e", attributes, published_at=0))
    return found[0].score if found else None


def test_names_are_distinct(roles: dict[str, Role]) -> None:
    ids = [each.id for role in roles.values() for each in role.subscriptions]
    assert len(roles) == len(cast()) == 8
    assert len(set(ids)) == len(ids)


def test_everybody_owns_their_subscriptions_and_prefers_only_these(roles: dict[str, Role]) -> None:
    for role in roles.values():
        own = {each.id for each in role.subscriptions}
        assert {each.subscriber for each in role.subscriptions} == {role.name}
        assert {name for pair in role.subscriber.prefers for name in pair} <= own


def test_forms_read_back_equal(roles: dict[str, Role]) -> None:
    for role in roles.values():
        assert loads_subscriber(role.subscriber.to_dict()) == role.subscriber
        for each in role.subscriptions:
            assert loads_subscription(each.to_dict()).to_dict() == each.to_dict()


def test_every_scorer_and_every_window_is_shown(roles: dict[str, Role]) -> None:
    policies = [role.subscriber.policy for role in roles.values()]
    assert {policy.scorer.name for policy in policies} == set(SCORERS)
    assert {policy.window.name for policy in policies} == set(WINDOWS)
    shown = {policy.diversify.name for policy in policies}
    assert {"none", "divrank", "maxdivrel", "maxdivrel-lsh"} == shown <= set(DIVERSIFIERS)
    assert any(policy.decay != Policy().decay for policy in policies)


def test_addison_and_carson_differ_about_burtons_dramas(roles: dict[str, Role]) -> None:
    both = roles["addison-burton"], roles["carson"]
    assert [rank(role, genre="drama", director="T. Burton") for role in both] == [0.9, 0.5]
    assert [rank(role, genre="drama", director="S. Spielberg") for role in both] == [0.7, 0.7]
    assert [rank(role, genre="comedy", director="T. Burton") for role in both] == [None, None]


def test_big_fish_of_the_catalogue_ranks_so_too(roles: dict[str, Role], films: pa.Table) -> None:
    row = films.filter(pa.compute.field("title") == "Big Fish")
    attributes = next(read_events(row)).attributes  # type: ignore[union-attr]
    assert rank(roles["addison-burton"], **attributes) == 0.9
    assert rank(roles["carson"], **attributes) == 0.5


@pytest.mark.parametrize(
    ("genre", "expected"),
    [("comedy", 0.9), ("romance", 0.9), ("drama", 0.8), ("horror", 0.6), ("western", None)],
)
def test_addison_ranks_genres_as_printed(
    roles: dict[str, Role], genre: str, expected: float | None
) -> None:
    assert rank(roles["addison"], genre=genre) == expected


def test_dana_ranks_by_levels(roles: dict[str, Role]) -> None:
    dana = roles["dana"]
    assert rank(dana, genre=["documentary", "short"], rating=9.0) == 1
    assert rank(dana, genre=["documentary", "short"], rating=5.0) == pytest.approx(2 / 3)
    assert rank(dana, genre="documentary", rating=5.0) == pytest.approx(1 / 3)


def test_films_are_alike_by_genre_and_decade_only() -> None:
    one = Event("a", {"title": "A", "rating": 1, "genre": ("drama", "short"), "decade": 1990}, 0)
    two = Event("b", {"title": "B", "votes": 9, "genre": ("short", "drama"), "decade": 1990}, 0)
    assert KIND.between(one, two) == 0
