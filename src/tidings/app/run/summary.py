"""The results of a run: one summary per batch, and the totals."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidings.app.run.plan import RunPlan


@dataclass(frozen=True)
class BatchSummary:
    """The counts of one batch.

    `delivered` counts deliveries per subscriber, and is empty when there are too many subscribers.
    `measures` holds further figures of the engine: throughput, lag, size of the state. `quality`
    describes all deliveries of the run so far, as far as the engine measures it.
    """

    number: int
    events: int
    deliveries: int
    late: int = 0
    dead: int = 0
    delivered: Mapping[str, int] = field(default_factory=dict)
    measures: Mapping[str, Any] = field(default_factory=dict)
    quality: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, without the counts per subscriber."""
        return {
            **self.measures,
            "batch": self.number,
            "events": self.events,
            "deliveries": self.deliveries,
            "late": self.late,
            "dead_letters": self.dead,
            "quality": dict(self.quality),
        }


@dataclass
class RunSummary:
    """The totals of all batches of a run so far."""

    plan: RunPlan
    batches: int = 0
    events: int = 0
    deliveries: int = 0
    late: int = 0
    dead: int = 0
    delivered: Counter[str] = field(default_factory=Counter)
    last: BatchSummary | None = None
    seconds: float = 0.0

    @classmethod
    def of(cls, plan: RunPlan, batches: Iterable[BatchSummary], seconds: float) -> "RunSummary":
        """Sum up the batches of a run."""
        summary = cls(plan, seconds=seconds)
        for batch in batches:
            summary.add(batch)
        return summary

    def add(self, batch: BatchSummary) -> None:
        """Add a batch to the totals."""
        self.batches += 1
        self.events += batch.events
        self.deliveries += batch.deliveries
        self.late += batch.late
        self.dead += batch.dead
        self.delivered.update(batch.delivered)
        self.last = batch

    @property
    def quality(self) -> Mapping[str, Any]:
        """The quality of all deliveries, as measured at the end of the last batch."""
        return self.last.quality if self.last else {}

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "engine": self.plan.config.engine,
            "batches": self.batches,
            "events": self.events,
            "deliveries": self.deliveries,
            "subscribers": dict(sorted(self.delivered.items())),
            "late": self.late,
            "dead_letters": self.dead,
            "quality": dict(self.quality),
            "refused": len(self.plan.refused),
            "notes": list(self.plan.folder.notes),
            "seconds": round(self.seconds, 3),
            "sink": self.plan.config.sink.label,
        }
