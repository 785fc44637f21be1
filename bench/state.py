"""Windows in Spark's state store: columnar buckets next to a key per subscriber.

python bench/state.py [--subscribers 100000] [--batches 4] [--quick]

Every batch has one match per subscriber; windows are sliding(100) with k = 10. `buckets` is the
state stage of Tidings, `per key` is bench/per_key.py, a row per match, which keeps less: only
ranks. Both read Parquet with a batch per file and drop the output. Seconds are those that Spark
reports for the batches after the first. Results go to bench/results/state.json and state.md.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import pages
import per_key
import pyarrow as pa
from pages import figure, machine, opening, publish, table
from pyarrow import parquet
from pyspark.cloudpickle import register_pickle_by_value
from pyspark.sql import DataFrame, SparkSession

import tidings.spark as ts
from tidings.policy import Policy
from tidings.rank.matches import Matches
from tidings.spark.match_stage.match_batch import MatchBatch
from tidings.spark.match_stage.stage import BUCKET_ROWS, bucket_of, tick_row
from tidings.spark.state_stage.bucket import BucketSettings
from tidings.spark.state_stage.processor import run_buckets
from tidings.window.sliding import Sliding

EACH = 2_000
"""Subscribers a bucket."""
EVENTS = 100
POLICY = Policy(k=per_key.K, window=Sliding(per_key.WINDOW))
MATCHES = pa.schema(
    {
        "subscriber": pa.string(),
        "event": pa.string(),
        "published_us": pa.int64(),
        "rank": pa.float64(),
    }
)
Row = dict[str, Any]


def main() -> None:
    options = arguments()
    for module in (per_key, sys.modules[__name__]):
        register_pickle_by_value(module)  # workers have no such modules
    spark = ts.session("tidings-bench")
    result: Row = {"machine": machine(), "subscribers": options.subscribers}
    with TemporaryDirectory() as folder:
        files = MatchFiles(options.subscribers, options.batches, Path(folder))
        terms = BucketSettings(buckets=files.buckets)
        result["rows"] = [
            measured("buckets", spark, files, lambda flow: run_buckets(flow, OnePolicy(), terms)),
            measured("per key", spark, files, per_key.deliveries),
        ]
    fast, slow = (row["seconds"] for row in result["rows"])
    result["ratio"] = slow / fast
    publish("state", result, page, options)


def arguments() -> argparse.Namespace:
    parser = pages.arguments(__doc__, "2,000 subscribers")
    parser.add_argument("--subscribers", type=int, default=100_000)
    parser.add_argument("--batches", type=int, default=4)
    options = parser.parse_args()
    if options.quick:
        options.subscribers, options.batches = 2_000, 2
    return options


class OnePolicy:
    """Policies of subscribers that all have the same one."""

    version, refused, some_paused = 1, (), False

    def policies(self) -> "OnePolicy":
        return self

    def policy(self, name: str) -> Policy:
        return POLICY

    def policies_of(self, names: Sequence[str]) -> list[Policy | None]:
        return [POLICY for _ in names]

    def is_paused(self, name: str) -> bool:
        return False

    def changed_since(self, version: int) -> None:
        return


class MatchFiles:
    """The same matches in files of both forms: match batches, and a row each."""

    def __init__(self, subscribers: int, batches: int, folder: Path) -> None:
        self.folder, self.buckets = folder, max(2, subscribers // EACH)
        self.names = [f"u{number:07d}" for number in range(subscribers)]
        self._home = np.array([bucket_of(name, self.buckets) for name in self.names])
        chance = np.random.default_rng(7)
        for batch in range(batches):
            events = np.sort(chance.integers(0, EVENTS, subscribers))
            ranks = chance.random(subscribers)
            whose = chance.permutation(subscribers)
            self._write(
                "buckets", batch, list(self._flow(batch, events, ranks, whose)), BUCKET_ROWS
            )
            self._write("per key", batch, list(self._rows(batch, events, ranks, whose)), MATCHES)

    def _write(self, kind: str, batch: int, rows: list[Row], schema: pa.Schema) -> None:
        place = self.folder / kind
        place.mkdir(exist_ok=True)
        parquet.write_table(pa.Table.from_pylist(rows, schema), place / f"{batch}.parquet")

    def _flow(self, batch: int, events: Any, ranks: Any, whose: Any) -> Iterator[Row]:
        last = EVENTS * (batch + 1)
        for bucket in range(self.buckets):
            mine = self._home[whose] == bucket
            body = parcel(batch, events[mine], ranks[mine], [self.names[n] for n in whose[mine]])
            yield tick_row(bucket, last, last) | {"kind": "matches", "body": body}

    def _rows(self, batch: int, events: Any, ranks: Any, whose: Any) -> Iterator[Row]:
        for event, rank, number in zip(events.tolist(), ranks.tolist(), whose, strict=True):
            us = EVENTS * batch + event
            yield {
                "subscriber": self.names[number],
                "event": f"e{us}",
                "published_us": us,
                "rank": rank,
            }


def parcel(batch: int, events: Any, ranks: Any, names: list[str]) -> bytes:
    present, starts = np.unique(events, return_index=True)
    us = EVENTS * batch + present
    every = np.arange(len(names) + 1)
    return MatchBatch(
        events=[f"e{each}" for each in us.tolist()],
        us=us,
        sequence=us,
        forms=[""] * len(us),
        matches=Matches(
            starts=np.append(starts, len(events)),
            subscribers=every[:-1].astype(np.int32),
            ranks=ranks,
            matched_starts=every,
            matched=np.zeros(len(names), np.int32),
        ),
        subscribers=names,
        subscriptions=["s"],
    ).pack()


def measured(
    kind: str, spark: SparkSession, files: MatchFiles, run: Callable[[DataFrame], DataFrame]
) -> Row:
    place = files.folder / kind
    schema = spark.read.parquet(str(place)).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    writer = run(reader.parquet(str(place))).writeStream.format("noop").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(files.folder / f"check {kind}"))
    query = writer.start()
    query.awaitTermination()
    batches = [progress for progress in query.recentProgress if progress.numInputRows]
    seconds = [progress.durationMs["triggerExecution"] / 1000 for progress in batches]
    state = batches[-1].stateOperators[0]
    return {
        "kind": kind,
        "seconds": min(seconds[1:]),
        "first_s": seconds[0],
        "rows_per_s": len(files.names) / min(seconds[1:]),
        "state_rows": state.numRowsTotal,
    }


def page(result: Row) -> str:
    lines = opening(
        "State of many subscribers on Spark",
        result,
        f"{result['subscribers']:,} subscribers, one match each in every batch. Buckets are "
        f"{result['ratio']:,.1f} times faster than a key per subscriber.",
    )
    head = ("state", "s per batch", "s, first batch", "matches/s", "rows of state")
    return "\n".join([*lines, *table(head, map(cells, result["rows"])), ""])


def cells(row: Row) -> tuple[str, ...]:
    return (
        row["kind"],
        figure(row, "seconds", ".2f"),
        figure(row, "first_s", ".2f"),
        figure(row, "rows_per_s", ",.0f"),
        figure(row, "state_rows", ",.0f"),
    )


if __name__ == "__main__":
    main()
