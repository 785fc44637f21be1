from dataclasses import replace

import pyarrow as pa
import pytest

from tidings.app.demo import first_day
from tidings.app.demo.first_day import CHUNK, FirstDay
from tidings.app.demo.state import DemoState
from tidings.app.demo.subscribers import demo_subscribers


def test_half_an_hour_is_published_at_once(state: DemoState) -> None:
    day = FirstDay(state.subscribers, state.events)
    published = [(day.published, len(deliveries)) for deliveries in day.run()]
    assert [films for films, _ in published] == [CHUNK, 2 * CHUNK, 400]
    assert sum(count for _, count in published) == len(day.deliveries)


def test_the_day_agrees_with_the_stream(state: DemoState, day: FirstDay) -> None:
    assert day.matches == state.matches
    assert day.confirmed(state.stats) == len(day.deliveries) == state.delivered


def test_a_delivery_that_differs_is_not_confirmed(state: DemoState, day: FirstDay) -> None:
    stats = state.stats["erin"]
    sent = list(stats.sent)
    sent[1] = sent[1]._replace(rank=sent[1].rank + 0.1)
    differing = {**state.stats, "erin": replace(stats, sent=tuple(sent))}
    assert day.confirmed(differing) == len(day.deliveries) - 1


def test_the_film_after_the_day_ends_its_last_period(
    films: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_day, "FILMS_PER_DAY", 180)
    addison = [owner for owner in demo_subscribers() if owner.name == "addison"]
    state = DemoState(addison, films.slice(0, 181), [181])
    sent = {}
    for films_published in (180, 181):
        day = FirstDay(addison, state.events[:films_published])
        sent[films_published] = [len(deliveries) for deliveries in day.run()]
    assert sent == {180: [0], 181: [2]}


def test_every_film_of_the_day_can_be_explained(state: DemoState, day: FirstDay) -> None:
    delivered = day.deliveries[0]
    film = state.film(delivered.event)
    assert day.explain(delivered.subscriber, film).delivery == delivered
