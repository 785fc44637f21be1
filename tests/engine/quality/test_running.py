"""Quality: sums as the stream goes by, equal to what is computed from all of it."""

from statistics import fmean

import pytest

from tidings import Engine, Event, Policy, Sliding, Subscriber, Subscription
from tidings.diversify import diversity
from tidings.diversify.distance import Jaccard, Overlap
from tidings.engine.quality import SPAN, Quality
from tidings.model.records import Delivery, Match
from tidings.testing import workload


def film(name: str, at: float, **attributes: str) -> Event:
    return Event(name, attributes, published_at=at)


def sent(subscriber: str, event: str, rank: float, at_us: int, *matched: str) -> Delivery:
    return Delivery(subscriber, event, rank, 1, {}, matched, 1, at_us)


FILMS = [
    film(f"e{i}", i, genre=genre, director=director)
    for i, (genre, director) in enumerate([("x", "p"), ("x", "q"), ("y", "p"), ("y", "p")])
]


def test_an_empty_stream_has_no_figures() -> None:
    report = Quality().report()
    assert (report.matches, report.delivered) == (0, 0)
    assert set(report.to_dict().values()) == {0, None}


def test_each_figure_by_hand() -> None:
    events = {
        "e1": film("e1", 0, genre="drama", director="x"),
        "e2": film("e2", 1, genre="drama", director="y"),
        "e3": film("e3", 2, genre="horror", director="z"),
    }
    quality = Quality()
    quality.matched(
        [Match("a", events["e1"], 0.5, ("s1",)), Match("a", events["e2"], 0.7, ("s2",))]
    )
    quality.matched(
        [Match("a", events["e3"], 0.9, ("s3",)), Match("b", events["e1"], 0.1, ("s4",))]
    )
    quality.delivered([sent("a", "e1", 0.5, 0, "s1"), sent("b", "e1", 0.1, 0, "s4")], events.get)
    quality.delivered([sent("a", "e2", 0.6, 3_000_000, "s2")], events.get)
    report = quality.report()
    assert (report.matches, report.delivered, report.share) == (4, 3, 0.75)
    assert report.mean_score == pytest.approx(0.55)
    assert report.mean_rank == pytest.approx(0.4)
    assert report.mean_age_s == pytest.approx(2 / 3)
    assert report.diversity == 0.5
    assert report.coverage == 0.75


def test_deliveries_to_one_subscriber_form_a_set_over_any_time() -> None:
    events = {film.id: film for film in FILMS}
    quality = Quality()
    for event_id in events:
        quality.delivered([sent("a", event_id, 0.5, 0)], events.get)
    assert quality.report().diversity == pytest.approx(diversity(FILMS, Overlap()))
    assert quality.report().diversity == pytest.approx(diversity(FILMS[::-1], Overlap()))


def test_the_distance_is_a_parameter_and_a_subscriber_can_be_forgotten() -> None:
    one, other = film("e1", 0, genre="drama", year="1"), film("e2", 0, genre="drama")
    events = {"e1": one, "e2": other}
    quality = Quality(Jaccard())
    quality.delivered([sent("a", "e1", 1, 0), sent("a", "e2", 1, 0)], events.get)
    assert quality.report().diversity == Jaccard().between(one, other) == 0.5
    quality.forget("a")
    quality.delivered([sent("a", "e1", 1, 0)], events.get)
    assert quality.report().diversity == 0.5


def test_unknown_events_count_for_the_other_figures() -> None:
    quality = Quality()
    quality.delivered([sent("a", "gone", 0.4, 5, "s")], lambda _: None)
    report = quality.report()
    assert (report.delivered, report.mean_rank, report.mean_age_s) == (1, 0.4, None)


@pytest.mark.parametrize("feeds", ["plain", "table"])
def test_the_engine_measures_its_whole_stream(feeds: str) -> None:
    work = workload(seed=5, events=60)
    engine = Engine(feeds=feeds)
    for subscriber in work.subscribers:
        engine.subscribe(subscriber)
    for subscription in work.subscriptions:
        engine.add(subscription)
    deliveries = engine.publish_many(work.events) + engine.advance(10_000)
    events = {event.id: event for event in work.events}
    report = engine.quality()
    assert report.delivered == len(deliveries) > 0
    assert report.mean_rank == pytest.approx(fmean(delivery.rank for delivery in deliveries))
    ages = [
        (delivery.delivered_us - events[delivery.event].published_us) / 1e6
        for delivery in deliveries
    ]
    assert report.mean_age_s == pytest.approx(fmean(ages))
    sets: dict[str, list[Event]] = {}
    for delivery in deliveries:
        sets.setdefault(delivery.subscriber, []).append(events[delivery.event])
    apart = [
        Overlap().between(one, other)
        for received in sets.values()
        for i, one in enumerate(received)
        for other in received[max(0, i - SPAN + 1) : i]
    ]
    assert report.diversity == pytest.approx(fmean(apart))
    assert report.share == pytest.approx(len(deliveries) / report.matches)
    assert 0 < (report.coverage or 0) <= 1


def test_a_restored_engine_starts_from_zero() -> None:
    engine = Engine()
    engine.subscribe(Subscriber("a", Policy(k=1, window=Sliding(3))))
    engine.add(Subscription("s", "a", "genre = 'drama'"))
    engine.publish(film("e1", 0, genre="drama"))
    assert engine.quality().delivered == 1
    again = Engine()
    again.restore(engine.snapshot())
    assert again.quality().delivered == 0
