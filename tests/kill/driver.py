"""Pipelines in a separate process, for tests to kill: files -> outcomes -> stores.

driver.py RUN SESSION

With its session ready, the process waits for plans in the folder RUN and starts their pipelines one
after the other. Where a plan names a point and a batch, its pipeline stops there and writes the
file `reached`; the next one starts. A pipeline without a point runs to its end. The process writes
`started` when its first query is about to start, and waits to be killed if a pipeline has stopped.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tidings.spark import outcomes, session, store_sink
from tidings.spark.ops.query_control import remove_leftovers
from tidings.store.append_batch import BatchAppend
from tidings.store.notifications import Notifications

FOR_EVER_S = 3600
PAUSE_S = 0.02
BATCH = "streaming.sql.batchId"
BUSY = "Python worker failed to connect back"
"""Spark gives the Python of a new query ten seconds to start; a busy machine may need longer."""
SINKS = ("first", "second")
"""Names of the stores of a plan, in the order in which a batch is written to them."""
TRANSACTIONS = {
    "before the first transaction": ("before", "first"),
    "in the first transaction": ("in", "first"),
    "between the transactions": ("after", "first"),
    "in the second transaction": ("in", "second"),
    "after the second transaction": ("after", "second"),
}


def halt(folder: Path) -> None:
    """Report that the point is reached, and wait to be killed."""
    (folder / "reached").touch()
    time.sleep(FOR_EVER_S)


def hold_input(
    folder: Path, batch: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Stop in a batch whose offsets are logged, before any of its records is read."""
    if _first_task(batch):
        halt(folder)
    yield from batches


def hold_output(
    folder: Path, batch: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Stop in the first task of a batch after its last outcome."""
    yield from batches
    if _first_task(batch):
        halt(folder)


def _first_task(batch: int) -> bool:
    context = TaskContext.get()
    if context is None:
        return False
    return (context.partitionId(), context.getLocalProperty(BATCH)) == (0, str(batch))


def arm(plans: list[dict[str, Any]]) -> None:
    """Make the functions that write to stores stop at the points of the plans."""
    stops = {}
    for plan in plans:
        if plan["point"] in TRANSACTIONS:
            when, sink = TRANSACTIONS[plan["point"]]
            folder = Path(plan["folder"])
            stops[when, sink_name(folder, sink), plan["batch"]] = folder

    def stop(when: str, query: str, batch: int) -> None:
        if folder := stops.get((when, query.partition("/")[0], batch)):
            halt(folder)

    append, write = Notifications.append_columns, BatchAppend.write

    def append_columns(self: Any, query: str, batch: int, *rest: Any, **more: Any) -> Any:
        stop("before", query, batch)
        done = append(self, query, batch, *rest, **more)
        stop("after", query, batch)
        return done

    def write_rows(self: Any, *rest: Any, **more: Any) -> Any:
        done = write(self, *rest, **more)
        stop("in", self.query, self.batch)
        return done

    Notifications.append_columns = append_columns  # type: ignore[method-assign]
    BatchAppend.write = write_rows  # type: ignore[method-assign]


def sink_name(folder: Path, sink: str) -> str:
    return f"{folder.name}-{sink}"


def pipeline(spark: SparkSession, folder: Path, plan: dict[str, Any]) -> DataFrame:
    stream, point = Path(plan["stream"] or folder), plan["point"]
    lines = spark.readStream.option("maxFilesPerTrigger", plan["files"]).text(str(stream / "in"))
    if point == "after the offsets":
        lines = lines.mapInArrow(partial(hold_input, folder, plan["batch"]), lines.schema)
    found = outcomes(
        lines,
        str(stream / "subscriptions.jsonl"),
        str(stream / "subscribers.jsonl"),
        lateness=plan["lateness"],
        buckets=4,
    )
    if point == "before the tasks end":
        found = found.mapInArrow(partial(hold_output, folder, plan["batch"]), found.schema)
    return found


def write(folder: Path, plan: dict[str, Any], batch: DataFrame, number: int) -> None:
    """Write a batch to the stores of a plan, one after the other."""
    batch.persist()
    if (plan["point"], plan["batch"]) == ("after the state is kept", number):
        batch.count()
        halt(folder)
    for sink, address in zip(SINKS, plan["stores"], strict=False):
        name = sink_name(folder, sink)
        store_sink(address, name, patience_s=plan["patience_s"])(batch, number)
    batch.unpersist()


def start(spark: SparkSession, folder: Path, plan: dict[str, Any]) -> StreamingQuery:
    """Start the query of a folder, which processes all input and ends."""
    found = pipeline(spark, folder, plan)
    into = found.writeStream.foreachBatch(partial(write, folder, plan)).trigger(availableNow=True)
    remove_leftovers(folder / "checkpoint")
    return into.option("checkpointLocation", str(folder / "checkpoint")).start()


def run_all(spark: SparkSession, plans: list[dict[str, Any]]) -> None:
    """Run one pipeline after the other; if one has stopped at its point, wait to be killed."""
    stopped = False
    for plan in plans:
        while not run_one(spark, plan):
            pass
        stopped |= plan["point"] is not None
    if stopped:
        time.sleep(FOR_EVER_S)


def run_one(spark: SparkSession, plan: dict[str, Any]) -> bool:
    """Run a pipeline to its point or its end; return False if Spark was too busy to start it."""
    folder = Path(plan["folder"])
    query = start(spark, folder, plan)
    while query.isActive:
        if plan["point"] and (folder / "reached").exists():
            return True
        time.sleep(PAUSE_S)
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        if BUSY not in str(error):
            raise
        return False
    assert plan["point"] is None, f"the pipeline never stopped {plan['point']}"
    return True


def warm(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Warm up a worker for the next task."""
    import_module("tidings.spark.state_stage.processor")
    yield from batches


def wait_for_plans(run: Path) -> list[dict[str, Any]]:
    """Wait for the plans; end with the parent process."""
    parent = os.getppid()
    while not (run / "plans.json").exists():
        if os.getppid() != parent:
            sys.exit(4)
        time.sleep(PAUSE_S)
    plans: list[dict[str, Any]] = json.loads((run / "plans.json").read_text())
    return plans


def main(run: Path, given: dict[str, Any]) -> None:
    spark = session("kill", **{"cores": 2, **given})
    if "master" not in given:
        spark.range(0, 2, numPartitions=2).mapInArrow(warm, "id long").collect()
    plans = wait_for_plans(run)
    arm(plans)
    (run / "started").touch()
    try:
        run_all(spark, plans)
    except StreamingQueryException as error:
        sys.stderr.write(str(error))
        sys.exit(3)


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
