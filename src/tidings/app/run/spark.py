"""Runs of a config on Spark; each run resumes where the previous one stopped."""

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final
from warnings import catch_warnings, simplefilter

from tidings.app.config import DEFAULT, STORE, Address, Config, Metrics
from tidings.app.run.output_folder import INDEX, OutputFolder
from tidings.app.run.plan import RunPlan
from tidings.app.run.summary import BatchSummary, FirstLook, Notify
from tidings.app.signals import StopActions, stop_on_signals
from tidings.errors import ImpossibleCondition
from tidings.formats.event_source import Source, SparkSource
from tidings.formats.messages import MessageSource
from tidings.formats.redaction import Hide, hider, is_secret
from tidings.index_files.publisher import Publisher
from tidings.index_files.read_source import Defaults
from tidings.model.diagnosis import Diagnosis
from tidings.model.values import parse_duration_us
from tidings.spark import EventWatch, outcomes, parquet_sink, session
from tidings.spark.inputs import Subscribers, Subscriptions
from tidings.spark.ops.metrics import Export, QueryTotals, json_file, prometheus_file
from tidings.spark.ops.progress import Progress, watch_outcomes
from tidings.spark.ops.query_control import (
    SinkGate,
    Write,
    explain_plans,
    follow,
    kill_spark,
    start,
)
from tidings.spark.sinks.count_outcomes import OutcomeCounts, count_outcomes, read_outcomes
from tidings.spark.sinks.files import OnWritten, format_sink
from tidings.spark.sinks.store import store_sink
from tidings.spark.sources.read_stream import read_stream
from tidings.store import open_store
from tidings.window import HOLD_US

MatchInputs = tuple[Subscriptions, Subscribers]
NAMED: Final = 1_000
"""With more subscribers than this, deliveries are not counted per subscriber."""


@dataclass(frozen=True)
class SparkDryRun:
    """The columns of a source and Spark's plan of a run that is not started."""

    columns: tuple[tuple[str, str], ...]
    plan: str


def run_spark(
    plan: RunPlan, stop: StopActions | None = None, notify: Notify | None = None
) -> Iterator[BatchSummary]:
    """Run the new events of the source; yield the summary of each batch after it is written.

    `notify` is called at most once, after the first events, if conditions have wrong attributes or
    types.
    """
    with match_inputs(plan) as inputs:
        events, first_look = 0, FirstLook(notify, endless=plan.config.endless)
        for batch in _run(plan, inputs, stop or StopActions()):
            events += batch.events
            if batch.diagnose is not None:
                first_look(events, batch.diagnose)
            yield batch


def _run(plan: RunPlan, inputs: MatchInputs, stop: StopActions) -> Iterator[BatchSummary]:
    spark, config = _session(plan.config), plan.config
    watch = EventWatch(spark) if hasattr(spark, "sparkContext") else None  # no Spark Connect
    ends = plan.folder.add_end(_last_file(config.source)) if config.holds_newest else ()
    stream = watch_outcomes(_outcomes(plan, _publications(spark, config, ends), inputs, watch))
    diagnose = partial(_diagnose, plan, watch) if watch is not None else None
    counts: dict[int, OutcomeCounts] = {}

    def count_batch(number: int, batch: Any) -> None:
        counts[number] = count_outcomes(batch, by_name=len(plan.subscribers) <= NAMED)

    def abort() -> None:
        kill_spark(spark)
        stop.on_abort()

    totals = _query_totals(config.metrics)
    with stop_on_signals(StopActions(stop.on_request, abort)) as stop_requested:
        gate = SinkGate(open_sink(plan, count_batch), stop_requested)
        every = parse_duration_us(config.trigger) if config.endless else None
        query = start(
            stream.writeStream.queryName(plan.folder.query), gate, plan.folder.checkpoint, every
        )
        quality = RunningQuality()
        for progress in follow(query, hider_of_config(config)):
            totals.add(plan.folder.query, progress)
            batch_counts = counts.pop(progress.batch)
            quality.add(batch_counts)
            summary = _summarize(progress, batch_counts, quality)
            yield replace(summary, diagnose=diagnose)


def _diagnose(plan: RunPlan, watch: EventWatch) -> Diagnosis:
    """Compare the subscriptions that the run began with to all events so far."""
    partial_owners = {
        subscriber.id for subscriber in plan.subscribers if subscriber.policy.scorer.partial
    }
    return watch.diagnose(
        plan.subscriptions, lambda subscription: subscription.subscriber in partial_owners
    )


@contextmanager
def match_inputs(plan: RunPlan) -> Iterator[MatchInputs]:
    """Yield subscriptions and subscribers: those of files, or an index that follows a store."""
    address, config = plan.config.subscriptions, plan.config
    if not isinstance(address, Address):
        yield plan.subscriptions, plan.subscribers
        return
    with open_store(address) as store:
        path = plan.folder.path / INDEX
        defaults = Defaults(config.policies, config.policy(DEFAULT), config.limits)
        with Publisher(path, store.history, defaults=defaults) as publisher:
            publisher.publish()
            publisher.follow()
            yield publisher.folder, None


@dataclass
class RunningQuality:
    """The quality of all deliveries so far; `ts.evaluate` computes more from the written ones."""

    matches: int = 0
    delivered: int = 0
    score_sum: float = 0.0
    rank_sum: float = 0.0
    held: int = 0
    released: int = 0
    dropped_by: Counter[str] = field(default_factory=Counter)

    def add(self, counts: OutcomeCounts) -> None:
        """Add a batch."""
        self.matches += counts.matches
        self.delivered += counts.deliveries
        self.score_sum += counts.scores
        self.rank_sum += counts.ranks
        self.held += counts.held
        self.released += counts.released
        self.dropped_by.update(counts.dropped_by)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures under the names of `Engine.quality`."""
        return {
            "matches": self.matches,
            "delivered": self.delivered,
            "share": self.delivered / self.matches if self.matches else None,
            "mean_score": self.score_sum / self.matches if self.matches else None,
            "mean_rank": self.rank_sum / self.delivered if self.delivered else None,
            "held": self.held,
            "released": self.released,
            "dropped": self.dropped_by.total(),
            "dropped_by": dict(sorted(self.dropped_by.items())),
        }


def dry_run(plan: RunPlan) -> SparkDryRun:
    """Read the schema of the source and compute Spark's plan without starting a query."""
    publications = _publications(_session(plan.config), plan.config)
    stream = _outcomes(plan, publications, (plan.subscriptions, plan.subscribers))
    columns = tuple((field.name, field.dataType.simpleString()) for field in publications.schema)
    return SparkDryRun(columns, hider_of_config(plan.config)(explain_plans(stream)))


def hider_of_config(config: Config) -> Hide:
    """Return a function that redacts every secret of a config in a text."""
    source = {} if isinstance(config.source, Source) else config.source.options
    option_tables = (source, config.sink.options, config.settings)
    secrets = [
        value for options in option_tables for key, value in options.items() if is_secret(key)
    ]
    for address in (config.subscriptions, config.sink.store):
        secrets += address.secrets if isinstance(address, Address) else ()
    return hider(secrets)


def _publications(spark: Any, config: Config, ends: Collection[str] = ()) -> Any:
    return read_stream(spark, config.source, limits=config.limits, ends=ends)


def _last_file(source: Source | SparkSource | MessageSource) -> Path | None:
    """Return the file that Spark will read last: the newest that is not empty."""
    files = source.files() if isinstance(source, Source) else []
    filled = [file for file in files if file.stat().st_size]
    return max(filled, key=lambda file: (file.stat().st_mtime_ns // 10**6, file), default=None)


def _session(config: Config) -> Any:
    return session(f"tidings {config.path.stem}", master=config.master, settings=config.settings)


def _outcomes(
    plan: RunPlan, publications: Any, inputs: MatchInputs, watch: EventWatch | None = None
) -> Any:
    source = plan.config.source  # hidden columns are in the content already
    with catch_warnings():
        simplefilter("ignore", ImpossibleCondition)  # the run itself reports these conditions
        return outcomes(
            publications,
            *inputs,
            lateness=f"{HOLD_US}us" if plan.config.holds_newest else plan.config.lateness,
            future=plan.config.allowed_future,
            buckets=plan.config.buckets,
            limits=plan.config.limits,
            content=[name for name in source.content if name not in source.hidden],
            watch=watch,
            clock=_clock(publications.sparkSession, plan.config.clock),
        )


def _clock(spark: Any, source: SparkSource | None) -> Any:
    """Return the stream of times of a config, if it has one."""
    if source is None:
        return None
    return spark.readStream.format(source.format).options(**source.options).load()


def _query_totals(metrics: Metrics) -> QueryTotals:
    """Return a writer of the metrics files that a config names."""
    exports: list[Export] = []
    if metrics.prometheus is not None:
        exports.append(prometheus_file(metrics.prometheus))
    if metrics.jsonl is not None:
        exports.append(json_file(metrics.jsonl))
    return QueryTotals(*exports)


def _summarize(progress: Progress, counts: OutcomeCounts, quality: RunningQuality) -> BatchSummary:
    return BatchSummary(
        progress.batch,
        progress.events,
        counts.deliveries,
        counts.late,
        counts.dead,
        counts.delivered,
        progress.to_dict(),
        quality.to_dict(),
    )


def open_sink(plan: RunPlan, on_written: OnWritten) -> Write:
    """Return the function that writes a batch to the sink and then calls `on_written`."""
    sink, folder = plan.config.sink, plan.folder
    if sink.format == STORE and sink.store is not None:
        return store_sink(sink.store, folder.query, on_written)
    if plan.config.sends:
        on_written = _with_outbox(plan, on_written)
    if sink.format == "jsonl":
        return _json_lines_sink(folder, on_written)
    if sink.format == "parquet":
        return parquet_sink(folder.path, on_written)

    def write_rest(number: int, batch: Any) -> None:
        _write_letters(folder, number, batch.where("kind in ('late', 'dead')").toArrow())
        on_written(number, batch)

    return format_sink(sink.format, sink.options, sink.select, write_rest)


def _with_outbox(plan: RunPlan, on_written: OnWritten) -> OnWritten:
    """Return a function that also writes a batch to the outbox of the channels."""
    write = store_sink(plan.config.outbox.url, plan.folder.query)

    def written(number: int, batch: Any) -> None:
        write(batch.where("kind = 'delivery'"), number)
        on_written(number, batch)

    return written


def _json_lines_sink(folder: OutputFolder, on_written: OnWritten) -> Write:
    """Return a function that writes JSON Lines from this process, as a local run does."""

    def write(batch: Any, number: int) -> None:
        batch.persist()
        try:
            table = batch.toArrow()
            folder.write_deliveries(number, read_outcomes(table).deliveries)
            _write_letters(folder, number, table)
            on_written(number, batch)
        finally:
            batch.unpersist()

    return write


def _write_letters(folder: OutputFolder, number: int, table: Any) -> None:
    """Write the late events and dead letters of a batch in the form of a local run."""
    rows = read_outcomes(table)
    late = [{**letter.to_dict(), "event": event} for event, letter in rows.late.items()]
    folder.write_letters("late", number, late)
    folder.write_letters("dead_letters", number, [letter.to_dict() for letter in rows.dead])
