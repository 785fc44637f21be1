import pytest

from tidings import Event
from tidings.app.demo.compare import (
    FigurePair,
    ListPair,
    ListQuality,
    ScoredFilm,
    SubscriberMatches,
    figures,
    measure,
)
from tidings.app.demo.subscribers import DemoSubscriber, demo_subscribers

SECOND = 1_000_000


@pytest.fixture
def carson() -> DemoSubscriber:
    return next(owner for owner in demo_subscribers() if owner.name == "carson")


def film(seconds: int, genre: str, decade: int = 1990) -> Event:
    return Event(f"e{seconds}", {"genre": genre, "decade": decade}, published_at=seconds)


FILMS = [
    film(0, "romance"),
    film(10, "western"),
    film(20, "drama"),
    film(30, "romance", 1980),
    film(40, "drama", 1970),
]


def test_matches_come_in_order_with_their_scores(carson: DemoSubscriber) -> None:
    matches = SubscriberMatches(carson, FILMS)
    assert matches.between(0, 5) == [
        ScoredFilm(FILMS[0], 0.4),
        ScoredFilm(FILMS[2], 0.7),
        ScoredFilm(FILMS[3], 0.4),
        ScoredFilm(FILMS[4], 0.7),
    ]
    assert matches.between(1, 5, most=1) == [ScoredFilm(FILMS[2], 0.7)]
    assert matches.between(0, 5, most=0) == []
    assert matches.score(FILMS[4]) == 0.7


def test_a_list_is_compared_with_the_first_films_since_the_last_one(carson: DemoSubscriber) -> None:
    matches = SubscriberMatches(carson, FILMS)
    pair = matches.pair([FILMS[2], FILMS[4]], after_us=-1, at_us=40 * SECOND)
    assert pair == ListPair(
        first_come=ListQuality(score=0.55, variety=0.5, age_s=30.0),
        tidings=ListQuality(score=0.7, variety=0.5, age_s=10.0),
    )
    later = matches.pair([FILMS[4]], after_us=20 * SECOND, at_us=40 * SECOND)
    assert later is not None
    assert later.first_come == measure([ScoredFilm(FILMS[3], 0.4)], 40 * SECOND)


def test_lists_of_different_lengths_are_not_compared(carson: DemoSubscriber) -> None:
    matches = SubscriberMatches(carson, FILMS)
    assert matches.pair([FILMS[2], FILMS[4]], after_us=30 * SECOND, at_us=40 * SECOND) is None


def test_figures_are_means_and_ranks_shares_of_the_best_list() -> None:
    pairs = [
        ListPair(ListQuality(1.0, 0.2, 60.0), ListQuality(4.0, 0.8, 10.0)),
        ListPair(ListQuality(3.0, 0.4, 120.0), ListQuality(2.0, 1.0, 30.0)),
    ]
    means = figures(pairs)
    assert means is not None
    assert means.rank == FigurePair(0.5, 0.75)
    assert means.variety == pytest.approx((0.3, 0.9))
    assert means.age_s == FigurePair(90.0, 20.0)
    assert means.to_dict()["rank"] == {"first_come": 0.5, "tidings": 0.75}


def test_there_are_no_figures_without_lists() -> None:
    assert figures([]) is None


def test_scores_of_zero_are_shares_of_zero() -> None:
    none = ListQuality(0.0, 0.0, 0.0)
    means = figures([ListPair(none, none)])
    assert means is not None
    assert means.rank == FigurePair(0.0, 0.0)
