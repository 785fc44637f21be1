"""Changes of subscriptions while a million are served: how soon they hold, and their cost.

python bench/changes.py [--subscriptions 1000000] [--rounds 3] [--quick]

The market of bench/market.py, 5 subscriptions per subscriber, in a store that a publisher follows;
a query on Spark reads one file of events after the other, with windows of sliding(100), k = 10.
Meanwhile subscriptions are added, removed, replaced and rescored, one and a thousand at a time, and
finally so many that a new base is built in the background. A change holds within one trigger if the
first batch that begins after its commit sees it. After each change a small batch is verified: the
number of matches of every subscriber, and their mean, by a scan of all subscriptions at that
version. Results go to bench/results/changes.json and changes.md.
"""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from itertools import islice
from math import isclose
from pathlib import Path
from random import Random
from statistics import mean, median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

import market
import pages
from pages import figure, machine, opening, publish, table
from pipeline_run import EACH, POLICY
from pyspark.sql import DataFrame
from timing import timed

import tidings.spark as ts
from tidings.formats.files import write_events
from tidings.index_files.publisher import CHANGED_SHARE, MIN_CHANGED, Publisher
from tidings.model.records import Event, Subscription
from tidings.policy import Subscriber
from tidings.rank.matcher import Matcher
from tidings.store import Store, open_store

AHEAD, PATIENCE_S, CALM = 2, 1200.0, 5
JUDGED, MOST = 3, 200_000
"""Events of a verified batch: a scan of a million takes a second or two for each."""
Row = dict[str, Any]


def main() -> None:
    options = arguments()
    spark = ts.session("tidings-bench")
    result: Row = {"machine": machine(), "size": options.subscriptions, "events": options.events}
    with TemporaryDirectory(ignore_cleanup_errors=True) as place:
        folder = Path(place)
        with open_store(folder / "people.db") as store:
            crowd = Crowd(store, options.subscriptions)
            result["load_s"] = timed(crowd.load)[1]
            with Publisher(
                folder / "index", store.history, min_changed=options.fewest
            ) as publisher:
                result["begin_s"] = timed(publisher.publish)[1]
                publisher.follow()
                query = Query(spark, folder, publisher, options)
                try:
                    result |= measured(query, crowd, options)
                finally:
                    query.stop()
    publish("changes", result, page, options)


def arguments() -> argparse.Namespace:
    parser = pages.arguments(__doc__, "2,000 subscriptions, a single change of one kind")
    parser.add_argument("--subscriptions", type=int, default=1_000_000)
    parser.add_argument("--events", type=int, default=200, help="of each batch")
    parser.add_argument("--many", type=int, default=1_000, help="of a bulk change")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--fewest", type=int, default=MIN_CHANGED, help=argparse.SUPPRESS)
    parser.add_argument("--calm", type=int, default=CALM, help="batches before each change")
    options = parser.parse_args()
    if options.quick:
        options.subscriptions, options.events, options.many = 2_000, 20, 20
        options.rounds, options.fewest, options.calm = 1, 30, 1
    return options


class Crowd:
    """All subscriptions by id, in memory and in a store, and the ways in which they change."""

    def __init__(self, store: Store, size: int) -> None:
        chance = Random(9)
        self._store, self._chance = store, chance
        self.wishes = {wish.id: wish for wish in market.subscriptions(size)}
        self._people = market.people(size, POLICY)
        self._old = chance.sample(list(self.wishes), min(size // 2, MOST))
        self._new = list(market.subscriptions(min(size, MOST), seed=11))

    def load(self) -> None:
        self._store.catalogue.load([*self._people, *self.wishes.values()])

    def insert(self, count: int) -> int:
        """Add new subscriptions of existing subscribers."""
        new = [self._new.pop() for _ in range(count)]
        return self._put([replace(wish, id=f"{wish.id}-new") for wish in new])

    def delete(self, count: int) -> int:
        for each in self._some(count):
            del self.wishes[each.id]
            self._store.catalogue.remove("subscription", each.id)
        return self._store.catalogue.version()

    def replace(self, count: int) -> int:
        """Replace the conditions of subscriptions."""
        some = self._some(count)
        return self._put([replace(wish, where=self._new.pop().where) for wish in some])

    def rescore(self, count: int) -> int:
        ranks = [round(self._chance.random() / 2, 3) for _ in range(count)]
        pairs = zip(self._some(count), ranks, strict=True)
        return self._put([replace(each, prefrank=rank) for each, rank in pairs])

    def judged(self, events: list[Event]) -> dict[str, list[float]]:
        """Return all ranks of events by a scan of the present subscriptions."""
        owned, interested = dict[str, list[Subscription]](), set[str]()
        for wish in self.wishes.values():
            owned.setdefault(wish.subscriber, []).append(wish)
            if any(wish.matches(event) for event in events):
                interested.add(wish.subscriber)
        people = [Subscriber(name, POLICY) for name in sorted(interested)]
        scan = Matcher(people, (wish for name in interested for wish in owned[name]), "scan")
        ranks = dict[str, list[float]]()
        for match in (match for event in events for match in scan.matches(event)):
            ranks.setdefault(match.subscriber, []).append(match.score)
        return ranks

    def _some(self, count: int) -> list[Subscription]:
        """Return subscriptions that have not changed yet."""
        return [self.wishes[self._old.pop()] for _ in range(count)]

    def _put(self, wishes: list[Subscription]) -> int:
        self.wishes |= {wish.id: wish for wish in wishes}
        return self._store.catalogue.load(wishes)


class Seen(NamedTuple):
    """A finished batch: the version of the source that it saw, and its counts."""

    source: int
    accounts: list[Row]


class Batch(NamedTuple):
    """The start of a batch, its duration, and the version of the source that it saw."""

    began_s: float
    seconds: float
    source: int


class Query:
    """A stream that never waits for events, observed batch by batch."""

    def __init__(
        self, spark: Any, folder: Path, publisher: Publisher, options: argparse.Namespace
    ) -> None:
        self._folder, self._index = folder, publisher.folder
        self._each, self._calm = options.events, options.calm
        self._stream, self._files, self._seen = market.events(10**9), 0, dict[int, Seen]()
        self.batches = dict[int, Batch]()
        (folder / "in").mkdir()
        reader = spark.readStream.option("maxFilesPerTrigger", 1).option("cleanSource", "delete")
        lines = reader.text(str(folder / "in"))
        size = self._index.manifest(self._index.newest()).parts[0].size
        found = ts.outcomes(lines, self._index, buckets=max(8, size // EACH))
        writer = found.writeStream.foreachBatch(self._note)
        self._query = writer.option("checkpointLocation", str(folder / "check")).start()

    def wait(self, true: Callable[[], bool]) -> None:
        """Keep the stream going until a condition holds."""
        until = time.monotonic() + PATIENCE_S
        while not true():
            if time.monotonic() > until or not self._query.isActive:
                raise TimeoutError(f"the query has ended, or nothing arrived for {PATIENCE_S} s")
            if self._files < len(self._seen) + AHEAD:
                self.write(self._each)
            self._follow()
            time.sleep(0.01)

    def settle(self) -> list[Batch]:
        """Wait for some more batches, and return them."""
        number = len(self.batches) + self._calm
        self.wait(lambda: len(self.batches) >= number)
        return list(self.batches.values())[-self._calm :]

    def write(self, count: int) -> tuple[int, list[Event]]:
        """Write a file; return its batch and events."""
        events = list(islice(self._stream, count))
        new = self._folder / f"{self._files:06d}.jsonl"
        write_events(events, new)
        new.rename(self._folder / "in" / new.name)
        self._files += 1
        return self._files - 1, events

    def accounts(self, batch: int) -> list[Row]:
        """Wait for a batch; return its counts."""
        self.wait(lambda: batch in self.batches)
        return self._seen[batch].accounts

    def base(self) -> str:
        """Return the file of the newest base."""
        return self._index.manifest(self._index.newest()).parts[0].index

    def stop(self) -> None:
        """Let the query finish its batch, so that it is not interrupted, and stop it."""
        self._query.processAllAvailable()
        self._query.stop()

    def _note(self, batch: DataFrame, number: int) -> None:
        rows = batch.where("kind = 'account'").select("subscriber", "rank", "position").toArrow()
        manifest = self._index.manifest(self._index.pin(self._query.id, number))
        self._seen[number] = Seen(manifest.source, rows.to_pylist())

    def _follow(self) -> None:
        for progress in self._query.recentProgress:
            if progress.batchId in self._seen and progress.batchId not in self.batches:
                began = datetime.fromisoformat(progress.timestamp).timestamp()
                source = self._seen[progress.batchId].source
                self.batches[progress.batchId] = Batch(began, progress.batchDuration / 1000, source)


def measured(query: Query, crowd: Crowd, options: argparse.Namespace) -> Row:
    query.settle()
    rows = [
        changed(query, crowd, kind, count)
        for count in (1, options.many)
        for kind in (KINDS[:1] if options.quick and count == 1 else KINDS)
        for _ in range(options.rounds if count == 1 else 1)
    ]
    return {"rows": rows, "rebuild": rebuilt(query, crowd, options)}


KINDS = ("insert", "delete", "replace", "rescore")


def changed(query: Query, crowd: Crowd, kind: str, count: int) -> Row:
    """Make a change in the middle of a batch; return when it held, and its cost."""
    calm = median(batch.seconds for batch in query.settle())
    version, commit_s = timed(lambda: getattr(crowd, kind)(count))
    committed = time.time()
    query.wait(lambda: any(batch.source >= version for batch in query.batches.values()))
    later = [batch for batch in query.batches.values() if batch.began_s > committed]
    first = next(batch for batch in query.batches.values() if batch.source >= version)
    batch, events = query.write(JUDGED)
    got = {row["subscriber"]: (row["position"], row["rank"]) for row in query.accounts(batch)}
    row = {
        "kind": kind,
        "count": count,
        "commit_s": commit_s,
        "triggers": 1 + sum(batch.source < version for batch in later),
        "calm_s": calm,
        "first_s": first.seconds,
        "right": same(got, crowd.judged(events)),
    }
    print(row, file=sys.stderr, flush=True)
    return row


def same(got: dict[str, tuple[int, float]], due: dict[str, list[float]]) -> bool:
    return got.keys() == due.keys() and all(
        got[name][0] == len(ranks) and isclose(got[name][1], mean(ranks))
        for name, ranks in due.items()
    )


def rebuilt(query: Query, crowd: Crowd, options: argparse.Namespace) -> Row:
    """Change enough subscriptions for a new base; return the batches meanwhile."""
    before = query.settle()
    base, many = (
        query.base(),
        max(options.fewest, options.subscriptions // market.OWNED // CHANGED_SHARE),
    )
    version, began = crowd.rescore(2 * many), time.time()
    query.wait(lambda: any(batch.source >= version for batch in query.batches.values()))
    query.wait(lambda: query.base() != base)
    built_at = time.time()
    after = query.settle()
    meanwhile = [
        batch.seconds for batch in query.batches.values() if began < batch.began_s < built_at
    ]
    batch, events = query.write(JUDGED)
    got = {row["subscriber"]: (row["position"], row["rank"]) for row in query.accounts(batch)}
    return {
        "changed": 2 * many,
        "seconds": built_at - began,
        "before_s": median(batch.seconds for batch in before),
        "meanwhile_s": median(meanwhile) if meanwhile else None,
        "most_s": max(meanwhile, default=None),
        "after_s": median(batch.seconds for batch in after),
        "right": same(got, crowd.judged(events)),
    }


HEAD = (
    "change",
    "of",
    "committed in",
    "triggers until it holds",
    "batches before",
    "first batch that sees it",
    "right",
)


def page(result: Row) -> str:
    lines = opening(
        "Changes while many are served",
        result,
        f"{result['size']:,} subscriptions of {result['size'] // market.OWNED:,} subscribers, "
        f"{result['events']} events per batch. The store was loaded in {result['load_s']:,.0f} s "
        f"and first published in {result['begin_s']:,.0f} s.",
    )
    again = result["rebuild"]
    rebuilt_line = (
        f"{again['changed']:,} changes at once, and a new base {again['seconds']:,.0f} s after: "
        f"batches took {again['before_s']:.2f} s before, {figure(again, 'meanwhile_s')} s "
        f"meanwhile (at most {figure(again, 'most_s')} s), {again['after_s']:.2f} s after it; "
        f"{'right' if again['right'] else 'WRONG'}."
    )
    return "\n".join([*lines, *table(HEAD, map(cells, result["rows"])), "", rebuilt_line, ""])


def cells(row: Row) -> tuple[str, ...]:
    return (
        row["kind"],
        f"{row['count']:,}",
        f"{row['commit_s']:.3f} s",
        f"{row['triggers']}",
        f"{row['calm_s']:.2f} s",
        f"{row['first_s']:.2f} s",
        "yes" if row["right"] else "NO",
    )


if __name__ == "__main__":
    main()
