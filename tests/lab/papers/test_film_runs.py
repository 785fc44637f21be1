"""Runs of policies over films: what is delivered, and how it is measured."""

from statistics import fmean

import pytest

from tidings.diversify import diversity
from tidings.diversify.distance import Overlap
from tidings.engine.engine import Engine
from tidings.lab.papers.film_runs import (
    KINDS,
    PolicyKey,
    StreamParameters,
    engine_of,
    published,
    ranker,
    stream_runs,
)
from tidings.lab.workloads.movies import draw_films, film_stream, subscriptions
from tidings.policy import Subscriber

PARAMETERS = StreamParameters(60, 28, 12, lengths=(20,), ks=(2, 4))
KEYS = [PolicyKey(kind, 20, 3, sigma) for kind in KINDS for sigma in (1.0, 0.5)]


@pytest.fixture(scope="module")
def wishes():
    return subscriptions(12, 5)


@pytest.fixture(scope="module")
def stream(wishes):
    return film_stream(draw_films(ranker(wishes), 100, 46, 5), "random", 5)


def test_all_policies_in_one_engine_deliver_what_each_delivers_alone(stream, wishes):
    together = published(stream, wishes, KEYS)
    for key in KEYS:
        assert published(stream, wishes, [key]) == {key: together[key]}


def test_outcomes_are_those_of_the_plain_feeds(stream, wishes):
    key = PolicyKey("periodic", 20, 3, 0.5)
    engine = Engine(feeds="plain")
    engine.subscribe(Subscriber("subscriber", key.policy()))
    engine.add_many(wishes)
    deliveries = engine.publish_many(stream)
    outcome = published(stream, wishes, [key])[key]
    assert outcome.delivered == len(deliveries) == 15
    assert outcome.rank == fmean(delivery.rank for delivery in deliveries)
    events = {event.id: event for event in stream}
    lists = [
        [events[delivery.event] for delivery in deliveries[start : start + 3]]
        for start in range(0, 15, 3)
    ]
    assert outcome.diversity == pytest.approx(fmean(diversity(each, Overlap()) for each in lists))
    ages = [delivery.delivered_us - events[delivery.event].published_us for delivery in deliveries]
    assert outcome.age == fmean(ages) / 1e6


def test_with_sigma_one_the_best_are_chosen(stream, wishes):
    rank_of = ranker(wishes)
    key = PolicyKey("periodic", 20, 3, 1.0)
    chosen = engine_of(wishes, [key]).publish_many(stream)
    best = [
        rank
        for start in range(0, 100, 20)
        for rank in sorted(
            (rank_of(event) or 0 for event in stream[start : start + 20]), reverse=True
        )[:3]
    ]
    assert sorted(delivery.rank for delivery in chosen) == sorted(best)


def test_runs_have_every_order_and_policy():
    runs = stream_runs(PARAMETERS, 5, lambda done, steps, label: None)
    assert len(runs.outcomes) == 4 * 3 * 2 * 3
    assert len(runs.of("burst", "sliding", 20, 0.5)) == 2
    assert 0 < runs.mean_rank < 1
    assert len(runs.microseconds) == 3
