"""Quality: sums as the stream goes by, equal to what is computed from all of it."""

from dataclasses import replace
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.diversify.small import large_windows

from tidings import Continuous, Engine, Policy, Quiet, Quota, Sliding, Subscriber, Subscription
from tidings.diversify import Distance, diversity
from tidings.diversify.distance import Jaccard, Overlap
from tidings.diversify.protocol import Candidate
from tidings.engine.quality import (
    SPAN,
    CompiledSetDiversity,
    NumberedNames,
    PlainSetDiversity,
    Quality,
    make_set_diversity,
    measure_sets,
)
from tidings.errors import TidingsError
from tidings.feed.columnar.id_tables import EnrolledSubscribers
from tidings.model.records import Delivery, Event, Match
from tidings.rules import Verdict
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
    assert report.dropped_by == {}
    assert {value for value in report.to_dict().values() if value != {}} == {0, None}


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


STEPS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 11), st.sampled_from("gggggft")), max_size=40
)
DISTANCES = st.sampled_from([Overlap(), Jaccard(), Overlap({"a": 2.5})])


@given(large_windows(min_size=12, max_size=12), STEPS, DISTANCES, st.integers(2, 4))
def test_the_kernel_equals_the_plain_version(
    window: list[Candidate], steps: list[tuple[str, int, str]], distance: Distance, span: int
) -> None:
    """Deliveries, subscribers that leave, and totals in between."""
    fast, plain = CompiledSetDiversity(distance, span), PlainSetDiversity(distance, span)
    for name, number, what in steps:
        for sets in (fast, plain):
            if what == "g":
                sets.add(name, window[number].event)
            if what == "f":
                sets.forget(name)
        if what == "t":
            same(fast, plain)
    same(fast, plain)
    assert len(fast._hashes) == len(fast._slots) <= 3 * (span - 1)


@given(large_windows(min_size=12, max_size=12), STEPS, st.integers(2, 4))
def test_all_deliveries_measured_at_once_equal_those_measured_one_by_one(
    window: list[Candidate], steps: list[tuple[str, int, str]], span: int
) -> None:
    events, plain = [member.event for member in window], PlainSetDiversity(Overlap(), span)
    for name, number, _ in steps:
        plain.add(name, events[number])
    subscribers = np.array(["abc".index(name) for name, _, _ in steps], np.int64)
    numbers = np.array([number for _, number, _ in steps], np.int64)
    sums = measure_sets(subscribers, numbers, events, 3, span)
    for row, name in enumerate("abc"):
        assert sums[row].tolist() == pytest.approx(list(plain.of(name)))


@given(
    large_windows(min_size=12, max_size=12),
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 10), st.sampled_from("mmmgft"))),
)
def test_deliveries_by_number_equal_those_by_name(
    window: list[Candidate], steps: list[tuple[str, int, str]]
) -> None:
    """Numbers are those of enrolled subscribers: one who leaves may come back by another."""
    events, enrolled = [member.event for member in window], EnrolledSubscribers()
    fast, plain = CompiledSetDiversity(Overlap(), 3), PlainSetDiversity(Overlap(), 3)
    for name, place, what in steps:
        if what == "m":
            both = {name: place, "c": place + 1}
            numbers = [
                enrolled.number(one) if one in enrolled else enrolled.add(one) for one in both
            ]
            names = NumberedNames(enrolled.names, enrolled.generation)
            places = np.array([*both.values()])
            for sets in (fast, plain):
                sets.add_many(names, np.array(numbers), events, places)
        elif what == "t":
            same(fast, plain)
        else:
            for sets in (fast, plain):
                if what == "g":
                    sets.add(name, events[place])
                else:
                    sets.forget(name)
            if what == "f" and name in enrolled:
                enrolled.remove(name)
    same(fast, plain)


def test_a_row_is_given_once_after_all_subscribers_left() -> None:
    events, enrolled = [Event(f"e{n}", {"a": n}, 0) for n in range(3)], EnrolledSubscribers()
    fast, plain = CompiledSetDiversity(Overlap(), 3), PlainSetDiversity(Overlap(), 3)

    def deliver() -> None:
        numbers = np.array([enrolled.add("a")])
        names = NumberedNames(enrolled.names, enrolled.generation)
        for sets in (fast, plain):
            sets.add_many(names, numbers, events, np.array([0]))

    deliver()
    for sets in (fast, plain):
        sets.forget("a")
    enrolled.remove("a")
    deliver()
    for sets in (fast, plain):
        sets.add("b", events[1])
    same(fast, plain)


def same(fast: CompiledSetDiversity, plain: PlainSetDiversity) -> None:
    pairs = [(fast.of(name), plain.of(name)) for name in "abc"]
    for one, other in [(fast.total(), plain.total()), *pairs]:
        assert one.pairs == other.pairs
        assert one.sum == pytest.approx(other.sum)


@given(large_windows(min_size=2, max_size=6), DISTANCES)
def test_set_diversity_is_definition_8_for_one_subscriber(
    window: list[Candidate], part: Distance
) -> None:
    events = [member.event for member in window]
    sets = make_set_diversity(part)
    for event in events:
        sets.add("a", event)
    apart, pairs = sets.total()
    assert pairs == len(events) * (len(events) - 1) // 2
    assert apart / pairs == pytest.approx(diversity(events, part))


def test_many_subscribers_and_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidings.engine.quality.FLUSH", 7)
    fast, plain = CompiledSetDiversity(Overlap(), 3), PlainSetDiversity(Overlap(), 3)
    for i in range(200):
        event = Event(f"e{i}", {"x": i % 3, "y": i % 7}, i)
        for sets in (fast, plain):
            sets.add(f"p{i * i % 31}", event)
            sets.add(f"p{i % 5}", event)
            if i % 20 == 0:
                sets.forget(f"p{i % 5}")
    same(fast, plain)
    assert len(fast._hashes) < 100


def test_a_user_defined_distance_is_called() -> None:
    class Half(Overlap):
        def between(self, one: Any, other: Any) -> float:
            return 0.25

    sets = make_set_diversity(Half())
    assert isinstance(sets, PlainSetDiversity)
    for i in range(3):
        sets.add("a", Event(f"e{i}", {}, i))
    assert sets.total() == (0.75, 3)
    sets.forget("nobody")
    CompiledSetDiversity(Overlap()).forget("nobody")


def test_a_span_below_two_is_refused() -> None:
    with pytest.raises(TidingsError, match="span"):
        make_set_diversity(Overlap(), 1)


def test_rules_and_pauses_are_counted() -> None:
    quality = Quality()
    quality.judged(
        [
            Verdict("e1", "quota", "held", 0, "", 5),
            Verdict("e2", "different", "dropped", 0, ""),
            Verdict("e1", "quota", "released", 5, ""),
            Verdict("e3", "quota", "dropped", 6, ""),
        ]
    )
    quality.dropped(2, "pause")
    quality.dropped(0, "never")
    report = quality.report()
    assert (report.held, report.released, report.dropped) == (1, 1, 4)
    assert report.to_dict()["dropped_by"] == {"different": 1, "pause": 2, "quota": 1}


@pytest.mark.parametrize("feeds", ["plain", "table"])
@pytest.mark.parametrize("rules", [[], [Quota(1)]])
def test_what_replaced_rules_release_and_drop_counts_at_once(feeds: str, rules: list[Any]) -> None:
    engine = Engine(feeds=feeds)
    night = Policy(k=2, window=Continuous("1h"), diversify="divrank", rules=[Quiet("00:00")])
    engine.subscribe(Subscriber("ann", night))
    engine.add(Subscription("s", "ann", where="true"))
    engine.publish_many([Event(f"e{n}", {"n": n}, published_at=n) for n in range(3)])
    before = engine.quality()
    assert (before.held, before.released, before.dropped) == (3, 0, 0)
    engine.replace(Subscriber("ann", replace(night, rules=rules)))
    report = engine.quality()
    assert (report.held, report.released, report.dropped) == (3, 2, 1)
    assert report.dropped_by == {"quiet": 1}


@pytest.mark.parametrize("feeds", ["plain", "table"])
def test_the_engine_counts_what_its_rules_do(feeds: str) -> None:
    engine = Engine(feeds=feeds)
    rules = [Quota(2, per="10s", pick="first"), Quiet("00:00:05", "00:00:20")]
    engine.subscribe(Subscriber("ann", Policy(rules=rules)))
    engine.subscribe(Subscriber("bob"))
    for name in ("ann", "bob"):
        engine.add(Subscription(name, name, where="true"))
    engine.publish_many([Event(f"e{n}", {}, published_at=2 * n) for n in range(6)])
    assert engine.quality().dropped_by == {"quota": 3}
    assert (engine.quality().held, engine.quality().released) == (1, 0)
    engine.advance(20)
    assert (engine.quality().held, engine.quality().released) == (1, 1)
