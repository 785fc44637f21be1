"""Feeds in arrays against the definitions of semantics §6, recomputed from the whole stream."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from tests.window import reference
from tests.window.reference import Delivered, Publication, Span, Taste
from tests.window.streams import (
    SECOND,
    UNTIL_US,
    count,
    counts,
    durations,
    length,
    match_of,
    moment_of,
    policy,
    spans,
    streams,
)

from tidings.feed.columnar.feeds import TableFeeds
from tidings.policy import Subscriber
from tidings.window import Moment, WindowPart
from tidings.window.continuous import Continuous
from tidings.window.history import History
from tidings.window.jumping import Jumping
from tidings.window.periodic import Periodic
from tidings.window.sliding import Sliding

tastes = st.builds(Taste, k=st.integers(1, 4), rate=st.sampled_from([None, None, 0.1]))


def run(taste: Taste, window: WindowPart, stream: Sequence[Publication]) -> list[Delivered]:
    """Return all deliveries of a stream in arrays, including those due long after it."""
    feeds = TableFeeds()
    feeds.enrol(Subscriber("x", policy(taste, window)))
    delivered = []
    for publication in stream:
        now, matches = moment_of(publication), publication.score is not None
        delivered += feeds.offer_many([(match_of(publication), now)] if matches else [])
        delivered += feeds.advance(now)
    delivered += feeds.advance(Moment(UNTIL_US, stream[-1].sequence if stream else 0))
    assert [d.sequence for d in delivered] == list(range(1, len(delivered) + 1))
    return [Delivered(d.event, round(d.rank, 9), d.position, d.delivered_us) for d in delivered]


@given(streams(), tastes, spans, st.booleans(), st.booleans())
def test_sliding_follows_its_definition(
    stream: list[Publication], taste: Taste, span: Span, leave: bool, wait: bool
) -> None:
    delivered = "leave" if leave else "keep"
    window = Sliding(length(span), count(span), delivered=delivered, wait=wait)
    assert run(taste, window, stream) == reference.sliding(stream, taste, span, leave, wait)


@given(streams(), tastes, spans, st.booleans(), st.booleans())
def test_history_follows_its_definition(
    stream: list[Publication], taste: Taste, span: Span, strict: bool, wait: bool
) -> None:
    window = History(length(span), count(span), strict, wait)
    assert run(taste, window, stream) == reference.history(stream, taste, span, strict, wait)


@given(streams(), tastes, counts, st.booleans())
def test_groups_follow_their_definition(
    stream: list[Publication], taste: Taste, span: Span, wait: bool
) -> None:
    window = Periodic(length(span), count=count(span), wait=wait)
    assert run(taste, window, stream) == reference.periodic(stream, taste, span, 0, wait, UNTIL_US)


@given(streams(), tastes, durations, st.integers(-3, 9), st.booleans())
def test_periods_follow_their_definition(
    stream: list[Publication], taste: Taste, span: Span, origin: int, wait: bool
) -> None:
    window = Periodic(length(span), origin, wait=wait)
    expected = reference.periodic(stream, taste, span, origin * SECOND, wait, UNTIL_US)
    assert run(taste, window, stream) == expected


@given(streams(), tastes, st.integers(1, 6))
def test_a_step_of_one_is_sliding(stream: list[Publication], taste: Taste, size: int) -> None:
    assert run(taste, Jumping(size, 1), stream) == run(taste, Sliding(size), stream)


@given(streams(), tastes, st.none() | st.integers(1, 6), st.booleans())
def test_continuous_follows_its_definition(
    stream: list[Publication], taste: Taste, size: int | None, wait: bool
) -> None:
    expires = None if size is None else Span("matching", size)
    expected = reference.continuous(stream, taste, expires, wait)
    assert run(taste, Continuous(size, wait), stream) == expected


@given(streams(), tastes, spans, st.integers(1, 6), st.booleans(), st.booleans())
def test_jumping_follows_its_definition(
    stream: list[Publication], taste: Taste, span: Span, size: int, leave: bool, wait: bool
) -> None:
    unit = SECOND if span.kind == "time" else 1
    step = Span(span.kind, min(span.size, size * unit))
    delivered = "leave" if leave else "keep"
    window = Jumping(length(span), length(step), count(span), delivered=delivered, wait=wait)
    expected = reference.jumping(
        stream, taste, span, step, leave=leave, wait=wait, until_us=UNTIL_US
    )
    assert run(taste, window, stream) == expected


@given(streams(), tastes, durations, st.integers(1, 4), st.booleans(), st.booleans())
def test_jumping_over_time_by_matches_follows_its_definition(
    stream: list[Publication], taste: Taste, span: Span, size: int, leave: bool, wait: bool
) -> None:
    step, delivered = Span("matching", size), "leave" if leave else "keep"
    window = Jumping(length(span), size, delivered=delivered, wait=wait)
    expected = reference.jumping(
        stream, taste, span, step, leave=leave, wait=wait, until_us=UNTIL_US
    )
    assert run(taste, window, stream) == expected
