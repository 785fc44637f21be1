"""The state of the show: everybody's tally, and how far the stream is."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tidings.app.demo.subscriber_stats import Line, Tally, why
from tidings.app.demo.subscribers import Role
from tidings.engine.explain import explain
from tidings.formats.arrow import read_events
from tidings.model.records import Event
from tidings.rank.matcher import Matcher

_CHUNK: Final = 100


class Batch(NamedTuple):
    """What came of one micro-batch: rows of `tidings.spark.outcomes`."""

    number: int
    rows: list[dict[str, Any]]

    def of(self, kind: str, subscriber: str | None = None) -> list[dict[str, Any]]:
        """Give the rows of one kind, and of one subscriber."""
        return [row for row in self.rows if row["kind"] == kind and row["subscriber"] == subscriber]


@dataclass
class Board:
    """Everybody's tally over `films`, of which each batch publishes as many as `sizes` say."""

    roles: Sequence[Role]
    films: pa.Table
    sizes: Sequence[int]
    published: int = 0
    batches: int = 0
    late: int = 0
    dead: int = 0
    tallies: dict[str, Tally] = field(init=False)

    def __post_init__(self) -> None:
        self.tallies = {role.name: Tally(role) for role in self.roles}
        wanted = [each for role in self.roles for each in role.subscriptions]
        self._matcher = Matcher([role.subscriber for role in self.roles], wanted)
        self._places = {name: place for place, name in enumerate(self.films["id"].to_pylist())}

    @property
    def matches(self) -> int:
        """The matches of everybody."""
        return sum(tally.matches for tally in self.tallies.values())

    @property
    def delivered(self) -> int:
        """The deliveries to everybody."""
        return sum(len(tally.delivered) for tally in self.tallies.values())

    def counts(self) -> dict[str, int]:
        """Give all numbers."""
        return {
            "published": self.published,
            "matches": self.matches,
            "delivered": self.delivered,
            "dead_letters": self.dead,
            "late": self.late,
        }

    def take(self, batch: Batch) -> None:
        """Go on by a batch; who reads the tallies meanwhile sees all of it or nothing."""
        published = sum(self.sizes[: batch.number + 1])
        plain = self._last_matches(published)
        self.tallies = {
            name: self._grown(tally, batch, plain[name]) for name, tally in self.tallies.items()
        }
        self.late += len(batch.of("late"))
        self.dead += len(batch.of("dead"))
        self.published, self.batches = published, batch.number + 1

    def dramas_by(self, director: str) -> list[Event]:
        """Give the dramas of a director among what was published."""
        places = pc.indices_nonzero(pc.equal(self.films["director"], director)).to_pylist()
        films = [self._read(place, 1)[0] for place in places if place < self.published]
        return [film for film in films if "drama" in _genres(film)]

    def rank(self, name: str, film: Event) -> float | None:
        """Give the rank of a film for a subscriber."""
        return explain(self._matcher, name, film).rank

    def _grown(self, tally: Tally, batch: Batch, plain: tuple[Event, ...]) -> Tally:
        accounts = batch.of("account", tally.role.name)
        new = sorted(batch.of("delivery", tally.role.name), key=lambda row: row["sequence"])
        grown = replace(
            tally,
            matches=tally.matches + sum(row["position"] for row in accounts),
            score_sum=tally.score_sum + sum(row["position"] * row["rank"] for row in accounts),
            delivered=tally.delivered | {row["event"] for row in new},
            rank_sum=tally.rank_sum + sum(row["rank"] for row in new),
            lines=self._last_lines(tally, new),
            plain=plain,
        )
        full = len(plain) == len(grown.lines) == tally.role.k
        return replace(grown, diversities=(*tally.diversities, *[grown.diversity] * full))

    def _last_lines(self, tally: Tally, new: list[dict[str, Any]]) -> tuple[Line, ...]:
        """Give the last k delivered: the newest choice first, each by its positions."""
        k = tally.role.k
        rows = sorted(new[-k:], key=lambda row: row["position"])
        rows.sort(key=lambda row: row["delivered_at"], reverse=True)
        return (*(self._line(tally.role, row) for row in rows), *tally.lines)[:k]

    def _line(self, role: Role, row: dict[str, Any]) -> Line:
        film = self._read(self._places[row["event"]], 1)[0]
        told = explain(self._matcher, role.name, film)
        return Line(row["position"], row["rank"], film, why(told, role))

    def _last_matches(self, published: int) -> dict[str, tuple[Event, ...]]:
        """Give everybody's last k matches, newest first, looking back as far as it takes."""
        found: dict[str, list[Event]] = {role.name: [] for role in self.roles}
        end = published
        while end > 0 and any(len(found[role.name]) < role.k for role in self.roles):
            start = max(0, end - _CHUNK)
            for film in reversed(self._read(start, end - start)):
                for match in self._matcher.matches(film):
                    found[match.subscriber].append(film)
            end = start
        return {role.name: tuple(found[role.name][: role.k]) for role in self.roles}

    def _read(self, start: int, size: int) -> list[Event]:
        rows = read_events(self.films.slice(start, size))
        return [film for film in rows if isinstance(film, Event)]


def _genres(film: Event) -> tuple[Any, ...]:
    genre = film.attributes.get("genre", ())
    return genre if isinstance(genre, tuple) else (genre,)
