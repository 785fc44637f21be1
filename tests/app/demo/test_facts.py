import pyarrow as pa
import pytest

from tidings.app.demo import facts as facts_of_demo
from tidings.app.demo.facts import NotSent, RunFacts, not_sent, person_day
from tidings.app.demo.first_day import FirstDay
from tidings.app.demo.movies import START, title
from tidings.app.demo.state import DemoState
from tidings.app.demo.subscribers import demo_subscribers
from tidings.model.values import parse_time_us

START_US = parse_time_us(START)


def test_the_day_of_a_person_is_that_of_the_stream(state: DemoState) -> None:
    day = person_day(state)
    stats = state.stats["addison"]
    assert (day.owner, day.published, day.is_whole) == (stats.subscriber, 400, False)
    assert len(day.matches) == stats.matches
    assert day.sent == list(stats.sent)
    assert day.seconds_per_match == 4000 / stats.matches


def test_films_after_the_day_are_left_out(
    state: DemoState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facts_of_demo, "FILMS_PER_DAY", 180)
    day = person_day(state)
    assert (day.published, day.is_whole) == (180, True)
    ids = {film.id for film in state.events[:180]}
    assert len(day.sent) == 2
    assert {sent.film.id for sent in day.sent} <= ids
    assert {match.film.id for match in day.matches} <= ids


def test_pings_are_counted_by_hour(state: DemoState) -> None:
    day = person_day(state)
    hours = day.hourly([match.film for match in day.matches])
    assert len(hours) == 24
    assert sum(hours[:2]) == len(day.matches)
    assert hours[0] > hours[1] > 0 == hours[2]


def test_bands_hold_every_match_by_rank(state: DemoState) -> None:
    day = person_day(state)
    assert [band.rank for band in day.bands] == [0.9, 0.8]
    films = [film for band in day.bands for film in band.films]
    assert sorted(film.id for film in films) == sorted(match.film.id for match in day.matches)
    for band in day.bands:
        times = [film.published_us for film in band.films]
        assert times == sorted(times)


def test_the_agreement_names_both_numbers() -> None:
    facts = RunFacts(1.0, confirmed=1_200, first_day=1_234)
    assert "1,200 of the 1,234 deliveries" in facts.agreement
    assert facts.to_dict() == {"first_day": {"delivered": 1_234, "confirmed": 1_200}}


def test_each_cause_has_a_film_in_the_words_of_the_engine(state: DemoState, day: FirstDay) -> None:
    lines = not_sent(state, day)
    causes = []
    for line in lines:
        explanation = day.explain(line.subscriber, line.film)
        assert explanation.delivery is None
        assert explanation.standing is not None
        choice = explanation.standing.choices[-1]
        causes.append(choice.decided_by)
        chosen = [title(state.film(rival.event)) for rival in choice.chosen]
        assert all(name in line.because for name in chosen)
        assert f"of the {choice.candidates} matches from 00:" in line.because
        assert not state.stats[line.subscriber].received(line.film)
    assert causes == ["rank", "age"]  # in these few films, nothing was too similar
    assert "others rank higher" in lines[0].because
    assert "newer events rank at least as high" in lines[1].because


def test_a_film_that_is_too_similar_is_told_with_titles() -> None:
    """Of three comedies, the newest and the one of another decade are sent."""
    seconds, decades = [0, 10, 20, 1800], [1950, 1990, 1990, 1990]
    titles = ["First, The", "Second", "Third", "Next"]
    table = pa.table(
        {
            "id": [f"m{number}" for number in seconds],
            "published_at": [START_US // 1_000_000 + number for number in seconds],
            "title": titles,
            "year": decades,
            "decade": decades,
            "votes": [1, 1, 1, 1],
            "genre": ["comedy"] * 4,
        }
    )
    addison = [owner for owner in demo_subscribers() if owner.name == "addison"]
    state = DemoState(addison, table, [4])
    day = FirstDay(addison, state.events)
    assert len([delivery for deliveries in day.run() for delivery in deliveries]) == 2
    assert not_sent(state, day) == [
        NotSent(
            "addison",
            state.events[1],
            "Number 2 by rank of the 3 matches from 00:00 to 00:30, with 0.9: it was too similar "
            "to Third (1990). Sent instead: The First (1950), rank 0.9 and Third (1990), rank 0.9.",
        )
    ]
