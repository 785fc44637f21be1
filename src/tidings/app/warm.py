"""`tidings warm`: compile the kernels before they are needed.

Small workloads run through every kind of window, choice and scorer. What they compile is kept, so a
container, a read-only installation or a cluster starts without waiting.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

from tidings.compiled.kernel_cache import SUFFIX, cache_folder, environment
from tidings.diversify import DIVERSIFIERS, select
from tidings.engine.engine import Engine
from tidings.model.records import Event, Subscription
from tidings.policy import Policy, Subscriber
from tidings.rank.target_index import BoxSource, TargetBoxes
from tidings.testing import workload

WINDOWS: Final[tuple[Any, ...]] = (
    "continuous",
    {"name": "sliding", "length": 3},
    {"name": "periodic", "length": "3s"},
    {"name": "jumping", "length": 4, "step": 2},
    {"name": "history", "length": 4},
)
CHOICES: Final = ("none", "divrank", "disc")
"""One diversifier of each kind that kernels are compiled for: by rank, greedy, and by search."""

SPARSE: Final = 20
"""Boxes that constrain one of three times as many attributes are kept in lists, not in blocks."""
LISTED: Final = 70
"""Enough candidates for the kernels that find covers by lists and by levels."""


class WarmStep(NamedTuple):
    """A part of the kernels, and a small workload that compiles it."""

    name: str
    run: Callable[[], None]


@dataclass(frozen=True)
class WarmCache:
    """Where the compiled kernels are, and how long they took."""

    folder: Path
    kernels: int
    bytes: int
    seconds: float

    def __str__(self) -> str:
        summary = f"{self.kernels} kernels, {self.bytes / 1e6:.1f} MB, are ready in {self.folder}"
        return f"{summary} after {self.seconds:.0f} s"


def warm_up() -> Iterator[str | WarmCache]:
    """Compile step by step.

    Yield each step before it runs, and at the end where the kernels are.
    """
    started, steps = time.perf_counter(), warm_steps()
    for number, step in enumerate(steps, 1):
        yield f"compiling once, {number} of {len(steps)}: {step.name}"
        step.run()
    folder = cache_folder() / environment()
    sizes = [path.stat().st_size for path in folder.glob(f"*{SUFFIX}")]
    yield WarmCache(folder, len(sizes), sum(sizes), time.perf_counter() - started)


def warm_steps() -> list[WarmStep]:
    """Return the steps; those of Spark only if it is installed."""
    feeds = [
        WarmStep(f"{Policy(window=window).window.name} windows, {choice}", run)
        for window in WINDOWS
        for choice in CHOICES
        for run in [partial(_run_feed, Policy(k=2, window=window, diversify=choice))]
    ]
    ranks = [
        WarmStep("ranks, and targets", _run_ranks),
        WarmStep("targets among boxes", _run_boxes),
        WarmStep("choices from lists", _run_choices),
    ]
    spark = [WarmStep("index files, and stages of Spark", _run_stages)]
    return [*feeds, *ranks, *(spark if find_spec("pyspark") else [])]


def _run_feed(policy: Policy) -> None:
    """Deliver, look at the feed, end periods, and restore a snapshot."""
    engine = Engine()
    engine.subscribe(Subscriber("one", policy))
    engine.add(Subscription("s", "one", where="a >= 0"))
    for number in range(8):
        engine.publish(Event(f"e{number}", {"a": number % 3, "b": "text"}, published_at=number))
    engine.feed("one")
    engine.advance(60)
    Engine().restore(engine.snapshot())


def _run_ranks() -> None:
    """Rank events by every scorer for subscribers of every kind, in both directions."""
    work, engine = workload(events=20, subscribers=60), Engine(index="access")
    for subscriber in work.subscribers:
        engine.subscribe(subscriber)
    engine.add_many(work.subscriptions)
    engine.publish_many(work.events)
    for scorer in ("exact", "relaxed"):
        engine.target(work.events[0], k=2, scorer=scorer)
    engine.remove(work.subscriptions[0].id)


def _run_boxes() -> None:
    """Look for targets among boxes of every layout, by both scorers, before and after changes.

    An engine builds them in the background, and only for many subscriptions.
    """
    for attributes, ranges in ((1, 1), (3, 3), (3 * SPARSE, 1)):
        subscriptions = [_box(number, attributes, ranges) for number in range(3 * SPARSE)]
        values = {f"a{attribute}": 1.0 for attribute in range(attributes)}
        events = [Event(f"e{number}", values, published_at=number) for number in range(3)]
        for scores in ({subscription.id: 1.0 for subscription in subscriptions}, None):
            boxes = TargetBoxes(BoxSource.of(subscriptions), scores)
            boxes.top_many(events, 2)
            boxes.change([], ["s0"])
            boxes.top_many(events[:1], 2)


def _box(number: int, attributes: int, ranges: int) -> Subscription:
    names = [f"a{(number + attribute) % attributes}" for attribute in range(ranges)]
    where = " and ".join(f"{name} between 0 and 2" for name in names)
    return Subscription(f"s{number}", "one", where=where)


def _run_choices() -> None:
    """Choose from a list by every diversifier, and by covers within an alpha."""
    events = [
        Event(f"e{number}", {"a": number % 2, "b": number % 7}, published_at=number)
        for number in range(LISTED)
    ]
    within = [{"name": name, "alpha": 0.5} for name in ("disc", "maxdivrel")]
    for diversify in (*DIVERSIFIERS, *within):
        select(events, [0.5] * LISTED, 2, diversify)


def _run_stages() -> None:
    """Match events against index files, and pass the matches on to buckets."""
    from tidings.spark.warm_stages import warm_stages  # noqa: PLC0415 - an optional dependency

    warm_stages(workload(events=20, subscribers=60))
