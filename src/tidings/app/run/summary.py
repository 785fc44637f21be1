"""What a run did: batch by batch, and in all."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidings.app.run.plan import Plan


@dataclass(frozen=True)
class Batch:
    """What came of one batch of events: deliveries, late events, dead letters.

    `delivered` says how many each subscriber got, unless there are too many to name. `measures` are
    further figures of the engine: speed, lag, state. `quality` tells how good all deliveries of the
    run are by then, as far as the engine measures it.
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
        """Give the JSON form, without names."""
        return {
            **self.measures,
            "batch": self.number,
            "events": self.events,
            "deliveries": self.deliveries,
            "late": self.late,
            "dead_letters": self.dead,
            "quality": dict(self.quality),
        }


@dataclass(frozen=True)
class Account:
    """What came of all batches of a run, and of the records that it refused at its start."""

    plan: Plan
    batches: int
    events: int
    deliveries: int
    delivered: Mapping[str, int]
    late: int
    dead: int
    quality: Mapping[str, Any]
    seconds: float

    @classmethod
    def of(cls, plan: Plan, batches: Sequence[Batch], seconds: float) -> "Account":
        """Sum up the batches of a run."""
        delivered: Counter[str] = Counter()
        for batch in batches:
            delivered.update(batch.delivered)
        return cls(
            plan=plan,
            batches=len(batches),
            events=sum(batch.events for batch in batches),
            deliveries=sum(batch.deliveries for batch in batches),
            delivered=dict(sorted(delivered.items())),
            late=sum(batch.late for batch in batches),
            dead=sum(batch.dead for batch in batches),
            quality=batches[-1].quality if batches else {},
            seconds=seconds,
        )

    def to_dict(self) -> dict[str, Any]:
        """Give the JSON form."""
        return {
            "engine": self.plan.config.engine,
            "batches": self.batches,
            "events": self.events,
            "deliveries": self.deliveries,
            "subscribers": dict(self.delivered),
            "late": self.late,
            "dead_letters": self.dead,
            "quality": dict(self.quality),
            "refused": len(self.plan.refused),
            "seconds": round(self.seconds, 3),
            "sink": self.plan.config.sink.label,
        }
