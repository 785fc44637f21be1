"""Simulated days for bench/long.py: a stream in files, its subscribers, and their changes.

A file holds two hours of event time. Some events arrive in the next file, in time or too late, and
some arrive twice. Everything is derived from its number, so nothing has to be stored. Windows are
so short, and conditions so broad, that all windows are full after about twenty files: whatever
grows after that grows without bound.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any, Final

from tidings import Event, Policy, Subscriber, Subscription
from tidings.store import Store

LATENESS, REMEMBER = "30m", "2d"
FILE_S: Final = 7200
EARLIEST_LATE_S, LATEST_LATE_S, SHUFFLED_S = 6000, 5400, 900
"""Events of the last SHUFFLED_S of a file may arrive in the next one; those of some earlier
minutes, which the watermark has passed by then, arrive too late."""
SHARE_MOVED, SHARE_AGAIN = 0.5, 0.02
GENRES, CHANNELS = 24, 40
WINDOWS: Final[tuple[Any, ...]] = (
    "continuous",
    {"name": "continuous", "expires": "12h"},
    {"name": "periodic", "length": "1h"},
    {"name": "periodic", "length": "1d"},
    {"name": "periodic", "length": 500, "count": "published"},
    {"name": "sliding", "length": 20},
    {"name": "sliding", "length": "6h", "delivered": "leave"},
    {"name": "sliding", "length": 1000, "count": "published"},
    {"name": "jumping", "length": 20, "step": 5, "wait": True},
    {"name": "jumping", "length": "12h", "step": "3h"},
    {"name": "history", "length": 15},
    {"name": "history", "length": "1d", "strict": True},
)
DIVERSIFIERS: Final[tuple[Any, ...]] = (
    {"name": "divrank", "sigma": 0.5},
    {"name": "divrank", "sigma": 0.2, "distance": "jaccard"},
    "maxmin",
    "maxsum",
    {"name": "disc", "alpha": 0.5},
    "maxdivrel",
    {"name": "maxdivrel-lsh", "tables": 4, "rows": 2},
)
DECAYS: Final[tuple[Any, ...]] = (
    {"name": "exponential", "rate": 1e-5},
    {"name": "polynomial", "exponent": 2},
    "logarithmic",
)
STEADY: Final = 0.9
"""The share of subscribers that no change concerns."""
GUESTS: Final = 100
"""The number of guests that are subscribed at any time."""


@dataclass(frozen=True)
class Days:
    """A stream of files with a fixed number of events each."""

    each: int
    seed: int = 7

    def file(self, number: int) -> list[Event]:
        """Return the events of a file in order of arrival."""
        chance = Random(f"{self.seed}-file-{number}")
        before = self._period(number - 1) if number else []
        moved = [event for event in before if self._comes_later(event, number - 1)]
        there = [event for event in self._period(number) if not self._comes_later(event, number)]
        again = [event for event in (*before, *there) if event not in moved]
        again = [event for event in again if chance.random() < SHARE_AGAIN]
        shuffled = [
            (event.published_us / 1e6 + chance.random() * SHUFFLED_S, event.id, event)
            for event in (*moved, *there)
        ]
        return [event for *_, event in sorted(shuffled, key=lambda event: event[:2])] + again

    def last(self, number: int) -> Event:
        """Return an event of the far future, which releases everything before it."""
        return Event(
            f"e{number}-last", {"year": -1}, (number + 100) * FILE_S, sequence=self._first(number)
        )

    def _first(self, number: int) -> int:
        return number * self.each + 1

    def _period(self, number: int) -> list[Event]:
        """Return the events of two hours, numbered in order of time."""
        chance = Random(f"{self.seed}-{number}")
        times = sorted(round(chance.random() * FILE_S, 3) for _ in range(self.each))
        return [
            Event(
                f"e{number}-{position}",
                said(chance),
                number * FILE_S + time,
                sequence=self._first(number) + position,
            )
            for position, time in enumerate(times)
        ]

    def _comes_later(self, event: Event, number: int) -> bool:
        left = (number + 1) * FILE_S - event.published_us / 1e6
        moved = left < SHUFFLED_S or LATEST_LATE_S < left < EARLIEST_LATE_S
        return moved and Random(f"{self.seed}-moved-{event.id}").random() < SHARE_MOVED


def said(chance: Random) -> dict[str, Any]:
    return {
        "genre": [f"g{each}" for each in chance.sample(range(GENRES), chance.randint(1, 2))],
        "channel": f"c{chance.randrange(CHANNELS)}",
        "year": chance.randrange(100),
        "price": round(chance.random() * 1000, 1),
    }


def policies(seed: int = 7) -> list[Policy]:
    """Return each window four times: plain, with a decay, with a diversifier, with both.

    A window that keeps everything when it is diverse, and so grows by design, is never diverse.
    """
    chance, drawn = Random(seed), list[Policy]()
    for decays, diverse in product((False, True), (False, True)):
        for window in WINDOWS:
            decay = chance.choice(DECAYS) if decays else "none"
            bounded = diverse and window != "continuous"
            diversify = chance.choice(DIVERSIFIERS) if bounded else "none"
            drawn.append(Policy(chance.randint(2, 8), "preference", decay, window, diversify))
    return drawn


POLICIES: Final = policies()


def people(count: int) -> list[Subscriber]:
    """Return subscribers with all policies in turn; the first one matches everything."""
    return [
        Subscriber(f"u{number:05d}", POLICIES[(number + 5) % len(POLICIES)])
        for number in range(count)
    ]


def wishes(name: str, seed: object = 7) -> list[Subscription]:
    """Return the subscriptions of a subscriber; those of the first one match everything."""
    chance = Random(f"{seed}-{name}")
    if name == "u00000":
        return [Subscription("u00000-0", name, "year >= 0", prefrank=0.5)]
    return [wish(f"{name}-{number}", name, chance) for number in range(3)]


def wish(key: str, name: str, chance: Random) -> Subscription:
    genre, channel = (
        f"genre = 'g{chance.randrange(GENRES)}'",
        f"channel = 'c{chance.randrange(CHANNELS)}'",
    )
    low = chance.randrange(600)
    where = chance.choice(
        [
            f"{genre} and price >= {chance.randrange(500, 900)}",
            f"{genre} and year >= {chance.randrange(50, 90)}",
            f"{channel} and price between {low} and {low + 400}",
        ]
    )
    return Subscription(key, name, where, prefrank=chance.randint(1, 100) / 100)


def steady(everybody: list[Subscriber]) -> list[Subscriber]:
    """Return the subscribers that no change concerns."""
    return everybody[: round(len(everybody) * STEADY)]


class Changes:
    """The changes of the catalogue while the stream runs: the same number in every round."""

    def __init__(self, store: Store, everybody: list[Subscriber]) -> None:
        self._store, self._round, self._chance = store, 0, Random(9)
        self._movers = everybody[len(steady(everybody)) :]

    def make(self) -> int:
        """Add a guest and remove one; replace, rescore and remove; return the number of changes."""
        catalogue, chance = self._store.catalogue, self._chance
        guest = Subscriber(f"guest{self._round}", chance.choice(POLICIES))
        catalogue.put(guest, *wishes(guest.id))
        gone = catalogue.remove("subscriber", f"guest{self._round - GUESTS}")
        one, other, third = chance.sample(self._movers, 3)
        catalogue.replace(wish(f"{one.id}-0", one.id, chance))
        kept = catalogue.get("subscription", f"{other.id}-1")
        if kept and kept.form:
            catalogue.replace({**kept.form, "prefrank": chance.randint(1, 100) / 100})
        catalogue.replace(Subscriber(third.id, chance.choice(POLICIES)))
        self._toggle(third.id)
        self._round += 1
        if self._round % GUESTS == 0:
            self._store.history.compact(max(0, catalogue.version() - 10 * GUESTS))
        return 5 + gone

    def _toggle(self, name: str) -> None:
        """Remove the last subscription of a subscriber, or put it back."""
        if not self._store.catalogue.remove("subscription", f"{name}-2"):
            self._store.catalogue.put(wish(f"{name}-2", name, self._chance))


def stream(days: Days, files: int) -> Iterator[list[Event]]:
    """Yield all files, and the last event."""
    for number in range(files):
        yield days.file(number)
    yield [days.last(files)]
