"""Runs a config on Spark, going on where its last run stopped."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from tidings.app.config import DEFAULT, Address, Config, Metrics
from tidings.app.run.output_folder import INDEX
from tidings.app.run.plan import Plan
from tidings.app.run.spark_sinks import open_sink
from tidings.app.run.stopping import Stop
from tidings.app.run.summary import Batch
from tidings.app.signals import interrupts
from tidings.formats.event_source import SparkSource
from tidings.formats.redaction import Hide, hider, is_secret
from tidings.index_files.publisher import Publisher
from tidings.index_files.read_source import Defaults
from tidings.model.values import parse_duration_us
from tidings.spark import outcomes, session
from tidings.spark.inputs import Subscribers, Subscriptions
from tidings.spark.ops.metrics import Export, Ledger, json_file, prometheus_file
from tidings.spark.ops.progress import Progress, watch_outcomes
from tidings.spark.ops.query_control import Gate, follow, logical_plan, start, tear_away
from tidings.spark.sinks.count_outcomes import Tally, tally
from tidings.spark.sources.read_stream import read_stream
from tidings.store import open_store

Wanted = tuple[Subscriptions, Subscribers]
NAMED: Final = 1_000
"""Of more subscribers than that, deliveries are not counted one by one."""


@dataclass(frozen=True)
class Sketch:
    """What a run would do: the columns of its source, and Spark's plan."""

    columns: tuple[tuple[str, str], ...]
    plan: str


def run_spark(plan: Plan, stop: Stop | None = None) -> Iterator[Batch]:
    """Run what is new in the source; give what came of each batch when it is written."""
    with wanted_by(plan) as wanted:
        yield from _run(plan, wanted, stop or Stop())


def _run(plan: Plan, wanted: Wanted, stop: Stop) -> Iterator[Batch]:
    spark, config = _session(plan.config), plan.config
    found = watch_outcomes(_outcomes(plan, _publications(spark, config), wanted))
    tallies: dict[int, Tally] = {}

    def note(number: int, batch: Any) -> None:
        tallies[number] = tally(batch, by_name=len(plan.subscribers) <= NAMED)

    def at_once() -> None:
        tear_away(spark)
        stop.at_once()

    ledger = _ledger(config.metrics)
    with interrupts(stop.heard, at_once) as wish:
        gate = Gate(open_sink(plan, note), wish)
        every = parse_duration_us(config.trigger) if config.endless else None
        running = start(
            found.writeStream.queryName(plan.folder.query), gate, plan.folder.checkpoint, every
        )
        sums = Sums()
        for progress in follow(running, hider_of_config(config)):
            ledger.tell(plan.folder.query, progress)
            counted = tallies.pop(progress.batch)
            sums.add(counted)
            yield _batch(progress, counted, sums)


@contextmanager
def wanted_by(plan: Plan) -> Iterator[Wanted]:
    """Give who wants what: as it was read, or in a folder that follows the changes of a store."""
    address, config = plan.config.subscriptions, plan.config
    if not isinstance(address, Address):
        yield plan.subscriptions, plan.subscribers
        return
    with open_store(address.url) as store:
        path = plan.folder.path / INDEX
        defaults = Defaults(config.policies, config.policy(DEFAULT), config.limits)
        with Publisher(path, store.history, defaults=defaults) as publisher:
            publisher.publish()
            publisher.follow()
            yield publisher.folder, None


@dataclass
class Sums:
    """How good the deliveries of a run are so far; `ts.evaluate` tells more of what is written."""

    matches: int = 0
    delivered: int = 0
    scores: float = 0.0
    ranks: float = 0.0

    def add(self, counted: Tally) -> None:
        """Take a batch in."""
        self.matches += counted.matches
        self.delivered += counted.deliveries
        self.scores += counted.scores
        self.ranks += counted.ranks

    def to_dict(self) -> dict[str, Any]:
        """Give the figures as `Engine.quality` names them."""
        return {
            "matches": self.matches,
            "delivered": self.delivered,
            "share": self.delivered / self.matches if self.matches else None,
            "mean_score": self.scores / self.matches if self.matches else None,
            "mean_rank": self.ranks / self.delivered if self.delivered else None,
        }


def sketch(plan: Plan) -> Sketch:
    """Read the schema of the source and make Spark's plan; no query is started."""
    publications = _publications(_session(plan.config), plan.config)
    found = _outcomes(plan, publications, (plan.subscriptions, plan.subscribers))
    columns = tuple((each.name, each.dataType.simpleString()) for each in publications.schema)
    return Sketch(columns, hider_of_config(plan.config)(logical_plan(found)))


def hider_of_config(config: Config) -> Hide:
    """Return a function that hides all secrets of a config in a text."""
    source = config.source.options if isinstance(config.source, SparkSource) else {}
    options = (source, config.sink.options, config.settings)
    found = [value for each in options for key, value in each.items() if is_secret(key)]
    addresses = (config.subscriptions, config.sink.store)
    for address in addresses:
        found += address.secrets if isinstance(address, Address) else ()
    return hider(found)


def _publications(spark: Any, config: Config) -> Any:
    return read_stream(spark, config.source, limits=config.limits)


def _session(config: Config) -> Any:
    return session(f"tidings {config.path.stem}", master=config.master, settings=config.settings)


def _outcomes(plan: Plan, publications: Any, wanted: Wanted) -> Any:
    return outcomes(
        publications,
        *wanted,
        lateness=plan.config.lateness,
        future=plan.config.allowed_future,
        buckets=plan.config.buckets,
        limits=plan.config.limits,
    )


def _ledger(metrics: Metrics) -> Ledger:
    """Give what writes the metrics of a config."""
    exports: list[Export] = []
    if metrics.prometheus is not None:
        exports.append(prometheus_file(metrics.prometheus))
    if metrics.jsonl is not None:
        exports.append(json_file(metrics.jsonl))
    return Ledger(*exports)


def _batch(progress: Progress, counted: Tally, sums: Sums) -> Batch:
    return Batch(
        progress.batch,
        progress.events,
        counted.deliveries,
        counted.late,
        counted.dead,
        counted.delivered,
        progress.to_dict(),
        sums.to_dict(),
    )
