import pyarrow as pa
import pytest

from tidings import Engine, Event
from tidings.app.demo.movies import genres
from tidings.app.demo.state import DemoState, OutcomeBatch
from tidings.app.demo.subscribers import demo_subscribers
from tidings.model.values import time_us


@pytest.fixture
def events(state: DemoState) -> list[Event]:
    return state.events


def test_all_counts_add_up(state: DemoState, batches: list[OutcomeBatch]) -> None:
    delivered = [row for batch in batches for row in batch.rows if row["kind"] == "delivery"]
    assert state.counts() == {
        "published": 400,
        "matches": state.matches,
        "delivered": len(delivered),
        "dead_letters": 2,
        "late": 1,
    }
    assert state.batches == 2
    assert 0 < len(delivered) < state.matches


def test_matches_are_counted(state: DemoState, events: list[Event]) -> None:
    carson = state.stats["carson"]
    liked = [event for event in events if {"drama", "romance"} & {*genres(event)}]
    assert carson.matches == len(liked) == len(state.matches_of("carson").between(0, 400))
    assert (carson.delivered, carson.figures) == (0, None)


def test_lists_are_the_last_k(state: DemoState, batches: list[OutcomeBatch]) -> None:
    for name, stats in state.stats.items():
        rows = [row for batch in batches for row in batch.of("delivery", name)]
        last = {row["event"] for row in rows[-stats.subscriber.k :]}
        assert {listed.sent.film.id for listed in stats.films} == last
        assert [sent.film.id for sent in stats.sent] == [row["event"] for row in rows]
        assert [sent.at_us for sent in stats.sent] == [time_us(row["delivered_at"]) for row in rows]


def test_the_newest_film_comes_first(state: DemoState) -> None:
    for stats in state.stats.values():
        times = [listed.sent.at_us for listed in stats.films]
        assert times == sorted(times, reverse=True)


def test_every_k_deliveries_are_compared(state: DemoState) -> None:
    for stats in state.stats.values():
        k, sent = stats.subscriber.k, stats.sent
        assert stats.listed == len(sent) // k * k
        assert len(stats.lists) <= len(sent) // k
    addison = state.stats["addison"]
    matches = state.matches_of("addison")
    films, at_us = [sent.film for sent in addison.sent[:2]], addison.sent[1].at_us
    assert addison.lists[0] == matches.pair(films, -1, at_us)
    first = matches.between(0, 400, most=2)
    assert addison.lists[0].first_come.score == (first[0].score + first[1].score) / 2


def test_lists_do_not_depend_on_batches(state: DemoState, batches: list[OutcomeBatch]) -> None:
    whole = DemoState(state.subscribers, state.films, [400])
    whole.add(OutcomeBatch(0, [row for batch in batches for row in batch.rows]))
    assert whole.stats == state.stats


def test_what_was_received_is_known(state: DemoState, events: list[Event]) -> None:
    erin = state.stats["erin"]
    received = [event for event in events if erin.received(event)]
    assert {event.id for event in received} == {sent.film.id for sent in erin.sent}


def test_the_reason_names_the_predicates_that_counted(state: DemoState) -> None:
    assert {listed.reason for listed in state.stats["addison"].films} <= {
        f"genre = '{genre}'" for genre in ("comedy", "romance", "drama")
    }
    for listed in state.stats["erin"].films:
        assert set(listed.reason.split(" + ")) <= {
            "votes >= 10000",
            "rating >= 8.5",
            "genre = 'action'",
        }


def test_dramas_by_a_director_are_those_published(films: pa.Table) -> None:
    state = DemoState(demo_subscribers(), films, [films.num_rows])
    assert state.dramas_by("T. Burton") == []
    state.published = films.num_rows
    titles = {film.attributes["title"] for film in state.dramas_by("T. Burton")}
    assert titles == {"Big Fish", "Ed Wood", "Edward Scissorhands"}
    assert {state.rank("carson", film) for film in state.dramas_by("T. Burton")} == {0.5}


def test_stats_have_a_json_form(state: DemoState) -> None:
    stats = state.stats["addison"]
    form = stats.to_dict()
    assert form["delivered"] == stats.delivered
    assert stats.figures is not None
    assert form["quality"] == stats.figures.to_dict()
    assert [listed["event"] for listed in form["list"]] == [
        film.sent.film.id for film in stats.films
    ]
    assert {listed["delivered_at"] for listed in form["list"]} == {"2026-01-01T01:00:00Z"}
    assert state.stats["carson"].to_dict()["quality"] is None


def test_deliveries_are_those_of_the_engine(state: DemoState, events: list[Event]) -> None:
    engine = Engine()
    for owner in demo_subscribers():
        engine.subscribe(owner.subscriber)
        for subscription in owner.subscriptions:
            engine.add(subscription)
    deliveries = engine.publish_many(events)
    for name, stats in state.stats.items():
        expected = {delivery.event for delivery in deliveries if delivery.subscriber == name}
        assert {sent.film.id for sent in stats.sent} == expected
