"""A query followed batch by batch, and stopped between batches when it is asked to."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import Event as Wish
from typing import Any, Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidings.errors import TidingsError
from tidings.formats.redaction import Hide
from tidings.spark.ops.checkpoint_repair import clear_unborn
from tidings.spark.ops.error_messages import said, told
from tidings.spark.ops.progress import Progress, read_progress

Write = Callable[[DataFrame, int], None]
_LOOK_EVERY_S: Final = 0.5


class Stopped(Exception):
    """Raised where the next batch would begin, to end a query that is asked to stop.

    Spark takes that batch again at the next start. A query that is torn away in the middle of a
    batch fills the screen with complaints.
    """


@dataclass
class Gate:
    """The way to the sink: shut as soon as the query shall stop. Keeps what the sink raised."""

    write: Write
    wish: Wish = field(default_factory=Wish)
    trouble: BaseException | None = None

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Write a batch, unless the query is asked to stop."""
        try:
            if self.wish.is_set():
                raise Stopped
            self.write(batch, number)
        except BaseException as error:
            self.trouble = error
            raise


@dataclass(frozen=True)
class Running:
    """A query that was started, and the gate before its sink."""

    query: StreamingQuery
    gate: Gate


def start(
    writer: DataStreamWriter, gate: Gate, checkpoint: str, every_us: int | None = None
) -> Running:
    """Start a query that goes on from its checkpoint.

    It takes all that there is and ends, or looks for more `every_us` until it is stopped.
    """
    clear_unborn(checkpoint)
    writer = writer.foreachBatch(gate).option("checkpointLocation", checkpoint)
    if every_us is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{every_us // 1_000} milliseconds")
    with told():
        return Running(writer.start(), gate)


def follow(running: Running, hide: Hide = str) -> Iterator[Progress]:
    """Give the progress of each batch when it is done, to the end or until the wish to stop.

    What stops the query otherwise is an error that says why; `hide` keeps secrets out of it.
    """
    query, gate = running.query, running.gate
    last, ended = -1, False
    try:
        while not ended:
            ended = _wait(query, gate, hide)
            for progress in _since(query, last):
                last = progress.batch
                yield progress
    finally:
        query.stop()


def _wait(query: StreamingQuery, gate: Gate, hide: Hide) -> bool:
    """Wait a moment; tell whether the query has ended."""
    asked = gate.wish.is_set()
    try:
        ended = bool(query.awaitTermination(_LOOK_EVERY_S))  # type: ignore[arg-type]
    except StreamingQueryException as error:
        stopped = error
    else:
        return _halted(query, ended=ended) if asked else ended
    if isinstance(gate.trouble, Stopped):
        return True
    why = gate.trouble if isinstance(gate.trouble, TidingsError) else stopped
    # Spark's error is the cause only if it shows no secret.
    cause = stopped if hide(str(stopped)) == str(stopped) else None
    raise TidingsError(f"the stream stopped: {hide(said(why))}") from cause


def _halted(query: StreamingQuery, *, ended: bool) -> bool:
    """Stop a query that is asked to and does nothing; tell whether it had ended before."""
    if not ended and not query.status["isTriggerActive"]:
        query.stop()
    return ended


def _since(query: StreamingQuery, last: int) -> Iterator[Progress]:
    """Give the batches after a number; only the last one is asked for where that will do."""
    newest = query.lastProgress
    if newest is None or newest.batchId <= last:
        return
    reports = [newest] if newest.batchId == last + 1 else query.recentProgress
    for found in map(read_progress, reports):
        if found is not None and found.batch > last:
            yield found


def tear_away(spark: SparkSession) -> None:
    """End Spark at once, in the middle of whatever it does; the next start goes on from there."""
    gateway = spark.sparkContext._gateway  # noqa: SLF001
    if gateway is not None and gateway.proc is not None:
        gateway.proc.kill()


def logical_plan(found: DataFrame) -> str:
    """Give Spark's plans of a DataFrame, as `explain` prints them."""
    execution = found._jdf.queryExecution()  # noqa: SLF001
    java: Any = found.sparkSession._jvm  # noqa: SLF001
    return str(java.PythonSQLUtils.explainString(execution, "extended"))
