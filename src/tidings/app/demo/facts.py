"""The numbers of the report: one person's day, and the run as a whole."""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

from tidings.app.demo.compare import ScoredFilm
from tidings.app.demo.first_day import FirstDay
from tidings.app.demo.movies import EVERY_S, FILMS_PER_DAY, START
from tidings.app.demo.state import DemoState, SentFilm
from tidings.app.demo.subscribers import DemoSubscriber
from tidings.model.records import Event
from tidings.model.values import SECOND_US, parse_time_us

PERSON: Final = "addison"
"""The subscriber whose day the report tells."""
_HOUR_US: Final = 60 * 60 * SECOND_US
_START_US: Final = parse_time_us(START)
_TRIED: Final = 200
"""The best-known films among which those of the report are looked for."""


class RunFacts(NamedTuple):
    """How long the demo took, and how many deliveries of the first day Spark made too."""

    seconds: float
    confirmed: int
    first_day: int

    @property
    def agreement(self) -> str:
        """Whether the engine and Spark agree, in words."""
        both = f"{self.confirmed:,} of the {self.first_day:,} deliveries of the first day"
        return f"The engine in this process and Spark agree on {both}."

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"first_day": self.first_day, "confirmed": self.confirmed}


class Band(NamedTuple):
    """All matches of one rank in order of publication."""

    rank: float
    films: list[Event]


class PersonDay(NamedTuple):
    """What matched for a person on the first day, or as much of it as was published."""

    owner: DemoSubscriber
    published: int
    matches: list[ScoredFilm]
    sent: list[SentFilm]

    @property
    def is_whole(self) -> bool:
        """Whether the day is over."""
        return self.published == FILMS_PER_DAY

    @property
    def seconds_per_match(self) -> float:
        """How many seconds pass from one match to the next, on average."""
        return self.published * EVERY_S / max(1, len(self.matches))

    def hourly(self, films: Sequence[Event]) -> list[int]:
        """Return how many of some films were published in each hour of the day."""
        hours = Counter((film.published_us - _START_US) // _HOUR_US for film in films)
        return [hours[hour] for hour in range(24)]

    @property
    def bands(self) -> list[Band]:
        """The matches by rank, the highest first."""
        ranked = sorted(self.matches, key=lambda match: -match.score)
        return [
            Band(rank, [match.film for match in matches])
            for rank, matches in groupby(ranked, key=lambda match: match.score)
        ]


class NotSent(NamedTuple):
    """A film that matched and was not sent, and what the engine says about it."""

    subscriber: str
    film: Event
    because: str


def person_day(state: DemoState, name: str = PERSON) -> PersonDay:
    """Return the first day of a subscriber, by the deliveries of the stream."""
    published = min(state.published, FILMS_PER_DAY)
    ids = {film.id for film in state.events[:published]}
    stats = state.stats[name]
    sent = [sent for sent in stats.sent if sent.film.id in ids]
    return PersonDay(
        stats.subscriber, published, state.matches_of(name).between(0, published), sent
    )


def not_sent(state: DemoState, day: FirstDay, name: str = PERSON) -> list[NotSent]:
    """Return the best-known films of the first day that matched and were not sent."""
    sent = {delivery.event for delivery in day.deliveries if delivery.subscriber == name}
    matches = state.matches_of(name).between(0, day.published)
    passed = [match.film for match in matches if match.film.id not in sent]
    passed.sort(key=lambda film: -film.attributes["votes"])
    return [NotSent(name, film, str(day.explain(name, film))) for film in passed[:3]]
