"""Server and client of Spark Connect, run as separate programs by test_connect.py.

The client prints a line of JSON for each function: its name, and what came of it.
"""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import tidings.spark as ts
from tidings.store import open_store
from tidings.testing import Workload, workload

BUSY = "Python worker failed to connect back"
TRIES = 8
"""Spark gives the Python of `foreachBatch` ten seconds to start; a busy machine may need longer."""

WORK = workload(seed=41, events=40, subscribers=14)


def serve(port: int) -> None:
    """Run a server with the settings of `ts.session` until the input ends."""
    ts.session(
        cores=2,
        settings={
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.port": str(port),
        },
    )
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.read()


def say(name: str, work: Callable[[], Any]) -> None:
    for _ in range(TRIES):
        try:
            came = work()
        except Exception as error:  # noqa: BLE001 - whatever it is, the test reads it
            came = f"{type(error).__name__}: {error}"
        if BUSY not in str(came):
            break
    sys.stdout.write(json.dumps([name, came]) + "\n")
    sys.stdout.flush()


def streamed(spark: SparkSession, work: Workload, folder: Path) -> dict[str, Any]:
    """Run streams into files and our sinks, and from a checkpoint with other buckets."""
    lines = folder / "in"
    lines.mkdir()
    forms = [json.dumps(event.to_dict()) for event in work.events]
    (lines / "a.jsonl").write_text("\n".join(forms[:25]))

    def source() -> Any:
        return spark.readStream.text(str(lines))

    def run(frame: Any, name: str, sink: Any = None) -> None:
        writer = frame.writeStream.trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(folder / f"{name}-checkpoint"))
        into = writer.foreachBatch(sink) if sink else writer.format("parquet")
        place = into if sink else into.option("path", str(folder / name))
        query = place.start()
        query.awaitTermination(120)
        if query.exception():
            raise RuntimeError(str(query.exception()))

    def plain() -> Any:
        for _ in range(2):
            run(ts.feed(source(), work.subscriptions, work.subscribers), "plain")
            (lines / "b.jsonl").write_text("\n".join(forms[25:]))
        return pairs(spark.read.parquet(str(folder / "plain")))

    def files() -> Any:
        found = ts.outcomes(source(), work.subscriptions, work.subscribers)
        run(found, "files", ts.parquet_sink(folder / "files"))
        return pairs(spark.read.parquet(str(folder / "files" / "deliveries")))

    def store() -> Any:
        found = ts.outcomes(source(), work.subscriptions, work.subscribers)
        run(found, "store", ts.store_sink(str(folder / "news.db"), "films"))
        with open_store(folder / "news.db") as opened:
            return sum(
                len(opened.notifications.after(subscriber.id)) for subscriber in work.subscribers
            )

    def rebucket() -> Any:
        return ts.rebucket(spark, folder / "plain-checkpoint", buckets=4).count()

    return {"stream": plain, "parquet_sink": files, "store_sink": store, "rebucket": rebucket}


def pairs(deliveries: Any) -> list[list[str]]:
    return sorted([row.subscriber, row.event] for row in deliveries.collect())


def ask(port: int, folder: Path) -> None:
    """Run a client that calls every function."""
    builder: Any = SparkSession.builder
    spark, work = builder.remote(f"sc://127.0.0.1:{port}").getOrCreate(), WORK
    say("session", lambda: type(spark).__module__)
    lines = [(json.dumps(event.to_dict()),) for event in work.events]
    events = spark.createDataFrame(lines, "value string")
    wanted, people = work.subscriptions, work.subscribers
    rows = spark.sql(
        "select concat('e', id) id, timestamp_seconds(id) published_at, id % 3 as `a.b`, "
        "double(id) rank from range(30)"
    )

    def match() -> Any:
        return ts.match(events, wanted, people)

    def feed() -> Any:
        return ts.feed(events, wanted, people)

    def kinds() -> Any:
        found = ts.outcomes(events, wanted, people).where(f.col("kind") == "delivery")
        return found.count()

    def chosen(name: str) -> int:
        return ts.diversify(rows, 3, name).count()

    say("match", lambda: pairs(match()))
    say("target", lambda: ts.target(events, wanted, k=1).count())
    say("feed", lambda: pairs(feed()))
    say("outcomes", kinds)
    say("evaluate", lambda: [row.delivered for row in ts.evaluate(feed(), match()).collect()])
    for name in ("maxdivrel-lsh", "divrank"):
        say(name, partial(chosen, name))
    say("approximately", lambda: ts.diversify_approximately(rows, 3).count())
    for name, step in streamed(spark, work, folder).items():
        say(name, step)
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) == 2:
        serve(int(sys.argv[1]))
    else:
        ask(int(sys.argv[1]), Path(sys.argv[2]))
