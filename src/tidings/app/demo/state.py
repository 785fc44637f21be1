"""The state of the demo: what each subscriber was sent so far, and how good its lists are."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pyarrow as pa

from tidings.app.demo.compare import Figures, ListPair, SubscriberMatches, figures
from tidings.app.demo.movies import genres
from tidings.app.demo.subscribers import DemoSubscriber, plain_engine
from tidings.engine.explain import Explanation
from tidings.formats.arrow import read_events
from tidings.model.records import Delivery, Event
from tidings.model.values import format_time, time_us


class OutcomeBatch(NamedTuple):
    """The rows of `tidings.spark.outcomes` in one micro-batch."""

    number: int
    rows: list[dict[str, Any]]

    def of(self, kind: str, subscriber: str | None = None) -> list[dict[str, Any]]:
        """Return the rows of one kind and one subscriber."""
        return [row for row in self.rows if row["kind"] == kind and row["subscriber"] == subscriber]


class SentFilm(NamedTuple):
    """A film that was delivered: its rank then, and when."""

    film: Event
    rank: float
    at_us: int


class ListedFilm(NamedTuple):
    """A film on the list of a subscriber, and the condition behind its rank."""

    sent: SentFilm
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        film, rank, at_us = self.sent
        title, year = (film.attributes[name] for name in ("title", "year"))
        about = {"event": film.id, "title": title, "year": year}
        return {"delivered_at": format_time(at_us), "rank": rank, **about, "why": self.reason}


@dataclass(frozen=True)
class SubscriberStats:
    """The matches and deliveries of a subscriber so far.

    `films` are the last k deliveries, newest first. `lists` compares each k deliveries in a row
    with as many films first come; `listed` counts the deliveries that these cover. `held` and
    `dropped` count chosen films by what the subscriber's rules did with them.
    """

    subscriber: DemoSubscriber
    matches: int = 0
    held: int = 0
    dropped: int = 0
    sent: tuple[SentFilm, ...] = ()
    films: tuple[ListedFilm, ...] = ()
    lists: tuple[ListPair, ...] = ()
    listed: int = 0

    @property
    def delivered(self) -> int:
        """The number of deliveries."""
        return len(self.sent)

    @property
    def figures(self) -> Figures | None:
        """The quality of its lists, on average."""
        return figures(self.lists)

    @property
    def ruled(self) -> str:
        """The effects of its rules, in words; empty if it has none."""
        if not self.subscriber.subscriber.policy.rules:
            return ""
        return f"its rules held {self.held:,} for later and dropped {self.dropped:,}"

    def received(self, film: Event) -> bool:
        """Return whether a film was delivered."""
        return any(sent.film.id == film.id for sent in self.sent)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; the quality is null before the first full list."""
        quality = self.figures
        return {
            "subscriber": self.subscriber.name,
            "likes": self.subscriber.likes,
            "gets": self.subscriber.gets,
            "matches": self.matches,
            "delivered": self.delivered,
            "rules": {"held": self.held, "dropped": self.dropped},
            "lists": len(self.lists),
            "quality": quality.to_dict() if quality else None,
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
    events: list[Event] = field(init=False)

    def __post_init__(self) -> None:
        self.stats = {owner.name: SubscriberStats(owner) for owner in self.subscribers}
        self._engine = plain_engine(self.subscribers)
        self.events = [film for film in read_events(self.films) if isinstance(film, Event)]
        self._film_of = {film.id: film for film in self.events}
        self._matches = {
            owner.name: SubscriberMatches(owner, self.events) for owner in self.subscribers
        }

    @property
    def matches(self) -> int:
        """The matches of all subscribers."""
        return sum(stats.matches for stats in self.stats.values())

    @property
    def delivered(self) -> int:
        """The deliveries to all subscribers."""
        return sum(stats.delivered for stats in self.stats.values())

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
        """Add a batch; a thread that reads `stats` at the same time sees all of it or nothing."""
        self.stats = {name: self._updated(stats, batch) for name, stats in self.stats.items()}
        self.late += len(batch.of("late"))
        self.dead += len(batch.of("dead"))
        self.published, self.batches = sum(self.sizes[: batch.number + 1]), batch.number + 1

    def film(self, event: str) -> Event:
        """Return a film by its id."""
        return self._film_of[event]

    def matches_of(self, subscriber: str) -> SubscriberMatches:
        """Return what matches a subscriber."""
        return self._matches[subscriber]

    def dramas_by(self, director: str) -> list[Event]:
        """Return the published dramas of a director."""
        published = self.events[: self.published]
        by_director = [film for film in published if film.attributes.get("director") == director]
        return [film for film in by_director if "drama" in genres(film)]

    def rank(self, subscriber: str, film: Event) -> float | None:
        """Return the rank of a film for a subscriber."""
        return self._engine.explain(subscriber, film).rank

    def listed(self, owner: DemoSubscriber, sent: SentFilm) -> ListedFilm:
        """Return a delivered film with the condition behind its rank."""
        return ListedFilm(sent, reason(self._engine.explain(owner.name, sent.film), owner))

    def sent(self, delivery: Delivery) -> SentFilm:
        """Return a delivery with its film."""
        return SentFilm(self.film(delivery.event), delivery.rank, delivery.delivered_us)

    def _updated(self, stats: SubscriberStats, batch: OutcomeBatch) -> SubscriberStats:
        owner = stats.subscriber
        # A row of kind `account` holds the number of matches as position.
        accounts = batch.of("account", owner.name)
        rows = sorted(batch.of("delivery", owner.name), key=lambda row: row["sequence"])
        sent = stats.sent + tuple(
            SentFilm(self.film(row["event"]), row["rank"], time_us(row["delivered_at"]))
            for row in rows
        )
        last = sorted(sent[-owner.k :], key=lambda film: -film.at_us)
        return replace(
            self._with_lists(replace(stats, sent=sent)),
            matches=stats.matches + sum(row["position"] for row in accounts),
            held=stats.held + sum(row["position"] for row in batch.of("held", owner.name)),
            dropped=stats.dropped + len(batch.of("dropped", owner.name)),
            films=tuple(self.listed(owner, film) for film in last) if rows else stats.films,
        )

    def _with_lists(self, stats: SubscriberStats) -> SubscriberStats:
        """Compare every k deliveries in a row that no list covers yet."""
        k, sent, listed = stats.subscriber.k, stats.sent, stats.listed
        lists, matches = list(stats.lists), self._matches[stats.subscriber.name]
        while listed + k <= len(sent):
            after_us = sent[listed - 1].at_us if listed else self.events[0].published_us - 1
            films = [film for film, _, _ in sent[listed : listed + k]]
            listed += k
            pair = matches.pair(films, after_us, sent[listed - 1].at_us)
            lists += [pair] if pair else []
        return replace(stats, lists=tuple(lists), listed=listed)


def reason(explanation: Explanation, subscriber: DemoSubscriber) -> str:
    """Return the condition behind a rank: of the best subscription, or all that add to it.

    >>> from tidings.app.demo.subscribers import demo_subscribers, plain_engine
    >>> carson = next(owner for owner in demo_subscribers() if owner.name == "carson")
    >>> film = Event("m1", {"genre": "drama", "director": "T. Burton"}, 0)
    >>> reason(plain_engine([carson]).explain("carson", film), carson)
    "genre = 'drama' and director = 'T. Burton'"
    """
    matched = [result for result in explanation.reasons if result.matched]
    if subscriber.subscriber.policy.scorer.partial:
        return " + ".join(predicate for result in matched for predicate in result.holds)
    return " and ".join(
        next(result.holds for result in matched if result.score == explanation.rank)
    )
