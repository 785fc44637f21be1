"""The stateful operator: the state and the clock of each bucket, in a stream in the state store.

Time reaches the buckets as ticks. The match stage sends them with its matches; `with_ticks` adds
those of a clock, so that periods end where nothing is published, or those that end a batch.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from tidings.compiled.jit import write_progress
from tidings.errors import InvalidPolicy, StateError, prefix_errors
from tidings.formats.arrow import ReadEvents, read_events
from tidings.model.values import SECOND_US, parse_duration_us, parse_time_us
from tidings.spark.match_stage.match_batch import MatchBatch
from tidings.spark.match_stage.matcher_source import MicroBatch, batch_of_task
from tidings.spark.match_stage.stage import BUCKET_ROWS, tick_row
from tidings.spark.state_stage import outcomes
from tidings.spark.state_stage.bucket import Bucket, BucketSettings
from tidings.spark.state_stage.isolation import BucketInput, BucketState, run_isolated
from tidings.spark.state_stage.late_events import ArrivedRows, late_rows, pack_rows
from tidings.spark.state_stage.policies import Policies, PolicySource
from tidings.spark.state_stage.watermark import BucketClock, Tick

REPORTING: Final = 0
"""The bucket that reports the records that the source of the policies leaves out."""
OUTCOMES: Final = from_arrow_schema(outcomes.OUTCOMES)
ROW_COLUMNS: Final = ("kind", "published_us", "sequence", "body")
_PACKED: Final = 1 << 16
"""Outcomes in one packed message: some megabytes, far below what a row of Spark can hold."""


def with_ticks(rows: DataFrame, buckets: int, until: object, clock: object) -> DataFrame:
    """Add the ticks of a clock to the rows of a stream, or those that end a batch."""
    if until is not None:
        if rows.isStreaming:
            raise InvalidPolicy("until is for batches; in a stream, time or a clock closes periods")
        return rows.unionByName(last_ticks(rows.sparkSession, buckets, parse_time_us(until)))
    if clock is None:
        return rows
    if not rows.isStreaming:
        raise InvalidPolicy("clock is for streams; a batch takes until")
    if isinstance(clock, DataFrame):
        return rows.unionByName(_ticks(clock.select("clock_us"), buckets))
    return rows.unionByName(clock_ticks(rows.sparkSession, buckets, parse_duration_us(clock)))


def last_ticks(spark: SparkSession, buckets: int, until_us: int) -> DataFrame:
    """Return a tick for every bucket at the time `until_us`."""
    rows = [tick_row(bucket, until_us, 0) for bucket in range(buckets)]
    return spark.createDataFrame(pa.Table.from_pylist(rows, BUCKET_ROWS))


def clock_ticks(spark: SparkSession, buckets: int, every_us: int) -> DataFrame:
    """Return a stream of ticks for every bucket at regular intervals.

    They come from Spark's `rate` source. The checkpoint holds when it began and how far each batch
    went, so a replayed batch has the very same ticks.
    """
    if every_us < SECOND_US or every_us % SECOND_US:
        raise InvalidPolicy(f"clock must be a whole number of seconds, not {every_us / 1e6:g} s")
    seconds = spark.readStream.format("rate").option("rowsPerSecond", 1).load()
    due = seconds.where(f.col("value") % (every_us // SECOND_US) == 0)
    return _ticks(due.select(f.unix_micros("timestamp").alias("clock_us")), buckets)


def _ticks(times: DataFrame, buckets: int) -> DataFrame:
    """Return a tick for every bucket at each of some times."""
    return times.select(
        f.explode(f.sequence(f.lit(0), f.lit(buckets - 1))).alias("bucket"),
        f.lit("tick").alias("kind"),
        f.col("clock_us").alias("published_us"),
        f.lit(0).cast("long").alias("sequence"),
        f.lit(None).cast("binary").alias("body"),
    )


def run_buckets(
    rows: DataFrame,
    policies: PolicySource,
    settings: BucketSettings,
    state: DataFrame | None = None,
    read: ReadEvents = read_events,
) -> DataFrame:
    """Run the buckets over rows of BUCKET_ROWS, batch and streaming alike.

    A batch needs no state store. In a stream, a bucket emits its outcomes as packed Arrow, so
    that none of them becomes an object on the way through pandas. `state` is the first state of a
    query with a new checkpoint. `read` reads the rows for the late table.
    """
    runner = BucketRunner(policies, settings, read)
    if not rows.isStreaming and state is None:
        return rows.groupBy("bucket").applyInArrow(runner.in_batch(), OUTCOMES)
    packed = rows.groupBy("bucket").transformWithStateInPandas(
        BucketProcessor(runner),
        outputStructType="body binary",
        outputMode="Append",
        timeMode="None",
        initialState=None if state is None else state.groupBy("bucket"),
    )
    return packed.mapInArrow(unpack_outcomes, OUTCOMES)


def unpack_outcomes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the outcomes that buckets have packed."""
    for batch in batches:
        for body in batch.column("body"):
            yield from pa.ipc.open_stream(body.as_buffer())


class RanBucket(NamedTuple):
    """The outcomes of a bucket in a batch, and its state; no bucket if only its clock moved."""

    outcomes: list[pa.Table]
    clock: BucketClock
    bucket: Bucket | None = None


@dataclass
class BucketRunner:
    """Runs the rows of a batch through a bucket, wherever its state comes from."""

    source: PolicySource
    settings: BucketSettings
    read: ReadEvents

    _policies: Policies | None = None
    _batch: MicroBatch | None = None

    def run(
        self, number: int, inputs: BucketInput, clock: BucketClock, load: Callable[[], bytes | None]
    ) -> RanBucket:
        """Run one bucket; its blob is loaded only if something may be due."""
        label = f"bucket {number}: "
        with prefix_errors(label, StateError, StateError):
            late = late_rows(inputs.arrived, clock.watermark_us, self.read)
            if inputs.ends:
                inputs.ticks.extend(clock.last_ticks(inputs.ticks, self.settings.lateness_us))
        tables = [late] if late.num_rows else []
        if number == REPORTING:
            inputs = inputs._replace(refused=self.policies_of_batch().refused)
        if inputs.ticks and not (inputs.matches or inputs.letters or inputs.refused):
            moved = clock.after(inputs.ticks, self.settings.lateness_us)
            if moved is not None:  # nothing is due
                return RanBucket(tables, moved)
        state = BucketState(self.policies_of_batch(), self.settings, load(), clock)
        with prefix_errors(label, StateError, StateError):
            bucket, table = run_isolated(state, inputs)
        return RanBucket([*tables, table], bucket.clock, bucket)

    def in_batch(self) -> Callable[[tuple[pa.Scalar, ...], pa.Table], pa.Table]:
        """Return the function that runs one bucket over all rows of a batch, from an empty state.

        Spark counts the arguments of a plain function, to which a method would add one.
        """

        def run(key: tuple[pa.Scalar, ...], rows: pa.Table) -> pa.Table:
            write_progress()  # a worker has no terminal
            number = key[0].as_py()
            with prefix_errors(f"bucket {number}: ", StateError, StateError):
                inputs = read_rows([row_columns(rows)])
            ran = self.run(number, inputs, BucketClock(), lambda: None)
            return pa.concat_tables([outcomes.OUTCOMES.empty_table(), *ran.outcomes])

        return run

    def policies_of_batch(self) -> Policies:
        """Return the policies of this task's batch, resolved once for all buckets of the task."""
        batch = batch_of_task()
        if self._policies is None or batch != self._batch:
            self._policies, self._batch = self.source.policies(), batch
        return self._policies


@dataclass
class BucketProcessor(StatefulProcessor):
    """Loads a bucket, runs the rows of a micro-batch, and stores it again."""

    runner: BucketRunner

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the state; the names are those in checkpoints."""
        write_progress()  # a worker has no terminal
        self._blob = handle.getValueState("bucket", "blob binary")
        self._clock = handle.getValueState("pulse", "pulse binary")

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Run one bucket over its rows of this batch."""
        with prefix_errors(f"bucket {key[0]}: ", StateError, StateError):
            inputs = read_rows(rows)
            stored = self._clock.get()
            clock = BucketClock.unpack(bytes(stored[0])) if stored else BucketClock()
        ran = self.runner.run(key[0], inputs, clock, self._load)
        if ran.bucket is not None:
            self._blob.update((ran.bucket.pack(),))
        self._clock.update((ran.clock.pack(),))
        bodies = [
            pack_rows(batch, compression=None)
            for table in ran.outcomes
            for batch in table.combine_chunks().to_batches(max_chunksize=_PACKED)
        ]
        if bodies:
            yield pd.DataFrame({"body": bodies})

    def _load(self) -> bytes | None:
        stored = self._blob.get()
        return bytes(stored[0]) if stored else None

    def handleInitialState(  # noqa: N802
        self,
        key: Any,
        initialState: Any,  # noqa: N803
        timerValues: Any,  # noqa: N803
    ) -> None:
        """Start with the state that `rebucket` has read from another checkpoint."""
        self._blob.update((bytes(initialState["blob"].iloc[0]),))
        self._clock.update((bytes(initialState["pulse"].iloc[0]),))

    def close(self) -> None:
        """Do nothing: no resource is held open."""


def row_columns(rows: pa.Table) -> dict[str, list[Any]]:
    """Return the columns of BUCKET_ROWS as lists."""
    return {name: rows[name].to_pylist() for name in ROW_COLUMNS}


def read_rows(frames: Iterable[Any]) -> BucketInput:
    """Return the contents of rows of BUCKET_ROWS; each match batch is a tick as well.

    The frames, or dicts of lists, have the ROW_COLUMNS.
    """
    inputs, ends = BucketInput([], [], [], []), False
    for frame in frames:
        columns = (frame[name] for name in ROW_COLUMNS)
        for kind, us, sequence, body in zip(*columns, strict=True):
            if kind == "dead":
                inputs.letters.append(body)
            elif kind == "rows":
                inputs.arrived.append(ArrivedRows(int(us), bytes(body)))
            elif kind == "end":
                ends = True
            else:
                inputs.ticks.append(Tick(int(us), max(0, int(sequence))))
            if kind == "matches":
                inputs.matches.append(MatchBatch.unpack(bytes(body)))
    return inputs._replace(ends=ends)
