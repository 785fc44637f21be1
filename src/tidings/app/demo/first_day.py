"""The first day of films by the engine in this process, while Spark starts.

Its windows are the plain ones, which follow the definitions and have no kernels to compile, so the
first deliveries come at once. Spark delivers the same day again; both must agree.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tidings.app.demo.movies import EVERY_S, FILMS_PER_DAY
from tidings.app.demo.state import SubscriberStats
from tidings.app.demo.subscribers import DemoSubscriber, plain_engine
from tidings.engine.explain import Explanation
from tidings.model.records import Delivery, Event

CHUNK: Final = 30 * 60 // EVERY_S
"""Films that are published at once: half an hour of them."""


class FirstDay:
    """A day of films in an engine that can explain each of them."""

    def __init__(self, subscribers: Sequence[DemoSubscriber], films: Sequence[Event]) -> None:
        self.films = films[:FILMS_PER_DAY]
        self.published = 0
        self.deliveries: list[Delivery] = []
        self._engine = plain_engine(subscribers, remember=FILMS_PER_DAY)
        # The next film ends the last period of the day. Without one, Spark does not end it either.
        self._ends = films[FILMS_PER_DAY : FILMS_PER_DAY + 1]

    @property
    def matches(self) -> int:
        """The matches of all subscribers so far."""
        return self._engine.quality().matches

    def run(self) -> Iterator[list[Delivery]]:
        """Publish the films, half an hour at a time; yield the deliveries of each half hour."""
        for start in range(0, len(self.films), CHUNK):
            films = self.films[start : start + CHUNK]
            deliveries = self._engine.publish_many(films)
            if start + CHUNK >= len(self.films):
                deliveries += self._close()
            self.deliveries += deliveries
            self.published += len(films)
            yield deliveries

    def _close(self) -> list[Delivery]:
        return self._engine.advance(self._ends[0].published_at) if self._ends else []

    def explain(self, subscriber: str, film: Event) -> Explanation:
        """Explain why a subscriber did or did not get a film of the day."""
        return self._engine.explain(subscriber, film.id)

    def confirmed(self, stats: Mapping[str, SubscriberStats]) -> int:
        """Return how many of the deliveries Spark made too: film, rank, time and order."""
        equal = 0
        for name, subscriber_stats in stats.items():
            own = [delivery for delivery in self.deliveries if delivery.subscriber == name]
            for delivery, sent in zip(own, subscriber_stats.sent, strict=False):
                same = (delivery.event, delivery.rank, delivery.delivered_us)
                equal += same == (sent.film.id, sent.rank, sent.at_us)
        return equal
