"""More subscriptions than one worker should hold: an index in parts, and events sent to each.

python bench/parts.py [--subscriptions 5000000] [--parts 8] [--events 2000] [--quick]

The market of bench/market.py, 5 subscriptions per subscriber; conditions are drawn from 200,000
different ones. Parts are built one after the other, so that one at a time is in memory; then Spark
matches events with all of them, and drops the matches. Bytes are those on disk, and the peak of
this process's and of a Spark worker's private memory. Some events are also ranked by a scan of all
owners of a satisfied condition. Results go to bench/results/parts.json and parts.md.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import market
import pages
import pyarrow as pa
from pages import figure, machine, opening, publish, table
from pipeline_run import POLICY, drop, rate, write
from predicates import Words
from pyspark.cloudpickle import register_pickle_by_value
from pyspark.sql import functions as f
from timing import timed

import tidings.spark as ts
from tidings.index_files.base_files import new_part, write_base
from tidings.index_files.manifest import Manifest
from tidings.index_files.subscriber_bundle import SubscriberBundle
from tidings.index_files.versions import IndexFolder, part_of
from tidings.model.conditions.predicate import Condition
from tidings.model.records import Event, Subscription
from tidings.policy import Subscriber
from tidings.rank.matcher import Matcher

CONDITIONS, JUDGED = 200_000, 3
MEMORY = pa.schema({"bytes": pa.int64()})
Row = dict[str, Any]


def main() -> None:
    options = arguments()
    register_pickle_by_value(sys.modules[__name__])  # workers have no such module
    spark = ts.session("tidings-bench")
    result: Row = {"machine": machine(), "parts": options.parts, "size": options.subscriptions}
    with TemporaryDirectory() as place:
        crowd = Crowd(options.subscriptions, options.parts)
        folder, seconds = timed(lambda: sealed(crowd, Path(place).resolve()))
        result |= {
            "seal_s": seconds,
            "disk_bytes": sum(each.stat().st_size for each in Path(place).glob("*.sealed")),
            "driver_bytes": getrusage(RUSAGE_SELF).ru_maxrss * 1024,
        }
        events = list(market.events(options.events))
        write(
            market.event_rows(iter(events)), market.EVENTS, Path(place) / "events" / "all.parquet"
        )
        frame = spark.read.parquet(str(Path(place) / "events"))
        matches = ts.match(frame, folder)
        result["match_per_s"] = rate(options.events, lambda: drop(matches))[1]
        result["matches"] = matches.count() / options.events
        used = spark.range(64, numPartitions=8).mapInArrow(own_memory, "bytes long")
        result["worker_bytes"] = used.agg(f.max("bytes")).collect()[0][0]
        some = events[:JUDGED]
        found = matches.where(f.col("event").isin([event.id for event in some])).collect()
        got = {(row["event"], row["subscriber"], row["score"]) for row in found}
        result["right"] = got == set(judged(crowd, some))
    publish("parts", result, page, options)


def arguments() -> argparse.Namespace:
    parser = pages.arguments(__doc__, "2,000 subscriptions in 2 parts")
    parser.add_argument("--subscriptions", type=int, default=5_000_000)
    parser.add_argument("--parts", type=int, default=8)
    parser.add_argument("--events", type=int, default=2_000)
    options = parser.parse_args()
    if options.quick:
        options.subscriptions, options.parts, options.events = 2_000, 2, 50
    return options


class Crowd:
    """All subscribers, part by part, the same each time."""

    def __init__(self, subscriptions: int, parts: int) -> None:
        words = Words(7)
        self.parts, self._people = parts, subscriptions // market.OWNED
        self._conditions = [
            Condition(
                (tuple(market.wish(words, attribute) for attribute in words.attributes(2 + n % 3)),)
            )
            for n in range(min(CONDITIONS, subscriptions))
        ]

    def part(self, part: int) -> Iterator[SubscriberBundle]:
        for person in range(self._people):
            if part_of(market.owner(person), self.parts) == part:
                yield self._member(person)

    def interested(self, events: list[Event]) -> Iterator[SubscriberBundle]:
        """Return the owners of some satisfied condition."""
        held = [
            any(condition.holds(event.tokens) for event in events) for condition in self._conditions
        ]
        for person in range(self._people):
            if any(held[self._which(number)] for number in self._numbers(person)):
                yield self._member(person)

    def _member(self, person: int) -> SubscriberBundle:
        name = market.owner(person)
        wishes = [
            Subscription(
                f"s{number:08d}",
                name,
                self._conditions[self._which(number)],
                prefrank=number % 11 / 10,
            )
            for number in self._numbers(person)
        ]
        return SubscriberBundle(name, Subscriber(name, POLICY), wishes)

    def _numbers(self, person: int) -> range:
        return range(person * market.OWNED, (person + 1) * market.OWNED)

    def _which(self, number: int) -> int:
        return number * 7919 % len(self._conditions)


def sealed(crowd: Crowd, place: Path) -> IndexFolder:
    shelves = []
    for part in range(crowd.parts):
        made, seconds = timed(
            lambda part=part: write_base(place, new_part(0, part), crowd.part(part))
        )
        shelves.append(made)
        print(f"part {part}: {seconds:.0f} s", file=sys.stderr, flush=True)
    folder = IndexFolder(place)
    folder.put(Manifest(1, 0, tuple(shelves)))
    return folder


def own_memory(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the private memory of a worker."""
    for _ in batches:
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]
        told = dict(line.split(":", 1) for line in lines)
        own = sum(int(told[name].split()[0]) for name in ("Private_Clean", "Private_Dirty"))
        yield pa.RecordBatch.from_pylist([{"bytes": own * 1024}], MEMORY)


def judged(crowd: Crowd, events: list[Event]) -> Iterator[tuple[str, str, float]]:
    """Rank events for all owners of a satisfied condition, each by a scan of its own."""
    for member in crowd.interested(events):
        assert member.subscriber is not None
        matcher = Matcher([member.subscriber], member.subscriptions, "scan")
        for event in events:
            for match in matcher.matches(event):
                yield event.id, match.subscriber, match.score


def page(result: Row) -> str:
    lines = opening(
        "An index in parts",
        result,
        f"{result['size']:,} subscriptions in {result['parts']} parts, matched on Spark.",
    )
    size = result["size"]
    row = (
        f"{result['seal_s']:,.0f} s",
        f"{result['disk_bytes'] / size:,.0f}",
        f"{result['driver_bytes'] / 1e9:,.1f} GB",
        f"{result['worker_bytes'] / 1e9:,.2f} GB",
        figure(result, "matches", ",.1f"),
        figure(result, "match_per_s", ",.0f"),
        "yes" if result["right"] else "NO",
    )
    head = (
        "built in",
        "bytes on disk each",
        "driver, peak",
        "worker, private",
        "matches per event",
        "events/s",
        "right",
    )
    return "\n".join([*lines, *table(head, [row]), ""])


if __name__ == "__main__":
    main()
