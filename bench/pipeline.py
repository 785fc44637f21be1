"""The pipeline on Spark, end to end, beside the engine in one process and beside plain SQL.

python bench/pipeline.py [--sizes 10000 100000 1000000] [--events 20000] [--cores 2] [--quick]

The market of bench/market.py, 5 subscriptions a subscriber. `kernel` ranks for everybody in this
process, on one core; `match` reads Parquet, matches on Spark and drops the matches; `feed` goes on
through windows, sliding(100) with k = 10, to deliveries; `engine` publishes to the same feeds in
this process; `sql` is bench/market_sql.py over fewer events, where it ends in time. Each is run
once before it is timed; feeds are right if they deliver as much as the engine. Results go to
bench/results/pipeline.json and pipeline.md.
"""

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import market
import market_sql
import pages
import pyarrow as pa
from pages import figure, machine, opening, publish, table
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession
from timing import timed

import tidings.spark as ts
from tidings.engine import Engine
from tidings.matching import Matcher
from tidings.model import Event, Subscription
from tidings.policy import Policy, Subscriber
from tidings.sealed.bases import seal_folder
from tidings.sealed.member import members
from tidings.window.sliding import Sliding

K, WINDOW, CHUNK = 10, 100, 1000
POLICY = Policy(k=K, window=Sliding(WINDOW))
FILES = 4
EACH = 5_000
"""Subscribers a bucket, where they are many."""
SQL_SIZE, SQL_WORK = 100_000, 200_000_000
"""SQL is asked up to this size, and for so few events that events x subscriptions stay below."""
_TEXTS, _NUMBERS = pa.map_(pa.string(), pa.string()), pa.map_(pa.string(), pa.float64())
EVENTS = pa.schema(
    {
        "id": pa.string(),
        "published_at": pa.timestamp("us", "UTC"),
        "sequence": pa.int64(),
        "texts": _TEXTS,
        "numbers": _NUMBERS,
    }
)
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


def main() -> None:
    wanted = arguments()
    spark = ts.session("tidings-bench", cores=wanted.cores)
    result = {"machine": machine(), "cores": wanted.cores, "events": wanted.events}
    with TemporaryDirectory() as folder:
        offers = Offers(spark, Path(folder), wanted.events)
        result["sizes"] = [measured(size, offers) for size in wanted.sizes]
    publish("pipeline", result, page, wanted)


def arguments() -> argparse.Namespace:
    parser = pages.arguments(__doc__, "1,000 subscriptions")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--cores", type=int, default=2)
    wanted = parser.parse_args()
    if wanted.quick:
        wanted.sizes, wanted.events = [1_000], 400
    return wanted


class Offers:
    """Events as objects and as Parquet."""

    def __init__(self, spark: SparkSession, folder: Path, count: int) -> None:
        self.spark, self.folder = spark, folder
        self.events = list(market.events(count))
        step = -(-count // FILES)
        for number in range(FILES):
            some = self.events[number * step : (number + 1) * step]
            write(market.event_rows(iter(some)), EVENTS, folder / "events" / f"{number}.parquet")

    @property
    def frame(self) -> DataFrame:
        return self.spark.read.parquet(str(self.folder / "events"))

    def predicates(self, wishes: Iterable[Subscription]) -> DataFrame:
        place = self.folder / "predicates" / "all.parquet"
        write(market.predicate_rows(iter(wishes)), PREDICATES, place)
        return self.spark.read.parquet(str(place))


def write(rows: Iterable[Row], schema: pa.Schema, path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    parquet.write_table(pa.Table.from_pylist(list(rows), schema), path)


def measured(size: int, offers: Offers) -> Row:
    wishes, everyone = list(market.subscriptions(size)), market.people(size, POLICY)
    row: Row = {"size": size, "people": len(everyone)}
    row |= in_process(offers.events, wishes, everyone)
    row |= on_spark(offers, wishes, everyone)
    if size <= SQL_SIZE:
        row |= in_sql(offers, wishes, min(len(offers.events), SQL_WORK // size))
        row["sql_ratio"] = row["feed_per_s"] / row["sql_per_s"]
    row["right"] = row["deliveries"] == row["engine_deliveries"]
    row["match_ratio"] = row["match_per_s"] / row["kernel_per_s"]
    row["engine_ratio"] = row["feed_per_s"] / row["engine_per_s"]
    print(f"{size:,}: {row}", file=sys.stderr, flush=True)
    return row


def rate(count: int, call: Callable[[], Any]) -> tuple[Any, float]:
    """What the second call gives, and how many a second it takes."""
    call()
    found, seconds = timed(call)
    return found, count / seconds


def in_process(stream: list[Event], wishes: list[Subscription], everyone: list[Subscriber]) -> Row:
    matcher = Matcher(everyone, wishes, "access")
    chunks = [stream[at : at + CHUNK] for at in range(0, len(stream), CHUNK)]
    found, kernel = rate(len(stream), lambda: [matcher.wanted(chunk) for chunk in chunks])
    engine = Engine(index="access", feeds="table", remember=1)
    for each in everyone:
        engine.subscribe(each)
    engine.add_many(wishes)
    half = len(stream) // 2
    before = len(engine.publish_many(stream[:half]))
    delivered, seconds = timed(lambda: engine.publish_many(stream[half:]))
    return {
        "matches": sum(len(each.owners) for each in found) / len(stream),
        "kernel_per_s": kernel,
        "engine_per_s": (len(stream) - half) / seconds,
        "engine_deliveries": (before + len(delivered)) / len(stream),
    }


def on_spark(offers: Offers, wishes: list[Subscription], everyone: list[Subscriber]) -> Row:
    count, place = len(offers.events), offers.folder / f"index-{len(wishes)}"
    place.mkdir()
    folder, seconds = timed(lambda: seal_folder(place, members(everyone, wishes)))
    matches = ts.match(offers.frame, folder)
    _, match = rate(count, lambda: drop(matches))
    deliveries = ts.feed(offers.frame, folder, buckets=max(8, len(everyone) // EACH))
    sent, feed = rate(count, deliveries.count)
    return {
        "seal_s": seconds,
        "index_bytes": sum(each.stat().st_size for each in place.iterdir()) / len(wishes),
        "match_per_s": match,
        "feed_per_s": feed,
        "deliveries": sent / count,
    }


def in_sql(offers: Offers, wishes: list[Subscription], count: int) -> Row:
    some = offers.frame.where(f"sequence <= {count}")
    found = market_sql.deliveries(some, offers.predicates(wishes), K)
    return {"sql_events": count, "sql_per_s": rate(count, lambda: drop(found))[1]}


def drop(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


HEAD = (
    "subscriptions",
    "sealed in",
    "bytes each",
    "matches an event",
    "deliveries an event",
    "kernel, events/s",
    "match, events/s",
    "x kernel",
    "engine, events/s",
    "feed, events/s",
    "x engine",
    "SQL, events/s",
    "x SQL",
    "right",
)


def page(result: Row) -> str:
    lines = opening(
        "The pipeline on Spark",
        result,
        f"local[{result['cores']}], {result['events']:,} events, sliding({WINDOW}), k = {K}. "
        "`x`: how many times the events a second of the column before it.",
    )
    return "\n".join([*lines, *table(HEAD, map(cells, result["sizes"])), ""])


def cells(row: Row) -> tuple[str, ...]:
    return (
        f"{row['size']:,}",
        f"{row['seal_s']:,.0f} s",
        figure(row, "index_bytes", ",.0f"),
        figure(row, "matches", ",.1f"),
        figure(row, "deliveries", ",.1f"),
        figure(row, "kernel_per_s", ",.0f"),
        figure(row, "match_per_s", ",.0f"),
        figure(row, "match_ratio", ".2f"),
        figure(row, "engine_per_s", ",.0f"),
        figure(row, "feed_per_s", ",.0f"),
        figure(row, "engine_ratio", ".2f"),
        figure(row, "sql_per_s", ",.1f"),
        figure(row, "sql_ratio", ",.0f"),
        "yes" if row["right"] else "NO",
    )


if __name__ == "__main__":
    main()
