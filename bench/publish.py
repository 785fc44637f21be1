"""Events through the engine: as objects and as Arrow tables, next to matching alone.

python bench/publish.py [--sizes 100000 1000000] [--events 4000] [--quick]

The workload is that of bench/pipeline.py: of 1,000,000 subscriptions about 105 subscribers match an
event; the policy is sliding(100), k = 10. `kernel` is matching alone, by `Matcher.match_many`.
`one by one` takes every event alone through windows, and makes an object of every delivery at once:
that is how the engine worked before it had columns. The other ways are `publish_many`, whose
objects are made at the end, and `publish_table`, which makes none. All ways get the same events,
and must deliver the same; the first half of them warms up. Garbage is collected before the second
half: among the objects of so many subscriptions that takes longer than these events, and falls
anywhere. Times are processor time. Results go to bench/results/publish.json and publish.md.
"""

import argparse
import gc
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import market
import pages
import pyarrow as pa
from pages import machine, opening, publish, table
from timing import OWN, timed

from tidings import Delivery, Engine, Event, Policy, Sliding, Subscriber, Subscription
from tidings.feed.columnar import deliveries
from tidings.formats.arrow import deliveries_to_table
from tidings.rank.matcher import Matcher

POLICY, CHUNK = Policy(k=10, window=Sliding(100)), 1000
Row = dict[str, Any]


def main() -> None:
    options = arguments()
    result: Row = {"machine": machine(), "events": options.events}
    result["rows"] = [measured(size, options.events) for size in options.sizes]
    publish("publish", result, page, options)


def arguments() -> argparse.Namespace:
    parser = pages.arguments(__doc__, "5,000 subscriptions, 400 events")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--events", type=int, default=4_000)
    options = parser.parse_args()
    if options.quick:
        options.sizes, options.events = [5_000], 400
    return options


def measured(size: int, count: int) -> Row:
    """Run all ways of one size, one after the other."""
    wishes, people = list(market.subscriptions(size)), market.people(size, POLICY)
    stream = list(market.events(count))
    half = count // 2
    halves = (stream[:half], stream[half:])
    row: Row = {"size": size, "kernel_per_s": half / kernel(wishes, people, stream)}
    tables = dict[str, pa.Table]()
    ways: dict[str, Callable[..., Any]] = {
        "single": one_by_one,
        "many": Engine.publish_many,
        "table": Engine.publish_table,
    }
    for name, way in ways.items():
        engine = filled(wishes, people)
        first, second = (as_table(part) if name == "table" else part for part in halves)
        way(engine, first)
        gc.collect()
        delivered, seconds = timed(partial(way, engine, second), OWN)
        row[f"{name}_per_s"] = half / seconds
        tables[name] = delivered if name == "table" else deliveries_to_table(delivered)
    row["many_ratio"] = row["many_per_s"] / row["single_per_s"]
    row["table_ratio"] = row["table_per_s"] / row["kernel_per_s"]
    row["deliveries"] = tables["many"].num_rows / half
    row["right"] = tables["single"].equals(tables["many"]) and tables["many"] == tables["table"]
    print(row, file=sys.stderr, flush=True)
    return row


def kernel(
    wishes: Sequence[Subscription], people: Sequence[Subscriber], stream: Sequence[Event]
) -> float:
    matcher = Matcher(people, wishes, "access")
    chunks = [stream[at : at + CHUNK] for at in range(0, len(stream), CHUNK)]
    half = len(chunks) // 2 or 1
    for chunk in chunks[:half]:
        matcher.match_many(chunk)
    gc.collect()
    rest = chunks[half:] or chunks
    _, seconds = timed(lambda: [matcher.match_many(chunk) for chunk in rest], OWN)
    return seconds * (len(stream) // 2) / sum(map(len, rest))


def filled(wishes: Sequence[Subscription], people: Sequence[Subscriber]) -> Engine:
    engine = Engine(index="access", feeds="table")
    for person in people:
        engine.subscribe(person)
    engine.add_many(wishes)
    return engine


def one_by_one(engine: Engine, stream: Sequence[Event]) -> list[Delivery]:
    """Publish as the engine did before: each event alone, and every delivery an object."""
    stages, few = engine._stages, deliveries.FEW  # noqa: SLF001 - a way that it has no more
    stages._end_of_run = lambda _, first, *, together: first + 1  # type: ignore[method-assign]  # noqa: SLF001
    deliveries.FEW = sys.maxsize  # type: ignore[misc]
    try:
        return engine.publish_many(stream)
    finally:
        deliveries.FEW = few  # type: ignore[misc]


def as_table(stream: Sequence[Event]) -> pa.Table:
    """Return events as columns; numbers and strings of one attribute are in two maps."""
    return pa.Table.from_pylist([*market.event_rows(iter(stream))], market.EVENTS)


HEAD = (
    "subscriptions",
    "deliveries per event",
    "kernel, events/s",
    "one by one",
    "publish_many",
    "x one by one",
    "publish_table",
    "x kernel",
    "right",
)


def page(result: Row) -> str:
    remark = (
        f"{result['events']:,} events, of which the second half counts; sliding(100), k = 10; "
        "processor time."
    )
    lines = opening("Events through the engine", result, remark)
    return "\n".join(lines + table(HEAD, map(cells, result["rows"])))


def cells(row: Row) -> tuple[str, ...]:
    speeds = {name: row[f"{name}_per_s"] for name in ("kernel", "single", "many", "table")}
    return (
        f"{row['size']:,}",
        f"{row['deliveries']:.1f}",
        f"{speeds['kernel']:,.0f}",
        f"{speeds['single']:,.0f}",
        f"{speeds['many']:,.0f}",
        f"{speeds['many'] / speeds['single']:.1f}",
        f"{speeds['table']:,.0f}",
        f"{speeds['table'] / speeds['kernel']:.2f}",
        "yes" if row["right"] else "NO",
    )


if __name__ == "__main__":
    main()
