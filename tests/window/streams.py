"""Random streams where ties, gaps and equal times are common, and their deliveries."""

from collections.abc import Iterator, Sequence

from hypothesis import strategies as st
from tests.window.reference import Delivered, Publication, Span, Taste

from tidings.diversify.greedy import DivRank
from tidings.diversify.none import NoDiversity
from tidings.feed.single import Feed
from tidings.model.records import Delivery, Event, Match
from tidings.policy import Policy, Subscriber
from tidings.score.decay import Exponential, NoDecay
from tidings.window import Moment, WindowPart

SECOND = 1_000_000
UNTIL_US = 1_000 * SECOND
"""A time after the end of every stream here, when everything due by time has been delivered."""

tastes = st.builds(
    Taste,
    k=st.integers(1, 4),
    sigma=st.sampled_from([None, 0.0, 0.3, 0.5, 1.0]),
    rate=st.sampled_from([None, None, 0.1]),
)
counts = st.builds(Span, st.sampled_from(["matching", "published"]), st.integers(1, 6))
durations = st.builds(Span, st.just("time"), st.integers(1, 6).map(lambda s: s * SECOND))
spans = counts | durations


@st.composite
def streams(draw: st.DrawFn, max_size: int = 14) -> list[Publication]:
    """Events of which some match, with equal times, gaps in time and in sequence numbers.

    The letters of the ids are random, so that the smaller id is not always the older event.
    """
    step = st.tuples(
        st.sampled_from([0, 0, 1, 1, 2, 7]),
        st.sampled_from([1, 1, 1, 2, 4]),
        st.sampled_from("ab"),
        st.sampled_from([None, 0.0, 0.3, 0.4, 0.8, 0.9]),
        st.fixed_dictionaries(
            {"genre": st.sampled_from("cd")}, optional={"director": st.sampled_from("xy")}
        ),
    )
    steps = draw(st.lists(step, min_size=1, max_size=max_size))
    stream, seconds, sequence = [], 0, 0
    for number, (gap, skip, letter, score, attributes) in enumerate(steps):
        seconds, sequence = seconds + gap, sequence + skip
        event = Event(f"{letter}{number}", attributes, published_at=seconds, sequence=sequence)
        stream.append(Publication(event, score))
    return stream


def publications(*rows: tuple[float, float | None], genres: str = "") -> list[Publication]:
    """Write a stream: each row is a time in seconds and a score; the events are e1, e2, ..."""
    return [
        Publication(Event(f"e{n}", {"genre": genre}, published_at=at, sequence=n), score)
        for n, ((at, score), genre) in enumerate(
            zip(rows, genres or "g" * len(rows), strict=True), start=1
        )
    ]


def ranks(*scores: float | None) -> list[Publication]:
    """Write a stream by scores alone, a second apart."""
    return publications(*((float(at), score) for at, score in enumerate(scores)))


def films(*rows: tuple[str, str, float]) -> list[Publication]:
    """Write a stream by genre, director and score, a second apart."""
    return [
        Publication(Event(f"e{n}", {"genre": genre, "director": director}, n, n), score)
        for n, (genre, director, score) in enumerate(rows, start=1)
    ]


def policy(taste: Taste, window: WindowPart) -> Policy:
    """Return the policy of a taste."""
    return Policy(
        k=taste.k,
        decay=NoDecay() if taste.rate is None else Exponential(taste.rate),
        window=window,
        diversify=NoDiversity() if taste.sigma is None else DivRank(taste.sigma),
    )


def length(span: Span) -> int | str:
    """Return the length as users write it."""
    return f"{span.size}us" if span.kind == "time" else span.size


def count(span: Span) -> str:
    """Return the kind of events that the length counts."""
    return "published" if span.kind == "published" else "matching"


def match_of(publication: Publication) -> Match:
    return Match("x", publication.event, publication.score or 0.0, ("s",))


def moment_of(publication: Publication) -> Moment:
    return Moment(publication.us, publication.sequence)


def steps(feed: Feed, stream: Sequence[Publication]) -> Iterator[list[Delivery]]:
    """Drive a feed as an engine does; yield the deliveries of each publication."""
    for publication in stream:
        now, matches = moment_of(publication), publication.score is not None
        offered = feed.offer(match_of(publication), now) if matches else []
        yield offered + feed.advance(now)


def run(taste: Taste, window: WindowPart, stream: Sequence[Publication]) -> list[Delivered]:
    """Return the deliveries of a whole stream, and of the time long after it."""
    feed = Feed(Subscriber("x", policy(taste, window)))
    deliveries = [delivery for step in steps(feed, stream) for delivery in step]
    deliveries += feed.advance(Moment(UNTIL_US, stream[-1].sequence if stream else 0))
    numbers = [delivery.sequence for delivery in deliveries]
    assert numbers == list(range(1, len(deliveries) + 1))
    return [Delivered(d.event, round(d.rank, 9), d.position, d.delivered_us) for d in deliveries]


def each_step(taste: Taste, window: WindowPart, stream: Sequence[Publication]) -> list[list[str]]:
    """Return the ids that each publication delivers."""
    feed = Feed(Subscriber("x", policy(taste, window)))
    return [[delivery.event for delivery in step] for step in steps(feed, stream)]
