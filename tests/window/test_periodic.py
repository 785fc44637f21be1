"""Periodic delivery (PREF Def. 12): disjoint periods, with a choice at the end of each."""

from datetime import UTC, datetime

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
from tidings.policy import Subscriber
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
