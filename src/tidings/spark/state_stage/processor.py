"""The stateful operator: the state and the clock of each bucket, in a stream in the state store.

Time reaches the buckets as ticks. The match stage sends them with its matches; `with_ticks` adds
those of a clock, so that periods end where nothing is published, or those that end a batch.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.serializers import CPickleSerializer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from tidings.compiled.jit import write_progress
from tidings.errors import InvalidPolicy, StateError, prefix_errors
from tidings.feed.policy_key import unregistered
from tidings.formats.arrow import ReadEvents, read_events
from tidings.index_files.manifest import RefusedRecord
from tidings.model.dead_letter import Culprit, Failure
from tidings.model.values import SECOND_US, parse_duration_us, parse_time_us
from tidings.policy import Subscriber
from tidings.rank.matches import Matches
from tidings.spark.bisect_failures import attempt, bisect
from tidings.spark.match_stage.match_batch import MatchBatch
from tidings.spark.match_stage.matcher_source import MicroBatch, batch_of_task
from tidings.spark.match_stage.stage import BUCKET_ROWS, tick_row
from tidings.spark.session import SHUFFLE
from tidings.spark.state_stage import outcomes
from tidings.spark.state_stage.bucket import Bucket, BucketSettings
from tidings.spark.state_stage.outcomes import ArrivedRows, late_rows, pack_rows
from tidings.spark.state_stage.policies import ListedPolicies, Policies, PolicySource
from tidings.spark.state_stage.watermark import BucketClock, Tick

# Isolation of failures in a bucket: an event or subscriber that fails never stops the others.
#
# The state of a bucket is packed between batches, so a run that fails has changed nothing that is
# kept: trials start from the packed state, as often as needed. If nothing fails, there are none.
# Trials depend on the state and the micro-batch only, so a replayed batch finds the same culprits.
#
# Feeds set a subscriber aside themselves if its policy fails for a match or as time passes
# (`TableFeeds.set_aside`). Trials find the rest: events that cannot be compared, and policies for
# which no feed can be opened.

Reasons = dict[str, str]

PROBE: Final = "tidings-probe"


class BucketInput(NamedTuple):
    """Everything that a bucket receives in a micro-batch; each match batch is a tick as well.

    `arrived` are rows for the late table. `refused` are the records that the source of the
    policies leaves out; one bucket gets them. If the stream `ends` with this batch, nothing waits
    for other events of the newest time.
    """

    matches: list[MatchBatch]
    ticks: list[Tick]
    letters: list[bytes]
    arrived: list[ArrivedRows]
    refused: Sequence[RefusedRecord] = ()
    ends: bool = False


class BucketState(NamedTuple):
    """Packed state of a bucket, and all that is needed to open it."""

    policies: Policies
    settings: BucketSettings
    blob: bytes | None
    clock: BucketClock

    def open(self) -> Bucket:
        """Return a new bucket with this state."""
        bucket = Bucket(self.policies, self.settings)
        if self.blob is not None:
            bucket.unpack(self.blob, self.clock)
        return bucket


class BucketRun(NamedTuple):
    """A bucket after a micro-batch, and its outcomes."""

    bucket: Bucket
    outcomes: pa.Table


def run_isolated(state: BucketState, inputs: BucketInput) -> BucketRun:
    """Run a micro-batch, leaving out the events and subscribers for which it fails.

    1. A subscriber is set aside if its policy fails even for a plain event in an empty window.
    2. An event is left out if built-in policies fail for it alone, in empty windows.
    3. A subscriber is set aside if the batch fails for it alone.

    A subscriber that is set aside gets nothing of this batch nor of later ones until its policy
    changes. Each culprit is a dead letter.
    """
    bucket = state.open()
    result = attempt(bucket.run, inputs.matches, inputs.ticks, inputs.letters, inputs.refused)
    if not isinstance(result, Failure):
        return BucketRun(bucket, result)
    trials = Trials(state, inputs)
    if isinstance(attempt(trials.run_for, frozenset()), Failure):
        raise result.error  # not even a bucket without subscribers can take the batch
    culprits = trials.culprits()
    bucket = state.open()
    letters = [bucket.set_aside(culprits.subscribers)]
    if culprits.events:
        letters.append(outcomes.unusable_events(trials.matches, culprits.events))
        bucket.drop_events(culprits.events.keys())
    usable = [batch.without_events(culprits.events.keys()) for batch in inputs.matches]
    table = bucket.run(usable, inputs.ticks, inputs.letters, inputs.refused)
    return BucketRun(bucket, pa.concat_tables([table, *letters]))


class Culprits(NamedTuple):
    """Subscribers and events for which a batch fails, with the reasons."""

    subscribers: Reasons
    events: Reasons


class Trials:
    """Runs of parts of a micro-batch, on copies of a bucket."""

    def __init__(self, state: BucketState, inputs: BucketInput) -> None:
        self._state, self._inputs = state, inputs
        bucket = state.open()
        self._enrolled = [*bucket.feeds.tables.subscribers.names]
        self.matches = MatchBatch.merged([bucket.waiting, *inputs.matches])
        self._policies = {
            name: policy
            for name in self.matches.subscribers
            if (policy := bucket.policy(name)) is not None
        }

    def culprits(self) -> Culprits:
        """Find the culprits in the order of `run_isolated`, each kind without those before."""
        subscribers = self._unusable_policies()
        usable = [name for name in self._policies if name not in subscribers]
        built_in = self._of([name for name in usable if not unregistered(self._policies[name])])
        failing = _culprits(
            lambda positions: self._run_alone(built_in, positions), range(len(built_in.events))
        )
        events = {built_in.events[position]: reason for position, reason in failing.items()}
        suspects = sorted({*self._enrolled, *usable} - subscribers.keys())
        subscribers |= _culprits(
            lambda names: self.run_for(frozenset(names), events.keys()), suspects
        )
        return Culprits(subscribers, events)

    def run_for(self, names: AbstractSet[str], without: AbstractSet[str] = frozenset()) -> pa.Table:
        """Run the batch for some subscribers only, without some events."""
        bucket = self._state.open()
        bucket.keep_only(names)
        bucket.drop_events(without)
        batches = [
            batch.of_subscribers(np.array([name in names for name in batch.subscribers], np.bool_))
            for batch in (received.without_events(without) for received in self._inputs.matches)
        ]
        return bucket.run(batches, self._inputs.ticks)

    def _unusable_policies(self) -> Reasons:
        """Return the subscribers whose policies fail for any event; each policy is tried once."""
        reasons: dict[int, str | None] = {}
        for name, policy in self._policies.items():
            if id(policy) not in reasons:
                bucket = Bucket(ListedPolicies.of({name: Subscriber(name, policy)}))
                result = attempt(bucket.run, [_probe(name)], [Tick(0, 0)])
                reasons[id(policy)] = result.reason if isinstance(result, Failure) else None
        by_name = {name: reasons[id(policy)] for name, policy in self._policies.items()}
        return {name: reason for name, reason in by_name.items() if reason is not None}

    def _of(self, names: Iterable[str]) -> MatchBatch:
        chosen = {*names}
        mask = [name in chosen for name in self.matches.subscribers]
        return self.matches.of_subscribers(np.array(mask, np.bool_))

    def _run_alone(self, batch: MatchBatch, positions: Sequence[int]) -> pa.Table:
        """Run some events through empty windows, all at once."""
        events = batch.select(np.array(positions, np.int64))
        settings = self._state.settings._replace(lateness_us=0)
        ticks = [Tick(int(us), 0) for us in events.us.tolist()]
        return Bucket(self._state.policies, settings).run([events], ticks)


def _culprits(run: Callable[[Sequence[Any]], object], items: Sequence[Any]) -> dict[Any, str]:
    """Return the items for which `run` fails even alone, with the reasons."""
    results = bisect(run, items)
    return {culprit.item: culprit.reason for culprit in results if isinstance(culprit, Culprit)}


def _probe(name: str) -> MatchBatch:
    """Return a match of an event without attributes."""
    one, zero = np.array([0, 1]), np.zeros(1, np.int32)
    return MatchBatch(
        [PROBE],
        np.zeros(1, np.int64),
        np.zeros(1, np.int64),
        ['{"id": "tidings-probe", "published_at": 0, "attributes": {}}'],
        Matches(one, zero, np.zeros(1), one, zero),
        [name],
        [PROBE],
    )


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
    *,
    only_deliveries: bool = False,
) -> DataFrame:
    """Run the buckets over rows of BUCKET_ROWS, batch and streaming alike.

    A batch needs no state store. In a stream, a bucket emits its outcomes as packed Arrow, so
    that none of them becomes an object on the way through pandas. `state` is the first state of a
    query with a new checkpoint. `read` reads the rows for the late table. Java takes longer for a
    row than the windows do, so with `only_deliveries` no other outcome leaves Python.
    """
    settings = settings._replace(only_deliveries=only_deliveries)
    schema = from_arrow_schema(outcomes.DELIVERED) if only_deliveries else OUTCOMES
    if not rows.isStreaming and state is None:
        alone = BucketRunner(policies, settings._replace(alone=True), read)
        return (
            spread(rows, settings.buckets).groupBy("bucket").applyInArrow(alone.in_batch(), schema)
        )
    runner = BucketRunner(policies, settings, read)
    packed = rows.groupBy("bucket").transformWithStateInPandas(
        bucket_processor(runner),
        outputStructType="body binary",
        outputMode="Append",
        timeMode="None",
        initialState=None if state is None else state.groupBy("bucket"),
    )
    return packed.mapInArrow(unpack_outcomes, schema)


def spread(rows: DataFrame, buckets: int) -> DataFrame:
    """Return rows with as many buckets in each partition, as far as they can be divided.

    By hash, one of two tasks would have 5 of 8 buckets, or 8 of 12, and the other would wait.
    """
    tasks = int(rows.sparkSession.conf.get(SHUFFLE) or 0)
    return rows.repartitionById(max(1, min(tasks, buckets)), "bucket")


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
            schema = outcomes.DELIVERED if self.settings.only_deliveries else outcomes.OUTCOMES
            return pa.Table.from_batches(self.emitted(ran), schema)

        return run

    def in_stream(
        self, number: int, rows: Iterator[Any], blob: Any, clock: Any
    ) -> Iterator[pd.DataFrame]:
        """Load a bucket from the state store, run it over its rows of a batch, and store it."""
        write_progress()  # a worker has no terminal
        with prefix_errors(f"bucket {number}: ", StateError, StateError):
            inputs = read_rows(rows)
            stored = clock.get()
            before = BucketClock.unpack(bytes(stored[0])) if stored else BucketClock()
        ran = self.run(number, inputs, before, partial(_load, blob))
        if ran.bucket is not None:
            blob.update((ran.bucket.pack(),))
        clock.update((ran.clock.pack(),))
        if emitted := self.emitted(ran):
            table = pa.Table.from_batches(emitted).combine_chunks()
            batches = table.to_batches(max_chunksize=_PACKED)
            yield pd.DataFrame({"body": [pack_rows(batch, compression=None) for batch in batches]})

    def emitted(self, ran: RanBucket) -> list[pa.RecordBatch]:
        """Return what leaves a bucket."""
        batches = [batch for table in ran.outcomes for batch in table.to_batches()]
        return outcomes.delivered(batches) if self.settings.only_deliveries else batches

    def policies_of_batch(self) -> Policies:
        """Return the policies of this task's batch, resolved once for all buckets of the task."""
        batch = batch_of_task()
        if self._policies is None or batch != self._batch:
            self._policies, self._batch = self.source.policies(), batch
        return self._policies


def _load(blob: Any) -> bytes | None:
    stored = blob.get()
    return bytes(stored[0]) if stored else None


def bucket_processor(runner: BucketRunner) -> StatefulProcessor:
    """Return a processor that stores the buckets of a runner, which it unpickles when rows arrive.

    When a query starts, Spark asks a Python process for the names of its state, and waits for it.
    With the runner, that process would import all modules of the stages, for more than a second. A
    class within a function is pickled by value, so nothing of Tidings is needed to unpickle this
    one.
    """
    pickled = CPickleSerializer().dumps(runner)  # type: ignore[no-untyped-call]

    class BucketProcessor(StatefulProcessor):
        def __init__(self) -> None:
            self._runner: Any = None

        def init(self, handle: StatefulProcessorHandle) -> None:  # the names are in checkpoints
            self._blob = handle.getValueState("bucket", "blob binary")
            self._clock = handle.getValueState("pulse", "pulse binary")

        def handleInputRows(  # noqa: N802
            self,
            key: Any,
            rows: Iterator[Any],
            timerValues: Any,  # noqa: N803
        ) -> Iterator[Any]:
            if self._runner is None:
                self._runner = pickle.loads(pickled)
            frames: Iterator[Any] = self._runner.in_stream(key[0], rows, self._blob, self._clock)
            return frames

        def handleInitialState(  # noqa: N802
            self,
            key: Any,
            initialState: Any,  # noqa: N803
            timerValues: Any,  # noqa: N803
        ) -> None:  # that `rebucket` has read from another checkpoint
            self._blob.update((bytes(initialState["blob"].iloc[0]),))
            self._clock.update((bytes(initialState["pulse"].iloc[0]),))

        def close(self) -> None:
            pass

    return BucketProcessor()


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
