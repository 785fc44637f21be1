"""Pipeline in a separate process, for tests to kill: files -> outcomes -> stores.

driver.py FOLDER RUN SESSION

FOLDER holds `in/`, the subscribers and subscriptions, and gets the checkpoint. With its session
ready, the process waits for a plan in the folder RUN. Where the plan names a point and a batch, the
pipeline stops there, writes the file `reached`, and waits to be killed. It writes `started` when
its query is about to start.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial, wraps
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
BATCH = "streaming.sql.batchId"
SINKS = ("first", "second")
"""Names of the stores of a plan, in the order in which a batch is written to them."""


def halt(run: Path) -> None:
    """Report that the point is reached, and wait to be killed."""
    (run / "reached").touch()
    time.sleep(FOR_EVER_S)


def hold(run: Path, batch: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Stop in the first partition of a batch, after its outcomes but before its state is stored."""
    yield from batches
    context = TaskContext.get()
    if context and (context.partitionId(), context.getLocalProperty(BATCH)) == (0, str(batch)):
        halt(run)


Here = tuple[Path, str, int]
"""Folder of a run, and the sink and batch in which it stops."""


def before(here: Here, work: Callable[..., Any]) -> Callable[..., Any]:
    run, sink, batch = here

    @wraps(work)
    def stopped(self: Any, query: str, number: int, *rest: Any, **more: Any) -> Any:
        if number == batch and query.startswith(sink):
            halt(run)
        return work(self, query, number, *rest, **more)

    return stopped


def after(here: Here, work: Callable[..., Any]) -> Callable[..., Any]:
    run, sink, batch = here

    @wraps(work)
    def stopped(self: Any, *rest: Any, **more: Any) -> Any:
        done = work(self, *rest, **more)
        query, number = (self.query, self.batch) if isinstance(self, BatchAppend) else rest[:2]
        if number == batch and query.startswith(sink):
            halt(run)
        return done

    return stopped


def arm(run: Path, point: str | None, batch: int) -> None:
    """Wrap the function before or after which the process is to be killed."""
    first, second = ((run, sink, batch) for sink in SINKS)
    append = Notifications.append_columns
    if point == "before the first transaction":
        Notifications.append_columns = before(first, append)  # type: ignore[method-assign]
    elif point == "in the first transaction":
        BatchAppend.write = after(first, BatchAppend.write)  # type: ignore[method-assign]
    elif point == "between the transactions":
        Notifications.append_columns = after(first, append)  # type: ignore[method-assign]
    elif point == "in the second transaction":
        BatchAppend.write = after(second, BatchAppend.write)  # type: ignore[method-assign]
    elif point == "after the second transaction":
        Notifications.append_columns = after(second, append)  # type: ignore[method-assign]


def pipeline(spark: SparkSession, folder: Path, plan: dict[str, Any], run: Path) -> DataFrame:
    reader = spark.readStream.option("maxFilesPerTrigger", plan["files"])
    found = outcomes(
        reader.text(str(folder / "in")),
        str(folder / "subscriptions.jsonl"),
        str(folder / "subscribers.jsonl"),
        lateness=plan["lateness"],
        buckets=4,
    )
    if plan.get("point") == "before the state is kept":
        found = found.mapInArrow(partial(hold, run, plan["batch"]), found.schema)
    return found


def write(plan: dict[str, Any], batch: DataFrame, number: int) -> None:
    """Write a batch to the stores of a plan, one after the other."""
    batch.persist()
    for name, address in zip(SINKS, plan["stores"], strict=False):
        store_sink(address, name, patience_s=plan["patience_s"])(batch, number)
    batch.unpersist()


def start(spark: SparkSession, folder: Path, plan: dict[str, Any], run: Path) -> StreamingQuery:
    """Start the query of a folder, which processes all input and ends."""
    found = pipeline(spark, folder, plan, run)
    writer = found.writeStream.foreachBatch(partial(write, plan)).trigger(availableNow=True)
    remove_leftovers(folder / "checkpoint")
    return writer.option("checkpointLocation", str(folder / "checkpoint")).start()


def warm(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Warm up a worker for the next task."""
    import_module("tidings.spark.state_stage.processor")
    yield from batches


def planned(run: Path) -> dict[str, Any]:
    """Wait for the plan; end with the parent process."""
    parent = os.getppid()
    while not (run / "plan.json").exists():
        if os.getppid() != parent:
            sys.exit(4)
        time.sleep(0.02)
    plan: dict[str, Any] = json.loads((run / "plan.json").read_text())
    return plan


def main(folder: Path, run: Path, given: dict[str, Any]) -> None:
    spark = session("kill", cores=2, **given)
    if not given:
        spark.range(0, 2, numPartitions=2).mapInArrow(warm, "id long").collect()
    plan = planned(run)
    arm(run, plan.get("point"), plan.get("batch", -1))
    (run / "started").touch()
    try:
        start(spark, folder, plan, run).awaitTermination()
    except StreamingQueryException as error:
        sys.stderr.write(str(error))
        sys.exit(3)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3]))
