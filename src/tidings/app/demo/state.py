"""The state of the demo: statistics per subscriber, next to those of plain publish/subscribe."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tidings.app.demo.subscribers import GENRE_AND_DECADE, DemoSubscriber
from tidings.diversify import diversity
from tidings.engine.explain import Explanation, explain
from tidings.formats.arrow import read_events
from tidings.model.records import Event
from tidings.rank.matcher import Matcher

_CHUNK: Final = 100


class OutcomeBatch(NamedTuple):
    """The rows of `tidings.spark.outcomes` in one micro-batch."""

    number: int
    rows: list[dict[str, Any]]

    def of(self, kind: str, subscriber: str | None = None) -> list[dict[str, Any]]:
        """Return the rows of one kind and one subscriber."""
        return [row for row in self.rows if row["kind"] == kind and row["subscriber"] == subscriber]


class ListedFilm(NamedTuple):
    """A film on the list of a subscriber."""

    position: int
    rank: float
    film: Event
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        title, year = (self.film.attributes[name] for name in ("title", "year"))
        film = {"event": self.film.id, "title": title, "year": year}
        return {"position": self.position, "rank": self.rank, **film, "why": self.reason}


class Comparison(NamedTuple):
    """A figure of plain publish/subscribe, which sends every match, and of Tidings."""

    plain: float
    tidings: float

    def to_dict(self) -> dict[str, float]:
        """Return the JSON form."""
        return {"plain": round(self.plain, 4), "tidings": round(self.tidings, 4)}


@dataclass(frozen=True)
class SubscriberStats:
    """The matches and deliveries of a subscriber so far, and the last k of each.

    `diversities` holds the diversity of both lists at the end of every batch.
    """

    subscriber: DemoSubscriber
    matches: int = 0
    score_sum: float = 0.0
    delivered: frozenset[str] = frozenset()
    rank_sum: float = 0.0
    films: tuple[ListedFilm, ...] = ()
    plain: tuple[Event, ...] = ()
    diversities: tuple[Comparison, ...] = ()

    @property
    def share(self) -> float:
        """The share of matches that was delivered."""
        return len(self.delivered) / self.matches if self.matches else 0.0

    @property
    def mean_ranks(self) -> Comparison:
        """The mean score of all matches, and the mean rank of the deliveries."""
        return Comparison(
            self.score_sum / (self.matches or 1), self.rank_sum / (len(self.delivered) or 1)
        )

    @property
    def diversity(self) -> Comparison:
        """The diversity of the last k matches, and of the last k deliveries."""
        delivered = [listed.film for listed in self.films]
        return Comparison(
            diversity(self.plain, GENRE_AND_DECADE), diversity(delivered, GENRE_AND_DECADE)
        )

    @property
    def mean_diversities(self) -> Comparison:
        """The same, averaged over the batches."""
        batches = len(self.diversities) or 1
        return Comparison(
            sum(pair.plain for pair in self.diversities) / batches,
            sum(pair.tidings for pair in self.diversities) / batches,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; figures are null before the first delivery."""
        return {
            "subscriber": self.subscriber.name,
            "likes": self.subscriber.likes,
            "gets": self.subscriber.gets,
            "matches": self.matches,
            "delivered": len(self.delivered),
            "mean_rank": self.mean_ranks.to_dict() if self.delivered else None,
            "mean_diversity": self.mean_diversities.to_dict() if self.diversities else None,
            "diversity": self.diversity.to_dict() if self.films else None,
            "list": [listed.to_dict() for listed in self.films],
        }


@dataclass
class DemoState:
    """The statistics of all subscribers over `films`, of which batch i publishes `sizes[i]`."""

    subscribers: Sequence[DemoSubscriber]
    films: pa.Table
    sizes: Sequence[int]
    published: int = 0
    batches: int = 0
    late: int = 0
    dead: int = 0
    stats: dict[str, SubscriberStats] = field(init=False)

    def __post_init__(self) -> None:
        self.stats = {owner.name: SubscriberStats(owner) for owner in self.subscribers}
        subscriptions = [
            subscription for owner in self.subscribers for subscription in owner.subscriptions
        ]
        self._matcher = Matcher([owner.subscriber for owner in self.subscribers], subscriptions)
        self._row_of = {name: row for row, name in enumerate(self.films["id"].to_pylist())}

    @property
    def matches(self) -> int:
        """The matches of all subscribers."""
        return sum(stats.matches for stats in self.stats.values())

    @property
    def delivered(self) -> int:
        """The deliveries to all subscribers."""
        return sum(len(stats.delivered) for stats in self.stats.values())

    def counts(self) -> dict[str, int]:
        """Return all totals by name."""
        return {
            "published": self.published,
            "matches": self.matches,
            "delivered": self.delivered,
            "dead_letters": self.dead,
            "late": self.late,
        }

    def add(self, batch: OutcomeBatch) -> None:
        """Add a batch; a thread that reads `stats` meanwhile sees all of it or nothing."""
        published = sum(self.sizes[: batch.number + 1])
        plain = self._last_matches(published)
        self.stats = {
            name: self._updated(stats, batch, plain[name]) for name, stats in self.stats.items()
        }
        self.late += len(batch.of("late"))
        self.dead += len(batch.of("dead"))
        self.published, self.batches = published, batch.number + 1

    def dramas_by(self, director: str) -> list[Event]:
        """Return the published dramas of a director."""
        rows = pc.indices_nonzero(pc.equal(self.films["director"], director)).to_pylist()
        films = [self._read(row, 1)[0] for row in rows if row < self.published]
        return [film for film in films if "drama" in _genres(film)]

    def rank(self, subscriber: str, film: Event) -> float | None:
        """Return the rank of a film for a subscriber."""
        return explain(self._matcher, subscriber, film).rank

    def _updated(
        self, stats: SubscriberStats, batch: OutcomeBatch, plain: tuple[Event, ...]
    ) -> SubscriberStats:
        # A row of kind `account` holds the number of matches as position, their mean score as rank.
        accounts = batch.of("account", stats.subscriber.name)
        deliveries = batch.of("delivery", stats.subscriber.name)
        deliveries.sort(key=lambda row: row["sequence"])
        updated = replace(
            stats,
            matches=stats.matches + sum(row["position"] for row in accounts),
            score_sum=stats.score_sum + sum(row["position"] * row["rank"] for row in accounts),
            delivered=stats.delivered | {row["event"] for row in deliveries},
            rank_sum=stats.rank_sum + sum(row["rank"] for row in deliveries),
            films=self._last_films(stats, deliveries),
            plain=plain,
        )
        # Lists of different lengths are not comparable.
        if len(plain) == len(updated.films) == stats.subscriber.k:
            return replace(updated, diversities=(*stats.diversities, updated.diversity))
        return updated

    def _last_films(
        self, stats: SubscriberStats, deliveries: list[dict[str, Any]]
    ) -> tuple[ListedFilm, ...]:
        """Return the last k deliveries: the newest list first, each list by position."""
        k = stats.subscriber.k
        rows = sorted(deliveries[-k:], key=lambda row: row["position"])
        rows.sort(key=lambda row: row["delivered_at"], reverse=True)
        return (*(self._listed(stats.subscriber, row) for row in rows), *stats.films)[:k]

    def _listed(self, subscriber: DemoSubscriber, row: dict[str, Any]) -> ListedFilm:
        film = self._read(self._row_of[row["event"]], 1)[0]
        explanation = explain(self._matcher, subscriber.name, film)
        return ListedFilm(row["position"], row["rank"], film, reason(explanation, subscriber))

    def _last_matches(self, published: int) -> dict[str, tuple[Event, ...]]:
        """Return the last k matches of each subscriber, newest first."""
        matches: dict[str, list[Event]] = {owner.name: [] for owner in self.subscribers}
        end = published
        while end > 0 and any(len(matches[owner.name]) < owner.k for owner in self.subscribers):
            start = max(0, end - _CHUNK)
            for film in reversed(self._read(start, end - start)):
                for match in self._matcher.matches(film):
                    matches[match.subscriber].append(film)
            end = start
        return {owner.name: tuple(matches[owner.name][: owner.k]) for owner in self.subscribers}

    def _read(self, start: int, size: int) -> list[Event]:
        rows = read_events(self.films.slice(start, size))
        return [film for film in rows if isinstance(film, Event)]


def _genres(film: Event) -> tuple[Any, ...]:
    genre = film.attributes.get("genre", ())
    return genre if isinstance(genre, tuple) else (genre,)


def reason(explanation: Explanation, subscriber: DemoSubscriber) -> str:
    """Return the condition behind a rank: of the best subscription, or all that add to it.

    >>> from tidings.app.demo.subscribers import demo_subscribers
    >>> carson = next(owner for owner in demo_subscribers() if owner.name == "carson")
    >>> film = Event("m1", {"genre": "drama", "director": "T. Burton"}, 0)
    >>> matcher = Matcher([carson.subscriber], carson.subscriptions)
    >>> reason(explain(matcher, "carson", film), carson)
    "genre = 'drama' and director = 'T. Burton'"
    """
    matched = [result for result in explanation.reasons if result.matched]
    if subscriber.subscriber.policy.scorer.partial:
        return " + ".join(predicate for result in matched for predicate in result.holds)
    return " and ".join(
        next(result.holds for result in matched if result.score == explanation.rank)
    )
