"""How queries do, for those who watch them: a file for Prometheus, and JSON Lines.

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

Export = Callable[["Report"], None]
_METRICS: Final = {
    "batches_total": ("counter", "Batches that are done."),
    "events_total": ("counter", "Publications that were read, bad ones too."),
    "deliveries_total": ("counter", "Deliveries that were made."),
    "late_total": ("counter", "Events that came too late."),
    "dead_letters_total": ("counter", "Records that were refused."),
    "batch": ("gauge", "The number of the last batch."),
    "batch_seconds": ("gauge", "How long the last batch took."),
    "events_per_second": ("gauge", "How fast the last batch was."),
    "lag_seconds": ("gauge", "How old the newest event was when its batch was done."),
    "state_rows": ("gauge", "Rows in the state store: buckets of subscribers."),
    "state_bytes": ("gauge", "Bytes of the state on disk."),
    "state_memory_bytes": ("gauge", "Bytes of the state in memory."),
    "last_batch_timestamp_seconds": ("gauge", "When the last batch was done."),
}


@dataclass(frozen=True)
class Totals:
    """What a query did since it was started."""

    batches: int = 0
    events: int = 0
    deliveries: int = 0
    late: int = 0
    dead_letters: int = 0

    def plus(self, progress: Progress) -> "Totals":
        """Add a batch."""
        return Totals(
            self.batches + 1,
            self.events + progress.events,
            self.deliveries + progress.deliveries,
            self.late + progress.late,
            self.dead_letters + progress.dead,
        )


@dataclass(frozen=True)
class Report:
    """A batch that is done, of which query, and all that the query did so far."""

    query: str
    progress: Progress
    totals: Totals

    def to_dict(self) -> dict[str, Any]:
        """Give the JSON form."""
        return {"query": self.query, **self.progress.to_dict(), "totals": asdict(self.totals)}


class Ledger:
    """Sums up queries, and tells exports of each of their batches."""

    def __init__(self, *exports: Export) -> None:
        self._exports = exports
        self._totals: dict[str, Totals] = {}

    def begin(self, query: str) -> None:
        """Count a query that is started from nothing."""
        self._totals.pop(query, None)

    def tell(self, query: str, progress: Progress) -> None:
        """Tell of a batch that is done."""
        self._totals[query] = self._totals.get(query, Totals()).plus(progress)
        for export in self._exports:
            export(Report(query, progress, self._totals[query]))


class Reporter(StreamingQueryListener):
    """Tells exports of every batch of the session's queries over watched publications.

    A query goes by its name, or else by its id. Spark tells a listener some time after a batch, and
    of the last one perhaps after the query has ended.
    """

    def __init__(self, *exports: Export) -> None:
        self._ledger = Ledger(*exports)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Count from nothing."""
        self._ledger.begin(event.name or str(event.id))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Hand on a batch that is done."""
        progress = read_progress(event.progress)
        if progress is not None:
            self._ledger.tell(event.progress.name or str(event.progress.id), progress)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Leave what was told as it is."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Leave what was told as it is: the time of the last batch shows that it stands still."""


def prometheus_file(path: str | Path) -> Export:
    """Write the metrics of all queries to a file, as node_exporter's textfile collector reads it.

    It is always whole: written beside its place, then moved there.
    """
    place, reports = Path(path), dict[str, Report]()

    def export(report: Report) -> None:
        reports[report.query] = report
        beside = place.with_name(f".{place.name}.{os.getpid()}")
        beside.write_text(prometheus_text(reports), encoding="utf-8")
        beside.replace(place)

    return export


def json_file(path: str | Path) -> Export:
    """Add a line for each batch to a file."""

    def export(report: Report) -> None:
        with Path(path).open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(report.to_dict()) + "\n")

    return export


def prometheus_text(reports: Mapping[str, Report]) -> str:
    """Give the last reports of queries in the text format of Prometheus."""
    samples = {query: _samples(report) for query, report in reports.items()}
    lines = []
    for name, (kind, text) in _METRICS.items():
        lines += [f"# HELP tidings_{name} {text}", f"# TYPE tidings_{name} {kind}"]
        lines += [
            f'tidings_{name}{{query="{_escaped(query)}"}} {found[name]}'
            for query, found in samples.items()
            if found[name] is not None
        ]
    lines += [
        "# HELP tidings_behind Unread input, as the source tells.",
        "# TYPE tidings_behind gauge",
    ]
    lines += [
        f'tidings_behind{{query="{_escaped(query)}",metric="{_escaped(name)}"}} {each}'
        for query, report in reports.items()
        for name, each in report.progress.behind.items()
    ]
    return "\n".join(lines) + "\n"


def _samples(report: Report) -> dict[str, float | None]:
    progress = report.progress
    totals = {f"{name}_total": each for name, each in asdict(report.totals).items()}
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
    """Give a text as the value of a label."""
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
