"""A pipeline as a process of its own, for tests to kill: files -> outcomes -> store.

driver.py FOLDER

FOLDER holds `in/`, the subscribers and subscriptions, and `plan.json`. Where the plan names a point
and a batch, the pipeline stops there, writes the file `reached`, and waits to be killed. It writes
`started` when its query is about to start.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial, wraps
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

from tidings.spark import outcomes, session, store_sink
from tidings.store import sqlite
from tidings.store.append import Append
from tidings.store.notifications import Notifications

FOR_EVER_S = 3600
BATCH = "streaming.sql.batchId"


def halt(folder: Path) -> None:
    """Say that the point is reached, and wait for the end."""
    (folder / "reached").touch()
    time.sleep(FOR_EVER_S)


def hold(folder: Path, batch: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Stop in the first partition of a batch with its outcomes known and its state not kept."""
    yield from batches
    context = TaskContext.get()
    if context and (context.partitionId(), context.getLocalProperty(BATCH)) == (0, str(batch)):
        halt(folder)


def before(folder: Path, batch: int, work: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(work)
    def stopped(self: Any, query: str, number: int, *rest: Any, **more: Any) -> Any:
        if number == batch:
            halt(folder)
        return work(self, query, number, *rest, **more)

    return stopped


def after(folder: Path, batch: int, work: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(work)
    def stopped(self: Any, *rest: Any, **more: Any) -> Any:
        done = work(self, *rest, **more)
        if batch in (getattr(self, "batch", None), *rest[1:2]):
            halt(folder)
        return done

    return stopped


def arm(folder: Path, point: str | None, batch: int) -> None:
    """Wrap the function at whose begin or end the process is to be killed."""
    if point == "before the sink's transaction":
        Notifications.append_columns = before(folder, batch, Notifications.append_columns)  # type: ignore[method-assign]
    elif point == "in the sink's transaction":
        Append.write = after(folder, batch, Append.write)  # type: ignore[method-assign]
    elif point == "after the sink's transaction":
        Notifications.append_columns = after(folder, batch, Notifications.append_columns)  # type: ignore[method-assign]


def pipeline(folder: Path, plan: dict[str, Any]) -> DataFrame:
    spark = session("kill", cores=2, master=plan.get("master"), settings=plan.get("settings"))
    reader = spark.readStream.option("maxFilesPerTrigger", plan["files"])
    found = outcomes(
        reader.text(str(folder / "in")),
        str(folder / "subscriptions.jsonl"),
        str(folder / "subscribers.jsonl"),
        lateness=plan["lateness"],
        buckets=4,
    )
    if plan.get("point") == "before the state is kept":
        found = found.mapInArrow(partial(hold, folder, plan["batch"]), found.schema)
    return found


def main(folder: Path) -> None:
    plan = json.loads((folder / "plan.json").read_text())
    if pages := plan.get("most_pages"):
        limit = f"PRAGMA max_page_count = {pages}"
        sqlite._PRAGMAS = (*sqlite._PRAGMAS, limit)  # type: ignore[misc, assignment]
    arm(folder, plan.get("point"), plan.get("batch", -1))
    found = pipeline(folder, plan)
    sink = store_sink(plan["address"], "films", patience_s=plan["patience_s"])
    writer = found.writeStream.foreachBatch(sink).trigger(availableNow=True)
    (folder / "started").touch()
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        sys.stderr.write(str(error))
        sys.exit(3)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
