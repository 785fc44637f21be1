"""Small seeded workloads for tests and trials, in which ties are common."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from tidings.model.records import Event, Subscription
from tidings.policy import Policy, Subscriber

GENRES: Final = ("comedy", "drama", "horror", "romance")
WINDOWS: Final[tuple[Any, ...]] = (
    "continuous",
    {"name": "continuous", "expires": "40s"},
    {"name": "periodic", "length": "30s", "origin": 7},
    {"name": "periodic", "length": 5, "count": "published", "wait": True},
    {"name": "sliding", "length": 4},
    {"name": "sliding", "length": "50s", "delivered": "leave"},
    {"name": "sliding", "length": 6, "count": "published"},
    {"name": "jumping", "length": 6, "step": 2, "wait": True},
    {"name": "jumping", "length": "1m", "step": "20s"},
    {"name": "jumping", "length": 8, "step": 4, "count": "published"},
    {"name": "history", "length": 5},
    {"name": "history", "length": "45s", "strict": True},
)
DIVERSIFIERS: Final[tuple[Any, ...]] = (
    "none",
    {"name": "divrank", "sigma": 0.5},
    {"name": "divrank", "sigma": 0.2, "distance": "jaccard"},
    "optimal",
    "maxmin",
    "maxsum",
    "maxavg",
    {"name": "disc", "alpha": 0.5},
    "maxdivrel",
    {"name": "maxdivrel-lsh", "tables": 4, "rows": 2},
)
SCORERS: Final[tuple[Any, ...]] = (
    "preference",
    {"name": "preference", "aggregate": "mean"},
    "exact",
    "relaxed",
    {"name": "graph", "lambda": 0.4},
)
DECAYS: Final[tuple[Any, ...]] = (
    "none",
    {"name": "exponential", "rate": 0.05},
    {"name": "polynomial", "exponent": 2},
    "logarithmic",
)


@dataclass(frozen=True)
class Workload:
    """Subscribers, their subscriptions, and a stream of events."""

    subscribers: list[Subscriber]
    subscriptions: list[Subscription]
    events: list[Event]


def workload(seed: int = 7, events: int = 60, subscribers: int = 12) -> Workload:
    """Return a small stream about films, and subscribers whose policies use every kind of part.

    Values are drawn from small sets, so that equal ranks, distances and times are common. Events
    are numbered and in order, and two of three have content.

    >>> len(workload(seed=1, events=5).events)
    5
    """
    rng = Random(seed)
    owners = [
        Subscriber(f"u{number:02d}", policy)
        for number, policy in zip(range(subscribers), _policies(rng), strict=False)
    ]
    subscriptions = [
        subscription for owner in owners for subscription in _subscriptions(owner.id, rng)
    ]
    return Workload(owners, subscriptions, list(_stream(events, rng)))


def _policies(rng: Random) -> Iterator[Policy]:
    """Yield policies that cycle through the windows, with random other parts."""
    while True:
        for window in WINDOWS:
            yield Policy(
                k=rng.randint(1, 3),
                scorer=rng.choice(SCORERS),
                decay=rng.choice(DECAYS),
                window=window,
                diversify=rng.choice(DIVERSIFIERS),
            )


def _subscriptions(subscriber: str, rng: Random) -> Iterator[Subscription]:
    for number in range(rng.randint(2, 4)):
        genre = rng.choice(GENRES)
        where = rng.choice(
            [
                f"genre = '{genre}'",
                f"genre = '{genre}' and year >= {rng.randint(2000, 2004)}",
                f"year between 2001 and {rng.randint(2001, 2004)} or good",
                f"title like '{rng.choice('ab')}%'",
            ]
        )
        yield Subscription(
            f"{subscriber}-{number}",
            subscriber,
            where,
            prefrank=rng.randint(1, 10) / 10,
            score=rng.randint(1, 4),
        )


def _stream(events: int, rng: Random) -> Iterator[Event]:
    published_at = 0
    for number in range(1, events + 1):
        published_at += rng.choice([0, 1, 5, 10, 30])
        attributes: dict[str, Any] = {
            "genre": rng.sample(GENRES, rng.randint(1, 2)),
            "year": rng.randint(2000, 2004),
            "title": rng.choice("abc") + rng.choice("xy"),
        }
        if rng.random() < 0.5:
            attributes["good"] = rng.random() < 0.5
        content = {"link": f"https://films.example/{number}"} if number % 3 else None
        yield Event(f"e{number:04d}", attributes, published_at, sequence=number, content=content)
