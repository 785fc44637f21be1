"""Metrics of queries: a file for Prometheus, and JSON Lines.

spark.streams.addListener(Reporter(prometheus_file("/var/lib/node_exporter/tidings.prom")))
"""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from tidings.spark.ops.progress import Progress, read_progress

Export = Callable[["BatchReport"], None]
_METRICS: Final = {
    "batches_total": ("counter", "Finished batches."),
    "events_total": ("counter", "Publications read, including bad ones."),
    "deliveries_total": ("counter", "Deliveries."),
    "late_total": ("counter", "Late events."),
    "dead_letters_total": ("counter", "Dead letters."),
    "held_total": ("counter", "Chosen events that a rule held."),
    "released_total": ("counter", "Chosen events that a rule held and released."),
    "dropped_total": ("counter", "Chosen events that a rule or a pause dropped."),
    "batch": ("gauge", "Number of the last batch."),
    "batch_seconds": ("gauge", "Duration of the last batch."),
    "events_per_second": ("gauge", "Throughput of the last batch."),
    "lag_seconds": ("gauge", "Age of the newest event when its batch was finished."),
    "state_rows": ("gauge", "Rows in the state store: buckets of subscribers."),
    "state_bytes": ("gauge", "Bytes of the state on disk."),
    "state_memory_bytes": ("gauge", "Bytes of the state in memory."),
    "last_batch_timestamp_seconds": ("gauge", "Time at which the last batch was finished."),
}


@dataclass(frozen=True)
class Totals:
    """Totals of a query since it was started."""

    batches: int = 0
    events: int = 0
    deliveries: int = 0
    late: int = 0
    dead_letters: int = 0
    held: int = 0
    released: int = 0
    dropped: int = 0

    def plus(self, progress: Progress) -> "Totals":
        """Return the totals with one more batch."""
        return Totals(
            self.batches + 1,
            self.events + progress.events,
            self.deliveries + progress.deliveries,
            self.late + progress.late,
            self.dead_letters + progress.dead,
            self.held + progress.held,
            self.released + progress.released,
            self.dropped + progress.dropped,
        )


@dataclass(frozen=True)
class BatchReport:
    """A finished batch of a query, and the totals of the query so far."""

    query: str
    progress: Progress
    totals: Totals

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"query": self.query, **self.progress.to_dict(), "totals": asdict(self.totals)}


class QueryTotals:
    """Keeps the totals of queries and passes each finished batch to the exports."""

    def __init__(self, *exports: Export) -> None:
        self._exports = exports
        self._totals: dict[str, Totals] = {}

    def reset(self, query: str) -> None:
        """Count a query from zero."""
        self._totals.pop(query, None)

    def add(self, query: str, progress: Progress) -> None:
        """Add a finished batch."""
        self._totals[query] = self._totals.get(query, Totals()).plus(progress)
        for export in self._exports:
            export(BatchReport(query, progress, self._totals[query]))


class Reporter(StreamingQueryListener):
    """Passes every batch of the session's queries over watched publications to exports.

    A query is called by its name, or else by its id. Spark calls a listener some time after a
    batch, and for the last one perhaps after the query has ended.
    """

    def __init__(self, *exports: Export) -> None:
        self._queries = QueryTotals(*exports)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Count the query from zero."""
        self._queries.reset(event.name or str(event.id))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Add a finished batch."""
        progress = read_progress(event.progress)
        if progress is not None:
            self._queries.add(event.progress.name or str(event.progress.id), progress)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Do nothing."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Do nothing: the time of the last batch shows that the query has stopped."""


def prometheus_file(path: str | Path) -> Export:
    """Return an export to a file for node_exporter's textfile collector.

    The file is always complete: it is written under a temporary name, then renamed.
    """
    target, reports = Path(path), dict[str, BatchReport]()

    def export(report: BatchReport) -> None:
        reports[report.query] = report
        temporary = target.with_name(f".{target.name}.{os.getpid()}")
        temporary.write_text(prometheus_text(reports), encoding="utf-8")
        temporary.replace(target)

    return export


def json_file(path: str | Path) -> Export:
    """Return an export that appends a line per batch to a file."""

    def export(report: BatchReport) -> None:
        with Path(path).open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(report.to_dict()) + "\n")

    return export


def prometheus_text(reports: Mapping[str, BatchReport]) -> str:
    """Return the last reports of queries in the text format of Prometheus."""
    samples = {query: _samples(report) for query, report in reports.items()}
    lines = []
    for name, (kind, text) in _METRICS.items():
        lines += [f"# HELP tidings_{name} {text}", f"# TYPE tidings_{name} {kind}"]
        lines += [
            f'tidings_{name}{{query="{_escaped(query)}"}} {sample[name]}'
            for query, sample in samples.items()
            if sample[name] is not None
        ]
    lines += [
        "# HELP tidings_behind Unread input, as the source reports it.",
        "# TYPE tidings_behind gauge",
    ]
    lines += [
        f'tidings_behind{{query="{_escaped(query)}",metric="{_escaped(name)}"}} {count}'
        for query, report in reports.items()
        for name, count in report.progress.behind.items()
    ]
    return "\n".join(lines) + "\n"


def _samples(report: BatchReport) -> dict[str, float | None]:
    progress = report.progress
    totals = {f"{name}_total": total for name, total in asdict(report.totals).items()}
    return {
        **totals,
        "batch": progress.batch,
        "batch_seconds": progress.seconds,
        "events_per_second": progress.events_per_second,
        "lag_seconds": progress.lag_s,
        "state_rows": progress.state_rows,
        "state_bytes": progress.state_bytes,
        "state_memory_bytes": progress.memory_bytes,
        "last_batch_timestamp_seconds": progress.done_us / 1e6,
    }


def _escaped(text: str) -> str:
    """Return a text as the value of a label."""
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
