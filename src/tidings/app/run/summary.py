"""The results of a run: one summary per batch, and the totals."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tidings.app.run.plan import RunPlan
from tidings.app.run.sending import ChannelReport
from tidings.model.diagnosis import Diagnosis

FIRST_LOOK: Final = 2_000
"""Events after which a run reports wrong attributes and types, without waiting for its end."""
EARLY_LOOK: Final = 100
"""The same for a run without an end, whose first thousands may take days."""
Notify = Callable[[Diagnosis], None]


@dataclass(frozen=True)
class BatchSummary:
    """The counts of one batch.

    `delivered` counts deliveries per subscriber, and is empty when there are too many subscribers.
    `measures` holds further figures of the engine: throughput, lag, size of the state. `quality`
    describes all deliveries of the run so far, as far as the engine measures it, and `diagnose`
    compares the subscriptions with all its events so far.
    """

    number: int
    events: int
    deliveries: int
    late: int = 0
    dead: int = 0
    delivered: Mapping[str, int] = field(default_factory=dict)
    measures: Mapping[str, Any] = field(default_factory=dict)
    quality: Mapping[str, Any] = field(default_factory=dict)
    diagnose: Callable[[], Diagnosis] | None = None

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


class FirstLook:
    """Reports wrong attributes and types once, after the first events of a run.

    An endless run is checked earlier, and again later if there was nothing to report.
    """

    def __init__(self, notify: Notify | None, *, endless: bool = False) -> None:
        self._notify = notify
        self._looks = [EARLY_LOOK, FIRST_LOOK] if endless else [FIRST_LOOK]

    def __call__(self, events: int, diagnose: Callable[[], Diagnosis]) -> None:
        """Check what subscriptions ask for, given the number of events so far."""
        if self._notify is None or events < self._looks[0]:
            return
        diagnosis = diagnose().only("attribute", "type")
        self._looks = [look for look in self._looks if look > events]
        if diagnosis.findings:
            self._notify(diagnosis)
        if diagnosis.findings or not self._looks:
            self._notify = None


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
    diagnosis: Diagnosis | None = None
    channels: Sequence[ChannelReport] = ()

    @classmethod
    def of(cls, plan: RunPlan, batches: Iterable[BatchSummary], seconds: float) -> "RunSummary":
        """Sum up the batches of a run."""
        summary = cls(plan)
        for batch in batches:
            summary.add(batch)
        summary.finish(seconds)
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

    def finish(self, seconds: float) -> None:
        """Record the duration of the run, and the diagnosis of its subscriptions."""
        self.seconds = seconds
        if self.last is not None and self.last.diagnose is not None:
            self.diagnosis = self.last.diagnose().with_renamed(self.plan.config.renamed)

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
            "diagnosis": self.diagnosis.to_dict() if self.diagnosis else None,
            "refused": len(self.plan.refused),
            "notes": list(self.plan.folder.notes),
            "seconds": round(self.seconds, 3),
            "sink": self.plan.config.sink.label,
            "channels": [report.to_dict() for report in self.channels],
        }
