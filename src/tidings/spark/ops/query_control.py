"""Control of a running query: start it, follow its batches, and stop it between batches."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event as Flag
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidings.errors import TidingsError
from tidings.formats.redaction import Hide
from tidings.spark.ops.error_messages import describe_error, reporting_errors
from tidings.spark.ops.progress import Progress, read_progress

Write = Callable[[DataFrame, int], None]
_POLL_S: Final = 0.5


class Stopped(Exception):
    """Raised at the start of the next batch to end a query that is asked to stop.

    Spark runs that batch again at the next start. A query that is killed in the middle of a batch
    fills the screen with error messages.
    """


@dataclass
class SinkGate:
    """A sink that raises `Stopped` once a stop is requested, and keeps the error of the sink."""

    write: Write
    stop_requested: Flag = field(default_factory=Flag)
    error: BaseException | None = None

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Write a batch, unless a stop is requested."""
        try:
            if self.stop_requested.is_set():
                raise Stopped
            self.write(batch, number)
        except BaseException as error:
            self.error = error
            raise


@dataclass(frozen=True)
class RunningQuery:
    """A started query and the gate of its sink."""

    query: StreamingQuery
    gate: SinkGate


def start(
    writer: DataStreamWriter, gate: SinkGate, checkpoint: str, every_us: int | None = None
) -> RunningQuery:
    """Start a query that resumes from its checkpoint.

    It processes all available input and ends, or looks for more `every_us` until it is stopped.
    """
    remove_leftovers(checkpoint)
    writer = writer.foreachBatch(gate).option("checkpointLocation", checkpoint)
    if every_us is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{every_us // 1_000} milliseconds")
    with reporting_errors():
        return RunningQuery(writer.start(), gate)


def remove_leftovers(checkpoint: str | Path) -> list[str]:
    """Remove temporary files from a checkpoint without batches, and return their names.

    A process that dies while it logs its very first batch leaves a temporary file behind. Nothing
    has run by then, but Spark refuses the folder as that of another query because it is not empty.
    A checkpoint with batches is left alone, and so is one that is not on a local disk.
    """
    address = urlsplit(str(checkpoint))
    if address.scheme not in ("", "file"):
        return []
    folder = Path(unquote(address.path) if address.scheme else checkpoint)
    logs = [folder / name for name in ("offsets", "commits")]
    files = [file for log in logs if log.is_dir() for file in log.iterdir()]
    if not all(file.name.startswith(".") for file in files):
        return []
    leftovers = [file for file in files if ".tmp" in file.suffixes]
    for file in leftovers:
        file.unlink()
    return sorted(file.name for file in leftovers)


def follow(running: RunningQuery, hide: Hide = str) -> Iterator[Progress]:
    """Yield the progress of each finished batch, until the query ends or a stop is requested.

    If the query fails, an error with the reason is raised; `hide` keeps secrets out of it.
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


def _wait(query: StreamingQuery, gate: SinkGate, hide: Hide) -> bool:
    """Wait a moment; return whether the query has ended."""
    stopping = gate.stop_requested.is_set()
    try:
        ended = bool(query.awaitTermination(_POLL_S))  # type: ignore[arg-type]
    except StreamingQueryException as error:
        failure = error
    else:
        return _stop_if_idle(query, ended=ended) if stopping else ended
    if isinstance(gate.error, Stopped):
        return True
    why = gate.error if isinstance(gate.error, TidingsError) else failure
    # Spark's error is the cause only if it shows no secret.
    cause = failure if hide(str(failure)) == str(failure) else None
    raise TidingsError(f"the stream stopped: {hide(describe_error(why))}") from cause


def _stop_if_idle(query: StreamingQuery, *, ended: bool) -> bool:
    """Stop a query between batches; return whether it had ended before."""
    if not ended and not query.status["isTriggerActive"]:
        query.stop()
    return ended


def _since(query: StreamingQuery, last: int) -> Iterator[Progress]:
    """Yield the progress of batches after a number, from the last report alone if that suffices."""
    newest = query.lastProgress
    if newest is None or newest.batchId <= last:
        return
    reports = [newest] if newest.batchId == last + 1 else query.recentProgress
    for progress in map(read_progress, reports):
        if progress is not None and progress.batch > last:
            yield progress


def kill_spark(spark: SparkSession) -> None:
    """Kill Spark at once, even in the middle of a batch; the next start resumes from there."""
    gateway = spark.sparkContext._gateway  # noqa: SLF001
    if gateway is not None and gateway.proc is not None:
        gateway.proc.kill()


def explain_plans(frame: DataFrame) -> str:
    """Return Spark's plans of a DataFrame as `explain` prints them."""
    execution = frame._jdf.queryExecution()  # noqa: SLF001
    java: Any = frame.sparkSession._jvm  # noqa: SLF001
    return str(java.PythonSQLUtils.explainString(execution, "extended"))
