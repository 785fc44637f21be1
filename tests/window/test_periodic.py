"""Periodic delivery (PREF Def. 12): disjoint periods, with a choice at the end of each."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.window import reference
from tests.window.reference import Publication, Span, Taste
from tests.window.streams import (
    SECOND,
    UNTIL_US,
    count,
    counts,
    durations,
    each_step,
    length,
    policy,
    publications,
    ranks,
    run,
    steps,
    streams,
    tastes,
)

from tidings.errors import InvalidPolicy
from tidings.feed.single import Feed
from tidings.model.records import Delivery, Event, Match
from tidings.model.values import parse_time_us
from tidings.policy import Policy, Subscriber
from tidings.window import Moment
from tidings.window.periodic import Periodic


@given(streams(), tastes, durations, st.sampled_from([0, 1, -2, 2.5]), st.booleans())
def test_deliveries_of_durations_are_as_defined(
    stream: list[Publication], taste: Taste, span: Span, origin: float, wait: bool
) -> None:
    window = Periodic(length(span), origin=origin, wait=wait)
    expected = reference.periodic(stream, taste, span, round(origin * SECOND), wait, UNTIL_US)
    assert run(taste, window, stream) == expected


@given(streams(), tastes, counts, st.booleans())
def test_deliveries_of_counts_are_as_defined(
    stream: list[Publication], taste: Taste, span: Span, wait: bool
) -> None:
    window = Periodic(span.size, count=count(span), wait=wait)
    assert run(taste, window, stream) == reference.periodic(stream, taste, span, 0, wait, UNTIL_US)


@given(streams(), tastes, st.integers(1, 5))
def test_a_period_delivers_k_or_all_its_matches(
    stream: list[Publication], taste: Taste, size: int
) -> None:
    matching = sum(publication.score is not None for publication in stream)
    delivered = run(taste, Periodic(size), stream)
    assert len(delivered) == matching // size * min(taste.k, size)


def test_a_period_holds_its_start_and_not_its_end() -> None:
    stream = publications((0, 0.1), (9.999999, 0.9), (10, 0.5), (20, None))
    window = Periodic("10s")
    assert each_step(Taste(k=1), window, stream) == [[], [], ["e2"], ["e3"]]


def test_periods_are_aligned_to_the_origin() -> None:
    stream = publications((0, 0.1), (4, 0.9), (5, 0.5), (15, None))
    window = Periodic("10s", origin="1970-01-01T00:00:05Z")
    assert each_step(Taste(k=1), window, stream) == [[], [], ["e2"], ["e3"]]


def test_a_publication_that_does_not_match_closes_a_period() -> None:
    assert each_step(Taste(k=1), Periodic("2s"), ranks(0.3, None, None)) == [[], [], ["e1"]]
    assert each_step(Taste(k=1), Periodic(2, count="published"), ranks(0.3, None)) == [[], ["e1"]]


def test_fewer_than_k_are_carried_over_to_the_next_period() -> None:
    stream = ranks(0.3, None, 0.1, 0.9, None)
    window = Periodic("2s", wait=True)
    assert each_step(Taste(k=2), window, stream) == [[], [], [], [], ["e4", "e1"]]


def test_a_delivery_describes_its_period() -> None:
    feed = Feed(Subscriber("x", policy(Taste(k=1), Periodic("30m"))))
    assert list(steps(feed, ranks(0.3))) == [[]]
    [delivery] = feed.advance(Moment(1800 * SECOND, 1))
    assert delivery.window == {
        "name": "periodic",
        "start": "1970-01-01T00:00:00Z",
        "end": "1970-01-01T00:30:00Z",
        "size": 1,
    }
    assert delivery.delivered_at == "1970-01-01T00:30:00Z"


@pytest.mark.parametrize("origin", ["noon", float("nan"), None, True])
def test_an_invalid_origin_is_refused(origin: object) -> None:
    with pytest.raises(InvalidPolicy, match="origin"):
        Periodic("30m", origin=origin)


def test_an_origin_needs_a_duration() -> None:
    with pytest.raises(InvalidPolicy, match="origin"):
        Periodic(30, origin=5)


def test_an_origin_may_be_a_datetime_and_has_a_json_form() -> None:
    window = Periodic("30m", origin=datetime(2026, 11, 15, 20, 5, tzinfo=UTC))
    assert window.origin == "2026-11-15T20:05:00Z"


def event_match(name: str, at: str, rank: float) -> Match:
    return Match("x", Event(name, {"id": name}, published_at=at), rank, ("s",))


def digest(window: Periodic, published: dict[str, str], until: str) -> list[str]:
    """Return the delivered events of a policy with k = 1, each with its time."""
    feed, due = Feed(Subscriber("x", Policy(k=1, window=window))), list[Delivery]()
    for number, (name, at) in enumerate(published.items(), start=1):
        due += feed.offer(event_match(name, at, number / 10), Moment(parse_time_us(at), number))
    due += feed.advance(Moment(parse_time_us(until), len(published)))
    return [f"{delivery.event} {delivery.delivered_at}" for delivery in due]


def test_periods_end_at_local_times() -> None:
    window = Periodic(at=["17:30", "08:00"], zone="Europe/Athens")
    published = {
        "a": "2026-11-15T05:59:59Z",
        "b": "2026-11-15T06:00Z",
        "c": "2026-11-15T15:29:59Z",
        "d": "2026-11-15T15:30Z",
    }
    assert digest(window, published, "2026-11-18") == [
        "a 2026-11-15T06:00:00Z",
        "c 2026-11-15T15:30:00Z",
        "d 2026-11-16T06:00:00Z",
    ]


def test_periods_end_on_some_days() -> None:
    window = Periodic(at="08:00", days=["mon", "thu"])
    published = {"a": "2026-11-12T08:00Z", "b": "2026-11-16T07:59Z", "c": "2026-11-16T08:00Z"}
    assert digest(window, published, "2026-11-25") == [
        "b 2026-11-16T08:00:00Z",
        "c 2026-11-19T08:00:00Z",
    ]


def test_a_skipped_time_ends_a_period_after_the_gap_and_a_repeated_one_at_the_first() -> None:
    window = Periodic(at="03:30", zone="Europe/Athens")
    published = {"spring": "2026-03-28T12:00Z", "autumn": "2026-10-24T12:00Z"}
    assert digest(window, published, "2027-01-01") == [
        "spring 2026-03-29T01:00:00Z",
        "autumn 2026-10-25T00:30:00Z",
    ]


def test_a_delivery_describes_its_local_period() -> None:
    feed = Feed(Subscriber("x", Policy(window=Periodic(at="08:00", zone="Europe/Athens"))))
    at = "2026-03-29T00:00Z"
    feed.offer(event_match("e", at, 0.5), Moment(parse_time_us(at), 1))
    [delivery] = feed.advance(Moment(parse_time_us("2026-04-01"), 1))
    assert delivery.window["start"] == "2026-03-28T06:00:00Z"
    assert delivery.window["end"] == "2026-03-29T05:00:00Z"


def test_the_form_of_local_times_is_json() -> None:
    window = Periodic(at=["17:30", "08:00"], days=["fri", "mon"], zone="Asia/Tokyo", wait=True)
    form = Policy(window=window).to_dict()["window"]
    assert form == {
        "name": "periodic",
        "wait": True,
        "at": ["08:00", "17:30"],
        "days": ["mon", "fri"],
        "zone": "Asia/Tokyo",
    }
    assert Policy(window=form).window == window


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "a period needs a length, or local times at which it ends: at"),
        ({"at": []}, "a period needs a length"),
        ({"length": "1d", "at": "08:00"}, "have no length, origin or count"),
        ({"at": "08:00", "origin": 5}, "have no length, origin or count"),
        ({"at": "08:00", "count": "published"}, "have no length, origin or count"),
        ({"length": "1d", "zone": "Asia/Tokyo"}, "days and zone belong to local times: at"),
        ({"length": "1d", "days": ["mon"]}, "days and zone belong to local times: at"),
        ({"at": "noon"}, "at is a time of day such as 07:30, not 'noon'"),
        ({"at": "08:00", "zone": "Tokyo"}, "zone is the name of a time zone"),
        ({"at": "08:00", "days": []}, "days lists days"),
    ],
)
def test_a_period_has_a_length_or_local_times(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidPolicy, match=message):
        Periodic(**parameters)
