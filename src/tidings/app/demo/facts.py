"""The numbers of the report: one person's day, and the run as a whole."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import Any, Final, NamedTuple

from tidings.app.demo.compare import ScoredFilm
from tidings.app.demo.first_day import FirstDay
from tidings.app.demo.movies import EVERY_S, FILMS_PER_DAY, START, clock, title
from tidings.app.demo.state import DemoState, SentFilm
from tidings.app.demo.subscribers import DemoSubscriber
from tidings.engine.explain import Explanation
from tidings.engine.standing import Cause, Choice
from tidings.model.records import Delivery, Event
from tidings.model.values import SECOND_US, parse_time_us

PERSON: Final = "addison"
"""The subscriber whose day the report describes."""
_HOUR_US: Final = 60 * 60 * SECOND_US
_START_US: Final = parse_time_us(START)
_TRIED: Final = 5
"""The best-known films that are explained until the engine names a cause."""


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
        return {"first_day": {"delivered": self.first_day, "confirmed": self.confirmed}}


class Band(NamedTuple):
    """All matches of one rank in order of publication."""

    rank: float
    films: list[Event]


class PersonDay(NamedTuple):
    """The films that matched for a person on the first day, as far as it was published."""

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
    """A film that matched and was not sent, with the explanation of the engine."""

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
    """Return a well-known film of the first day for each cause of not being sent."""
    by_cause: dict[Cause, list[Event]] = {"rank": [], "age": [], "similarity": []}
    sent = [delivery for delivery in day.deliveries if delivery.subscriber == name]
    delivered = {delivery.event for delivery in sent}
    for match in state.matches_of(name).between(0, day.published):
        if match.film.id not in delivered and (cause := _likely_cause(state, match, sent)):
            by_cause[cause].append(match.film)
    lines = []
    for cause, films in by_cause.items():
        films.sort(key=lambda film: -film.attributes["votes"])
        explained = (day.explain(name, film) for film in films[:_TRIED])
        lines += list(islice(_lines(state, cause, explained), 1))
    return lines


def _likely_cause(state: DemoState, match: ScoredFilm, sent: Sequence[Delivery]) -> Cause | None:
    """Guess what decided against a film, since an explanation takes much longer."""
    due_us = next((to.delivered_us for to in sent if to.delivered_us > match.film.published_us), 0)
    rivals = [to for to in sent if to.delivered_us == due_us]
    if not rivals:
        return None
    if match.score < min(rival.rank for rival in rivals):
        return "rank"
    oldest_us = min(state.film(rival.event).published_us for rival in rivals)
    return "similarity" if match.film.published_us > oldest_us else "age"


def _lines(state: DemoState, cause: Cause, explained: Iterable[Explanation]) -> Iterator[NotSent]:
    """Yield the films for which the engine names this cause, with its words."""
    for explanation in explained:
        choice = explanation.standing.choices[-1] if explanation.standing else None
        if choice is not None and choice.decided_by == cause:
            film = state.film(explanation.event)
            yield NotSent(explanation.subscriber, film, _because(state, choice))


def _because(state: DemoState, choice: Choice) -> str:
    """Return why a film was not chosen, in the words of the engine and with titles."""
    reason = choice.reason
    if nearest := choice.similar_to:
        reason = reason.replace(nearest.event, title(state.film(nearest.event)))
    start, end = (parse_time_us(choice.window[name]) // SECOND_US for name in ("start", "end"))
    period = f"{clock(start, starts=True)} to {clock(end)}"
    chosen = " and ".join(
        f"{title(state.film(rival.event))}, rank {rival.rank:g}" for rival in choice.chosen
    )
    return (
        f"Number {choice.place:,} by rank of the {choice.candidates:,} matches from {period}, with "
        f"{choice.rank:g}: {reason}. Sent instead: {chosen}."
    )
