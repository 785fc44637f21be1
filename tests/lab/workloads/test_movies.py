"""The films, subscriptions and orders of PREF 7.1 and 7.2.2."""

from collections import Counter
from itertools import groupby

import numpy as np
import pytest

from tidings.errors import TidingsError
from tidings.lab.papers.film_runs import ranker
from tidings.lab.workloads import movies
from tidings.lab.workloads.movies import (
    BURSTS,
    ORDERS,
    PREFRANKS,
    draw_films,
    film_events,
    film_stream,
    films,
    subscriptions,
)


@pytest.fixture(scope="module")
def rank_of():
    return ranker(subscriptions(20, 7))


@pytest.fixture(scope="module")
def drawn(rank_of):
    return draw_films(rank_of, 200, 93, 7)


def test_there_are_58788_films_with_the_attributes_of_the_paper():
    assert len(films()) == 58_788
    assert {tuple(film) for film in films()} == {
        ("title", "year", "length", "rating", "mpaa", "genre")
    }


def test_films_are_drawn_by_the_seed_without_repetition():
    events = film_events(50, 3)
    assert events == film_events(50, 3)
    assert [event.id for event in events] != [event.id for event in film_events(50, 4)]
    assert len({event.id for event in events}) == 50


def test_subscriptions_are_different_and_preferred_by_how_specific_they_are():
    wishes = subscriptions(200, 5)
    assert wishes == subscriptions(200, 5)
    assert len({wish.where for wish in wishes}) == 200
    prefranks = [wish.prefrank or 0.0 for wish in wishes]
    assert 0.4 < np.mean(prefranks) < 0.6
    assert 0 < min(prefranks) <= max(prefranks) <= 1
    by_size = {
        size: np.mean([w.prefrank or 0.0 for w in wishes if len(attributes(w)) == size])
        for size in PREFRANKS
    }
    assert by_size[1] < by_size[2] < by_size[3]


def attributes(wish):
    return {predicate.attribute for predicate in wish.conjunctions[0]}


def test_attributes_and_values_follow_zipf():
    # Without repetitions popular ones run out, so that many small profiles are counted.
    wishes = [wish for seed in range(40) for wish in subscriptions(3, seed)]
    counted = Counter(name for wish in wishes for name in attributes(wish))
    assert counted["genre"] == max(counted.values())
    assert counted["genre"] > 2 * counted["length"]
    genres = Counter(
        predicate.operand
        for wish in wishes
        for predicate in wish.conjunctions[0]
        if predicate.attribute == "genre"
    )
    assert genres["drama"] == max(genres.values())


def test_exactly_as_many_films_match_as_asked_for(rank_of, drawn):
    assert (len(drawn.matching), len(drawn.others)) == (93, 107)
    assert all(rank is not None for _, rank in drawn.matching)
    for order in ORDERS:
        stream = film_stream(drawn, order, 7)
        assert len({event.id for event in stream}) == 200
        assert sum(rank_of(event) is not None for event in stream) == 93
        assert [event.published_us for event in stream] == [n * 1_000_000 for n in range(200)]
        assert stream == film_stream(drawn, order, 7)


def test_more_films_than_there_are_cannot_match(monkeypatch):
    few = films()[:50]
    monkeypatch.setattr(movies, "films", lambda: few)
    with pytest.raises(TidingsError, match=r"only 0 films match and 5 do not; expected 1 of 6"):
        draw_films(lambda event: None, 6, 1, 7)


def ranks(rank_of, drawn, order):
    ranked = [rank_of(event) for event in film_stream(drawn, order, 7)]
    return [rank for rank in ranked if rank is not None]


def test_orders_are_by_rank(rank_of, drawn):
    best_first = ranks(rank_of, drawn, "best-first")
    assert best_first == sorted(best_first, reverse=True)
    assert ranks(rank_of, drawn, "best-last") == best_first[::-1]
    assert ranks(rank_of, drawn, "random") not in (best_first, best_first[::-1])


def test_the_best_fifth_comes_in_bursts(rank_of, drawn):
    burst = ranks(rank_of, drawn, "burst")
    best = sorted(burst, reverse=True)[: len(burst) // 5]
    runs = [len(list(group)) for high, group in groupby(burst, lambda r: r > best[-1]) if high]
    assert len(runs) <= BURSTS


def test_films_that_match_are_spread_evenly(rank_of, drawn):
    for order in ORDERS:
        stream = film_stream(drawn, order, 7)
        halves = [
            sum(rank_of(event) is not None for event in part)
            for part in (stream[:100], stream[100:])
        ]
        assert abs(halves[0] - halves[1]) <= 1
