"""The default engine next to every explicit choice of index and feeds.

python bench/defaults.py [--sizes 10 1000 50000] [--quick]

`Engine()` must stay close to the best of `Engine(index=..., feeds=...)` at every size and shape,
and deliver the same. The times are processor time per event, the best of several rounds, each of
which begins with another choice. They begin after the first match of most subscriptions, which
costs more. Batches begin after a thousand events, by which `Engine()` has seen that events come in
batches: until then it does not load the kernels for a few subscriptions. Choices that cannot win
are left out: a scan of more than 200 subscriptions, and plain feeds of more than 2,000 subscribers.
Results go to bench/results/defaults.json and defaults.md.
"""

import argparse
import gc
import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

import pages
from pages import machine, opening, publish, table

from tidings import DivRank, Engine, Event, Periodic, Policy, Sliding, Subscriber, Subscription

SCANNED = 200
LARGE = 2_000
FEEDS = ("plain", "table")
ROUNDS = 5
WARM_UP = 100
WARM_UP_BATCH = 1_200
Row = dict[str, Any]


def publish_each(engine: Engine, stream: list[Event]) -> list[Any]:
    return [engine.publish(event) for event in stream]


def publish_batch(engine: Engine, stream: list[Event]) -> list[Any]:
    return engine.publish_many(stream)


def target_each(engine: Engine, stream: list[Event]) -> list[Any]:
    return [engine.target(event, 20) for event in stream]


class Shape(NamedTuple):
    """Who subscribes, with which policy, and how the engine is called."""

    name: str
    policy: Policy
    crowd: bool  # a subscriber for each subscription, or one for all
    call: Callable[[Engine, list[Event]], list[Any]]


# Own scores: by preference, nobody can have 50,000 subscriptions.
RANKED = Policy(k=3, scorer="exact", window=Sliding(20))
PREFERRED = Policy(k=3, window=Sliding(20))
PERIODS = Policy(k=3, window=Periodic("5s"))
DIVERSE = Policy(k=3, scorer="exact", window=Sliding(20), diversify=DivRank(sigma=0.5))
SHAPES = (
    Shape("one subscriber, single events", RANKED, crowd=False, call=publish_each),
    Shape("one subscriber, a batch", RANKED, crowd=False, call=publish_batch),
    Shape("many subscribers, single events", PREFERRED, crowd=True, call=publish_each),
    Shape("many subscribers, a batch", PREFERRED, crowd=True, call=publish_batch),
    Shape("many subscribers, periods", PERIODS, crowd=True, call=publish_each),
    Shape("one subscriber, diverse", DIVERSE, crowd=False, call=publish_each),
    Shape("many subscribers, diverse", DIVERSE, crowd=True, call=publish_each),
    Shape("the 20 best subscriptions", RANKED, crowd=True, call=target_each),
)


class Choice(NamedTuple):
    """How an engine is made; nothing is the default."""

    index: str | None = None
    feeds: str | None = None

    def engine(self) -> Engine:
        """Return a new engine."""
        return Engine(**{key: value for key, value in self._asdict().items() if value})

    def __str__(self) -> str:
        return f"{self.index}, {self.feeds}" if self.index else "default"


def main() -> None:
    options = arguments()
    result: Row = {"machine": machine(), "rows": []}
    for size, shape in product(options.sizes, SHAPES):
        row = measured(shape, size, options)
        print(row, file=sys.stderr, flush=True)
        result["rows"].append(row)
    publish("defaults", result, page, options)


def arguments() -> argparse.Namespace:
    parser = pages.arguments(__doc__, "10 subscriptions, one round")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 1_000, 50_000])
    parser.add_argument("--events", type=int, default=300, help="events for up to 1,000 of them")
    options = parser.parse_args()
    if options.quick:
        options.sizes, options.events = [10], 20
    return options


def measured(shape: Shape, size: int, options: argparse.Namespace) -> Row:
    """Return the time per event of each choice, in microseconds, and whether all answer alike."""
    people, wishes = subscriptions(shape, size)
    is_large = size > LARGE
    warm_up = WARM_UP_BATCH if shape.call is publish_batch and not is_large else WARM_UP
    most = options.events // 4 if is_large else options.events
    stream = events(warm_up + max(20, most))
    best, answers = dict[str, float](), list[list[Any]]()
    tried = choices(shape, size)
    rounds = 1 if options.quick else 3 if is_large else ROUNDS
    for turn in range(rounds):
        for choice in tried[turn % len(tried) :] + tried[: turn % len(tried)]:
            engine = choice.engine()
            for person in people:
                engine.subscribe(person)
            engine.add_many(wishes)
            engine.publish_many(stream[:10])  # loads the kernels
            before = shape.call(engine, stream[10:warm_up])
            gc.collect()  # of the engines before
            started = time.process_time()
            after = shape.call(engine, stream[warm_up:])
            took_us = (time.process_time() - started) / len(stream[warm_up:]) * 1e6
            answers.append(before + after)
            best[str(choice)] = min(took_us, best.get(str(choice), took_us))
    fastest = min(best, key=best.__getitem__)
    row = {"shape": shape.name, "subscriptions": size, "us": best, "best": fastest}
    same = any(answers[0]) and all(answer == answers[0] for answer in answers)
    return row | {"ratio": best["default"] / best[fastest], "same": same}


def choices(shape: Shape, size: int) -> list[Choice]:
    indexes = ("access",) if size > SCANNED else ("scan", "access")
    feeds = ("table",) if (shape.crowd and size > LARGE) or shape.call is target_each else FEEDS
    return [Choice(), *(Choice(index, feed) for index, feed in product(indexes, feeds))]


def subscriptions(shape: Shape, size: int) -> tuple[list[Subscriber], list[Subscription]]:
    chance = Random(3)
    names = [f"u{n}" for n in range(size)] if shape.crowd else ["u0"]
    wishes = [
        Subscription(
            f"s{n}",
            names[n % len(names)],
            where=f"genre = 'g{chance.randrange(20)}' and year >= {chance.randrange(1950, 2020)}",
            prefrank=(rank := round(chance.random(), 2)),
            score=rank,
        )
        for n in range(size)
    ]
    return [Subscriber(name, shape.policy) for name in names], wishes


def events(count: int) -> list[Event]:
    chance = Random(5)
    return [
        Event(
            f"e{n}",
            {
                "genre": f"g{chance.randrange(20)}",
                "year": chance.randrange(1950, 2025),
                "stars": chance.randrange(5),
            },
            published_at=n,
        )
        for n in range(count)
    ]


def page(result: Row) -> str:
    lines = opening(
        "The default engine",
        result,
        "Microseconds of processor time per event, and the ratio of `Engine()` to the best "
        "explicit choice of index and feeds.",
    )
    head = ("subscriptions", "shape", "`Engine()`", "best", "the best", "ratio", "the same")
    rows = [
        (
            f"{row['subscriptions']:,}",
            row["shape"],
            f"{row['us']['default']:,.0f}",
            f"{row['us'][row['best']]:,.0f}",
            row["best"],
            f"{row['ratio']:.2f}",
            "yes" if row["same"] else "NO",
        )
        for row in result["rows"]
    ]
    return "\n".join([*lines, *table(head, rows), ""])


if __name__ == "__main__":
    main()
