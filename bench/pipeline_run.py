"""One case of the pipeline: kernel and engine in this process, match and feed on Spark, and SQL.

SQL is that of Spark and, with two threads, that of DuckDB.
"""

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import market
import market_sql
import pyarrow as pa
from market_duckdb import DuckMarket
from pages import figure, table
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession
from stages_alone import stages_alone
from timing import timed

import tidings.spark as ts
from tidings.engine.engine import Engine
from tidings.index_files.base_files import build_folder
from tidings.index_files.subscriber_bundle import bundle_subscribers
from tidings.model.records import Event, Subscription
from tidings.policy import Policy, Subscriber
from tidings.rank.matcher import Matcher
from tidings.window.sliding import Sliding

K, WINDOW, CHUNK = 10, 100, 1000
POLICY = Policy(k=K, window=Sliding(WINDOW))
FILES, DAY_S = 4, 86_400
EACH = 5_000
"""Subscribers per bucket, if there are many."""
SQL_SIZE, SQL_WORK, DUCKDB_WORK = 100_000, 50_000_000, 1_000_000_000
"""SQL runs up to this size, and with so few events that events x subscriptions stay below."""
PREDICATES = pa.schema(
    {
        "subscription": pa.string(),
        "subscriber": pa.string(),
        "prefrank": pa.float64(),
        "predicates": pa.int64(),
        "attribute": pa.string(),
        "text": pa.string(),
        "low": pa.float64(),
        "high": pa.float64(),
    }
)
Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A case: the number of subscriptions, their breadth, and the policies.

    It has the first `events` of the part, or all of them.
    """

    label: str
    size: int
    policies: tuple[Policy, ...] = (POLICY,)
    broad: float = 0.0
    prune: bool = False
    sql: bool = False
    events: int | None = None


class Offers:
    """Events as objects and as Parquet."""

    def __init__(self, spark: SparkSession, folder: Path, count: int) -> None:
        self.spark, self.folder = spark, folder
        self.events = list(market.events(count))
        step = -(-count // FILES)
        for number in range(FILES):
            some = self.events[number * step : (number + 1) * step]
            write(
                market.event_rows(iter(some)),
                market.EVENTS,
                folder / "events" / f"{number}.parquet",
            )

    def first(self, count: int) -> "Offers":
        """Return the first events alone."""
        if count == len(self.events):
            return self
        return Offers(self.spark, self.folder / f"first-{count}", count)

    @property
    def frame(self) -> DataFrame:
        return self.spark.read.parquet(str(self.folder / "events"))

    def predicates(self, wishes: Iterable[Subscription]) -> DataFrame:
        place = self.folder / "predicates" / "all.parquet"
        write(market.predicate_rows(iter(wishes)), PREDICATES, place)
        return self.spark.read.parquet(str(place))


def write(rows: Iterable[Row], schema: pa.Schema, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.Table.from_pylist(list(rows), schema), path)


def measured(case: Case, part: Offers) -> Row:
    offers = part if case.events is None else part.first(case.events)
    wishes = list(market.subscriptions(case.size, broad=case.broad))
    everyone = market.people(case.size, *case.policies)
    row: Row = {"label": case.label, "size": case.size, "people": len(everyone)}
    row["events"] = len(offers.events)
    row |= in_process(offers.events, wishes, everyone)
    row |= on_spark(offers, wishes, everyone, prune=case.prune)
    row["right"] = row["deliveries"] == row["engine_deliveries"]
    if case.sql:
        count, duckdb = (work // case.size for work in (SQL_WORK, DUCKDB_WORK))
        row |= in_sql(offers, wishes, min(len(offers.events), count))
        row |= in_duckdb(offers.events[:duckdb], wishes, everyone)
        row["sql_ratio"] = row["feed_per_s"] / row["sql_per_s"]
        row["duckdb_ratio"] = row["feed_per_s"] / row["duckdb_per_s"]
        row["right"] &= row["duckdb_right"]
    row["match_ratio"] = row["match_per_s"] / row["kernel_per_s"]
    row["engine_ratio"] = row["feed_per_s"] / row["engine_per_s"]
    print(f"{case.label}: {row}", file=sys.stderr, flush=True)
    return row


def rate(count: int, call: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of the second call, and its throughput per second."""
    call()
    result, seconds = timed(call)
    return result, count / seconds


def in_process(stream: list[Event], wishes: list[Subscription], everyone: list[Subscriber]) -> Row:
    matcher = Matcher(everyone, wishes, "access")
    chunks = [stream[at : at + CHUNK] for at in range(0, len(stream), CHUNK)]
    found, kernel = rate(len(stream), lambda: [matcher.match_many(chunk) for chunk in chunks])
    engine = Engine(index="access", feeds="table", remember=1)
    for each in everyone:
        engine.subscribe(each)
    engine.add_many(wishes)
    first, last = len(stream) // 3, 2 * len(stream) // 3
    delivered = len(engine.publish_many(stream[:first]))
    objects, seconds = timed(lambda: engine.publish_many(stream[first:last]))
    events = pa.Table.from_pylist([*market.event_rows(iter(stream[last:]))], market.EVENTS)
    columns, table_seconds = timed(lambda: engine.publish_table(events))
    delivered += len(objects) + columns.num_rows + len(engine.advance(after(stream)))
    return {
        "matches": sum(len(each.subscribers) for each in found) / len(stream),
        "kernel_per_s": kernel,
        "engine_per_s": (last - first) / seconds,
        "table_per_s": (len(stream) - last) / table_seconds,
        "engine_deliveries": delivered / len(stream),
    }


def after(stream: list[Event]) -> int:
    """Return a time at which every period has ended."""
    return len(stream) + DAY_S


def on_spark(
    offers: Offers, wishes: list[Subscription], everyone: list[Subscriber], *, prune: bool
) -> Row:
    count, place = len(offers.events), Path(mkdtemp(dir=offers.folder, prefix="index-"))
    folder, seconds = timed(lambda: build_folder(place, bundle_subscribers(everyone, wishes)))
    matches = ts.match(offers.frame, folder)
    _, match = rate(count, lambda: drop(matches))
    buckets = max(8, len(everyone) // EACH)
    until = after(offers.events)
    deliveries = ts.feed(offers.frame, folder, buckets=buckets, prune=prune, until=until)
    sent, feed = rate(count, deliveries.count)
    files = sorted(map(str, (offers.folder / "events").iterdir()))
    cores = offers.spark.sparkContext.defaultParallelism
    alone = 0.0 if prune else stages_alone(files, folder, buckets, until, cores)
    return {
        "seal_s": seconds,
        "index_bytes": sum(each.stat().st_size for each in place.iterdir()) / len(wishes),
        "match_per_s": match,
        "feed_per_s": feed,
        "deliveries": sent / count,
        **({"stages_per_s": alone, "stages_ratio": feed / alone} if alone else {}),
    }


def in_sql(offers: Offers, wishes: list[Subscription], count: int) -> Row:
    some = offers.frame.where(f"sequence <= {count}")
    deliveries = market_sql.deliveries(some, offers.predicates(wishes), K)
    return {"sql_events": count, "sql_per_s": rate(count, lambda: drop(deliveries))[1]}


def in_duckdb(stream: list[Event], wishes: list[Subscription], everyone: list[Subscriber]) -> Row:
    """Run DuckDB on two threads; it is right if it finds the matches of the index, all of them."""
    database = DuckMarket(wishes, stream, threads=2)
    matcher = Matcher(everyone, wishes, "access")
    matches, names = matcher.match_many(stream), (matcher.compiled or ())[1].names
    pairs = zip(matches.events.tolist(), matches.subscribers.tolist(), strict=True)
    found = sorted((stream[event].sequence or 0, int(names[who][1:])) for event, who in pairs)
    return {
        "duckdb_events": len(stream),
        "duckdb_per_s": rate(len(stream), lambda: database.deliveries(K))[1],
        "duckdb_right": database.matches() == found,
    }


def drop(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


HEAD = (
    "events",
    "built in",
    "bytes each",
    "matches per event",
    "deliveries per event",
    "kernel, events/s",
    "match, events/s",
    "x kernel",
    "engine, events/s",
    "engine by tables",
    "feed, events/s",
    "x engine",
    "stages alone",
    "x stages",
    "SQL, events/s",
    "x SQL",
    "DuckDB, events/s",
    "x DuckDB",
    "right",
)


def rows_of(what: str, rows: Iterable[Row]) -> list[str]:
    """Return the table of some cases."""
    return table((what, *HEAD), map(cells, rows))


def cells(row: Row) -> tuple[str, ...]:
    return (
        row["label"],
        f"{row['events']:,}",
        f"{row['seal_s']:,.0f} s",
        figure(row, "index_bytes", ",.0f"),
        figure(row, "matches", ",.1f"),
        figure(row, "deliveries", ",.1f"),
        figure(row, "kernel_per_s", ",.0f"),
        figure(row, "match_per_s", ",.0f"),
        figure(row, "match_ratio", ".2f"),
        figure(row, "engine_per_s", ",.0f"),
        figure(row, "table_per_s", ",.0f"),
        figure(row, "feed_per_s", ",.0f"),
        figure(row, "engine_ratio", ".2f"),
        figure(row, "stages_per_s", ",.0f"),
        figure(row, "stages_ratio", ".2f"),
        figure(row, "sql_per_s", ",.1f"),
        figure(row, "sql_ratio", ",.0f"),
        figure(row, "duckdb_per_s", ",.0f"),
        figure(row, "duckdb_ratio", ".1f"),
        "yes" if row["right"] else "NO",
    )
